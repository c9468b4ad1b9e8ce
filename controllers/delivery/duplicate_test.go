// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestDuplicate: nothing is made through a registration whose cluster another one has, and what is there already is orphaned.
func TestDuplicate(t *testing.T) {
	one, two := testCluster, types.NamespacedName{Namespace: "fleet", Name: "two"}
	is := func(m *fixture, cluster types.NamespacedName, change func(*hubv1.ClusterRegistration)) {
		edit(m, cluster.Namespace, cluster.Name, &hubv1.ClusterRegistration{}, change)
		m.settle(one, two)
	}
	of := func(uid string, holder *types.NamespacedName) func(*hubv1.ClusterRegistration) {
		return func(r *hubv1.ClusterRegistration) {
			r.Status.ClusterUID, r.Status.DuplicateOf = types.UID(uid), nil
			if holder != nil {
				r.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: holder.Namespace, Name: holder.Name}
			}
		}
	}
	for name, tc := range map[string]struct {
		uid  string // of the cluster of two, to begin with
		with func(*fixture)
		// what each has in the end, what is uninstalled, and what is orphaned
		one, two, uninstalled, orphaned int
	}{
		"TheFirst":    {uid: "c1", one: 2},
		"TwoClusters": {uid: "c2", one: 2, two: 2},
		"LedThere":    {uid: "c2", with: func(m *fixture) { is(m, two, of("c1", &one)) }, one: 2, orphaned: 2},
		"LedAway":     {uid: "c1", with: func(m *fixture) { is(m, one, of("c3", nil)); is(m, two, of("c1", nil)) }, one: 2, two: 2, orphaned: 2},
		"PausedMeantime": {uid: "c2", with: func(m *fixture) {
			is(m, two, func(r *hubv1.ClusterRegistration) {
				status.Set(r, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.PausedReason, "paused", moment)
			})
			edit(m, two.Namespace, two.Name, &hubv1.ClusterRegistration{}, of("c2", nil))
			edit(m, two.Namespace, two.Name, &hubv1.ClusterRegistration{}, of("c2", &one))
			m.settle(two)
		}, one: 2, two: 2},
		"Deselected": {uid: "c1", with: func(m *fixture) { m.withdraw(one, testSet); m.settle(one, two) }, uninstalled: 2},
		"ItLeaves": {uid: "c1", with: func(m *fixture) {
			is(m, one, func(r *hubv1.ClusterRegistration) { r.Finalizers = []string{hubv1.RegistrationFinalizer} })
			m.quietly(func() {
				m.must(m.api.Delete(m.t.Context(), &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}}))
			})
			is(m, one, func(r *hubv1.ClusterRegistration) {
				status.Set(r, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.SameClusterReason, "ClusterRegistration fleet/two of the same cluster stays", moment)
			})
			m.withdraw(one, testSet)
			m.settle(one, two)
			is(m, two, of("c1", nil))
		}, two: 2, orphaned: 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, append(addonsOf(testSet, "1", releaseAddon("app"), kustomizationAddon("git")),
				registered(one, "c1"), kubeconfigSecret(one, "t0"), deliveredTo(one, testSet, "1"),
				registered(two, tc.uid), kubeconfigSecret(two, "t0"), deliveredTo(two, testSet, "1"))...)
			if tc.uid == "c1" {
				edit(m, two.Namespace, two.Name, &hubv1.ClusterRegistration{}, of("c1", &one))
			}
			m.settle(one, two)
			if tc.with != nil {
				tc.with(m)
			}
			count := func(cluster types.NamespacedName) (n int) {
				for _, o := range m.objects() {
					if o.GetAnnotations()[hubv1.RegistrationAnnotation] == cluster.String() {
						n++
					}
				}
				return n
			}
			if count(one) != tc.one || count(two) != tc.two || len(m.uninstalled) != tc.uninstalled || len(m.released) != tc.orphaned {
				t.Errorf("one has %d, two %d; uninstalled %v, orphaned %v", count(one), count(two), m.uninstalled, m.released)
			}
			if d := m.delivery(two, testSet); tc.two == 0 && tc.one > 0 && (status.IsTrue(d, hubv1.ReadyCondition) || status.Reason(d, hubv1.ReadyCondition) != hubv1.DuplicateReason ||
				!strings.Contains(status.Find(d, hubv1.ReadyCondition).Message, "fleet/one")) {
				t.Errorf("the delivery of two says %+v", d.Status.Conditions)
			}
			if told := slices.Clone(m.told); len(told) != tc.orphaned {
				t.Errorf("told as left: %v", told)
			}
		})
	}
}
