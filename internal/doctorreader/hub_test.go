// SPDX-License-Identifier: Apache-2.0

package doctorreader

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// leaseOfHub is the Lease of the hub in chandler-system, renewed at a time from now.
func leaseOfHub(renewed time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hub.chandler.dev",
		Labels: map[string]string{"chandler.dev/installation": "chandler-system"}}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("a"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: time.Now().Add(renewed)}}}
}

func deploymentIn(namespace, account string, ready int32) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "chandler"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "chandler", Labels: labels}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Image: "chandler-hub:v0.1.0"}}}
	d.Status.ReadyReplicas = ready
	return d
}

// TestHubs: what is found of a hub, of a second one, and of what a tenant has written in its namespace.
func TestHubs(t *testing.T) {
	run := deploymentIn("chandler-system", "chandler", 1)
	elsewhere := leaseOfHub(0)
	elsewhere.Namespace = "tenant"
	for name, tc := range map[string]struct {
		there []client.Object
		want  string
		says  string
	}{
		"one hub":                  {there: []client.Object{leaseOfHub(0), run}},
		"one that is silent":       {there: []client.Object{leaseOfHub(-time.Hour), run}, want: "ERROR HubDoesNotLead"},
		"one whose clock is ahead": {there: []client.Object{leaseOfHub(time.Hour), run}, want: "WARNING ClockOfHub"},
		"a second one, which waits": {there: []client.Object{leaseOfHub(0), run, deploymentIn("other", "hub", 1)}, want: "WARNING HubTwice",
			says: "the one in namespace chandler-system has the Lease, and any other waits"},
		"a Lease of that name elsewhere": {there: []client.Object{leaseOfHub(0), run, elsewhere}},
		"nothing but such a Lease":       {there: []client.Object{elsewhere}, want: "ERROR HubMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(tc.there...).
				WithIndex(&corev1.ConfigMap{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
			e := &examiner{ctx: t.Context(), client: api.Build(), clock: &dates{}, facts: &doctor.Facts{Now: time.Now(), HubNamespace: "chandler-system"}}
			if err := e.hub(); err != nil {
				t.Fatal(err)
			}
			got, text := hubFindings(doctor.Examine(e.facts))
			if got != tc.want || !strings.Contains(text, tc.says) {
				t.Errorf("found %q, want %q with %q: %s", got, tc.want, tc.says, text)
			}
		})
	}
}

// hubFindings returns what was found of the hub and its clock: the codes, and all that was said.
func hubFindings(r doctor.Report) (codes, text string) {
	var found, all []string
	for _, g := range r.Checks {
		if g.Check != doctor.CheckHub && g.Check != doctor.CheckClock {
			continue
		}
		for _, one := range g.Findings {
			found = append(found, string(one.Severity)+" "+one.Code)
			all = append(append(all, one.What, one.Remedy), one.Objects...)
		}
	}
	return strings.Join(found, ", "), strings.Join(all, "\n")
}
