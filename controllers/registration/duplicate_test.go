// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestStandsBack: who is not served says what to do, also where the one that is served is dead, and which one that is.
func TestStandsBack(t *testing.T) {
	reg := func(name string, answers metav1.ConditionStatus) *hubv1.ClusterRegistration {
		r := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
		status.Set(r, hubv1.ReachableCondition, answers, "Test", "", moment)
		return r
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		alive, served metav1.ConditionStatus
		want          string
	}{
		"BothAnswer":     {yes, yes, "Remove one of them"},
		"NeitherAnswers": {no, no, "Remove one of them"},
		"TheServedDoes":  {no, yes, "Remove one of them"},
		"OnlyThisDoes":   {yes, no, "not through fleet/served: repair its kubeconfig, or remove it, and sets deliver through this one"},
	} {
		if got := standsBack(reg("alive", tc.alive), reg("served", tc.served)); !strings.Contains(got, "ClusterRegistration fleet/served has this cluster") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestDuplicates: the first registration of a cluster has it until it is gone, also while it goes. Another one says which one that is.
func TestDuplicates(t *testing.T) {
	at := metav1.NewTime(moment.Add(-time.Hour))
	first := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "first", UID: "first",
		Finalizers: []string{hubv1.Finalizer}}}
	first.Status.ClusterUID, first.Status.ClusterSince = "c1", &at
	first.Status.Credential = &hubv1.CredentialStatus{AuthorityFingerprint: "ca"}
	goes, elsewhere := first.DeepCopy(), first.DeepCopy()
	goes.DeletionTimestamp = &at
	elsewhere.Status.ClusterUID = "c2"
	for name, tc := range map[string]struct {
		other *hubv1.ClusterRegistration
		want  string
	}{
		"Alone":          {nil, ""},
		"AnotherHasIt":   {first, "fleet/first"},
		"AndGoes":        {goes, "fleet/first"},
		"AnotherCluster": {elsewhere, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New()))
			if tc.other != nil {
				b = b.WithObjects(tc.other)
			}
			r := &Reconciler{Client: b.Build(), Clock: clocktesting.NewFakePassiveClock(moment), Config: &hubconfig.Config{}}
			before := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "second", UID: "second"}}
			before.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: "fleet", Name: "gone"}
			reg := before.DeepCopy()
			reg.Status.ClusterUID, reg.Status.Credential = "c1", first.Status.Credential
			if r.dated(before, reg); !reg.Status.ClusterSince.Time.Equal(moment) {
				t.Errorf("it is of its cluster since %s", reg.Status.ClusterSince)
			}
			if err := r.duplicates(t.Context(), reg); err != nil {
				t.Fatal(err)
			}
			got := ""
			if reg.Status.DuplicateOf != nil {
				got = reg.Status.DuplicateOf.Key().String()
			}
			if got != tc.want || status.IsTrue(reg, hubv1.DuplicateCondition) != (tc.want != "") {
				t.Errorf("it is a duplicate of %q, and says %+v; want %q", got, reg.Status.Conditions, tc.want)
			}
		})
	}
}
