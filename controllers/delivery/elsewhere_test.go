// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Of two registrations of one cluster one is removed, as condition Duplicate advises: what the other delivers stays, and what it does not is
// uninstalled.
func TestDuplicateIsRemoved(t *testing.T) {
	one, two := roomCluster, types.NamespacedName{Namespace: "fleet", Name: "two"}
	for name, tc := range map[string]struct {
		uid  string // of the other cluster
		with func(*room)
		// what is uninstalled, and what is let go, by add-on
		uninstalled, released []string
	}{
		"TheOtherServes": {"c1", nil, []string{"extra"}, []string{"app", "git"}},
		"AnotherCluster": {"c2", nil, []string{"app", "extra", "git"}, nil},
		"TheOtherGoesToo": {"c1", func(m *room) {
			edit(m, two.Namespace, two.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Finalizers = []string{hubv1.RegistrationFinalizer} })
			m.quietly(func() {
				m.must(m.api.Delete(m.t.Context(), &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: two.Namespace, Name: two.Name}}))
			})
		}, []string{"app", "extra", "git"}, nil},
		"TheOtherIsDeselectedToo": {"c1", func(m *room) { m.withdraw(two, roomSet) }, []string{"app", "app", "extra", "git", "git"}, nil},
		"ItLeavesTheOtherToo": {"c1", func(m *room) {
			edit(m, "flux-system", m.delivery(two, roomSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) {
				for i := range d.Status.Addons {
					d.Status.Addons[i].State = hubv1.AddonRemoving
				}
			})
			m.r.Config.Concurrency = 0 // nobody looks at the other one before this one has left
		}, []string{"app", "extra", "git"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(addonsOf(roomSet, "1", releaseAddon("app"), kustomizationAddon("git")), addonsOf("more", "1", releaseAddon("extra"))...)
			m := newRoom(t, append(objects,
				registered(one, "c1"), kubeconfigSecret(one, "t0"), deliveredTo(one, roomSet, "1"), deliveredTo(one, "more", "1"),
				registered(two, tc.uid), kubeconfigSecret(two, "t0"), deliveredTo(two, roomSet, "1"))...)
			m.settle(one, two)
			names := map[string]string{}
			for _, o := range m.objects() {
				names[o.GetName()] = o.GetLabels()[hubv1.AddonLabel]
			}
			m.withdraw(one, roomSet)
			m.withdraw(one, "more")
			clusters := []types.NamespacedName{one, two}
			if tc.with != nil {
				tc.with(m)
			}
			if m.r.Config.Concurrency == 0 {
				clusters = clusters[:1]
			}
			m.settle(clusters...)
			addons := func(objects []string) []string {
				var out []string
				for _, o := range objects {
					out = append(out, names[o])
				}
				slices.Sort(out)
				return out
			}
			if got, let := addons(m.uninstalled), addons(m.released); !slices.Equal(got, tc.uninstalled) || !slices.Equal(let, tc.released) {
				t.Errorf("uninstalled %v, let go %v; want %v, %v", got, let, tc.uninstalled, tc.released)
			}
			orphans := m.orphans(one)
			if len(orphans) != len(tc.released) {
				t.Errorf("orphans: %+v", orphans)
			}
			for _, o := range orphans {
				if !strings.Contains(o.Message, "ClusterRegistration fleet/two") {
					t.Errorf("it is not said who delivers it: %s", o.Message)
				}
			}
		})
	}
}

// Add-ons of one name are not the same where each registration has its own content: the other's does not keep this one's.
func TestDuplicateWithItsOwnContent(t *testing.T) {
	one, two := roomCluster, types.NamespacedName{Namespace: "fleet", Name: "two"}
	own := map[string]any{"postBuild": map[string]any{"substitute": map[string]any{"cluster": "<< cluster.name >>"}}}
	m := newRoom(t, append(addonsOf(roomSet, "1", kustomizationAddon("git", own)),
		registered(one, "c1"), kubeconfigSecret(one, "t0"), deliveredTo(one, roomSet, "1"),
		registered(two, "c1"), kubeconfigSecret(two, "t0"), deliveredTo(two, roomSet, "1"))...)
	m.settle(one, two)
	m.withdraw(one, roomSet)
	m.settle(one, two)
	if len(m.uninstalled) != 1 || len(m.released) != 0 || len(m.orphans(one)) > 0 {
		t.Errorf("uninstalled %v, let go %v, orphans %v", m.uninstalled, m.released, m.orphans(one))
	}
}
