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

// Of two registrations of one cluster the first is served. Through the other one nothing is made, and what is there already is let go.
func TestOneIsServed(t *testing.T) {
	one, two := roomCluster, types.NamespacedName{Namespace: "fleet", Name: "two"}
	is := func(m *room, cluster types.NamespacedName, change func(*hubv1.ClusterRegistration)) {
		edit(m, cluster.Namespace, cluster.Name, &hubv1.ClusterRegistration{}, change)
		m.settle(one, two)
	}
	of := func(uid string) func(*hubv1.ClusterRegistration) {
		return func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = types.UID(uid) }
	}
	for name, tc := range map[string]struct {
		uid  string // of the cluster of two, to begin with
		with func(*room)
		// what each has in the end, what is uninstalled, and what is let go
		one, two, uninstalled, letGo int
	}{
		"TheFirst":    {uid: "c1", one: 2},
		"TwoClusters": {uid: "c2", one: 2, two: 2},
		"LedThere":    {uid: "c2", with: func(m *room) { is(m, two, of("c1")) }, one: 2, letGo: 2},
		"LedAway":     {uid: "c1", with: func(m *room) { is(m, one, of("c3")) }, one: 2, two: 2, letGo: 2},
		"PausedMeantime": {uid: "c2", with: func(m *room) {
			is(m, two, func(r *hubv1.ClusterRegistration) {
				status.Set(r, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.PausedReason, "paused", moment)
			})
			edit(m, two.Namespace, two.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = "c2" })
			edit(m, one.Namespace, one.Name, &hubv1.ClusterRegistration{}, of("c2"))
			m.settle(two)
		}, one: 2, two: 2},
		"Deselected": {uid: "c1", with: func(m *room) { m.withdraw(one, roomSet); m.settle(one, two) }, uninstalled: 2},
		"ItLeaves": {uid: "c1", with: func(m *room) {
			is(m, one, func(r *hubv1.ClusterRegistration) { r.Finalizers = []string{hubv1.RegistrationFinalizer} })
			m.quietly(func() {
				m.must(m.api.Delete(m.t.Context(), &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}}))
			})
			is(m, one, func(r *hubv1.ClusterRegistration) {
				status.Set(r, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.SameClusterReason, "ClusterRegistration fleet/two of the same cluster stays", moment)
			})
			m.withdraw(one, roomSet)
			m.settle(one, two)
		}, two: 2, letGo: 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRoom(t, append(addonsOf(roomSet, "1", releaseAddon("app"), kustomizationAddon("git")),
				registered(one, "c1"), kubeconfigSecret(one, "t0"), deliveredTo(one, roomSet, "1"),
				registered(two, tc.uid), kubeconfigSecret(two, "t0"), deliveredTo(two, roomSet, "1"))...)
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
			if count(one) != tc.one || count(two) != tc.two || len(m.uninstalled) != tc.uninstalled || len(m.released) != tc.letGo {
				t.Errorf("one has %d, two %d; uninstalled %v, let go %v", count(one), count(two), m.uninstalled, m.released)
			}
			if d := m.delivery(two, roomSet); tc.two == 0 && tc.one > 0 && (status.IsTrue(d, hubv1.ReadyCondition) || status.Reason(d, hubv1.ReadyCondition) != hubv1.DuplicateReason ||
				!strings.Contains(status.Find(d, hubv1.ReadyCondition).Message, "fleet/one")) {
				t.Errorf("the delivery of two says %+v", d.Status.Conditions)
			}
			if tc.two == 0 && tc.one > 0 {
				edit(m, two.Namespace, two.Name, &hubv1.ClusterRegistration{}, of("")) // as one that was made again
				m.settle(one, two)
				if is, served := m.delivery(two, roomSet).Status.ClusterID, m.delivery(one, roomSet).Status.ClusterID; is != "c1" || served != "" {
					t.Errorf("the delivery of two names cluster %q, and that of one %q", is, served)
				}
			}
			if told := slices.Clone(m.told); len(told) != tc.letGo {
				t.Errorf("told as left: %v", told)
			}
		})
	}
}
