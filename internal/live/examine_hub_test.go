// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

func leaseIn(namespace, account string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hub.chandler.dev"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(namespace + "-a"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: time.Now()}}}
	if account != "" {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account, UID: "1"}}
	}
	return l
}

func deploymentIn(namespace, account string, ready int32) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "chandler"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "chandler", Labels: labels}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Image: "chandler-hub:v0.1.0"}}}
	d.Status.ReadyReplicas = ready
	return d
}

// TestForgedHubs: whoever may write in his namespace may give a Lease the name of a hub's, and a Deployment its label. Neither makes the
// doctor say that something does not work, or hides that. A hub that nothing else recognizes is still found.
func TestForgedHubs(t *testing.T) {
	renewed := func(l *coordinationv1.Lease, by time.Duration) *coordinationv1.Lease {
		l.Spec.RenewTime.Time = time.Now().Add(by)
		return l
	}
	hub := []client.Object{leaseIn("chandler-system", "chandler"), deploymentIn("chandler-system", "chandler", 1)}
	silent := []client.Object{renewed(leaseIn("chandler-system", "chandler"), -time.Hour), hub[1]}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no"))
	for name, tc := range map[string]struct {
		there []client.Object
		asked error
		want  string
		says  string
	}{
		"one hub":                          {there: hub},
		"another one":                      {there: append([]client.Object{leaseIn("other", "hub"), deploymentIn("other", "hub", 1)}, hub...), want: "ERROR HubTwice", says: "2 hubs lead"},
		"another one that waits":           {there: append([]client.Object{deploymentIn("other", "hub", 0)}, hub...), want: "ERROR HubTwice, ERROR HubNotRunning"},
		"another one, of old Kubernetes":   {there: append([]client.Object{leaseIn("other", ""), deploymentIn("other", "hub", 1)}, hub...), want: "ERROR HubTwice", says: "2 hubs lead"},
		"a Lease that nobody owns":         {there: append([]client.Object{leaseIn("tenant", "")}, hub...), want: "WARNING HubUnproven", says: "both work"},
		"a tenant's Lease":                 {there: append([]client.Object{leaseIn("tenant", "forged")}, hub...), want: "WARNING HubUnproven", says: "Lease tenant/hub.chandler.dev"},
		"a tenant's Lease, of tomorrow":    {there: append([]client.Object{renewed(leaseIn("tenant", "forged"), time.Hour)}, hub...), want: "WARNING HubUnproven"},
		"a tenant's Lease, of yesterday":   {there: append([]client.Object{renewed(leaseIn("tenant", "forged"), -24*time.Hour)}, hub...)},
		"a tenant's Deployment":            {there: append([]client.Object{deploymentIn("tenant", "forged", 1)}, hub...), want: "WARNING HubUnproven", says: "Deployment tenant/chandler"},
		"a tenant's that does not run":     {there: append([]client.Object{deploymentIn("tenant", "", 0)}, hub...), want: "WARNING HubUnproven"},
		"a tenant's, and nobody may ask":   {there: append([]client.Object{deploymentIn("tenant", "forged", 0)}, hub...), asked: forbidden, want: "WARNING HubUnproven, NOT CHECKED NotChecked", says: "may not create SubjectAccessReviews"},
		"a tenant's, and the hub is still": {there: append([]client.Object{leaseIn("tenant", "forged")}, silent...), want: "ERROR HubDoesNotLead, WARNING HubUnproven"},
		"a tenant's alone":                 {there: []client.Object{leaseIn("tenant", "forged")}, want: "WARNING HubUnproven"},
	} {
		t.Run(name, func(t *testing.T) {
			may := func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				r := o.(*authorizationv1.SubjectAccessReview)
				r.Status.Allowed = r.Spec.User == "system:serviceaccount:other:hub"
				return tc.asked
			}
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(tc.there...).WithInterceptorFuncs(interceptor.Funcs{Create: may})
			for _, kind := range []client.Object{&coordinationv1.Lease{}, &corev1.ConfigMap{}} {
				api.WithIndex(kind, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
			}
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
