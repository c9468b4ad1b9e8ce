// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/team"
)

func (r *renderer) isPlatform(namespace string) bool {
	return slices.Contains(r.options.PlatformNamespaces, namespace)
}

// reach returns how far the sets of a namespace reach.
func (r *renderer) reach(namespace string) match.Reach {
	return team.Reach(namespace, r.fleet.teams, r.isPlatform)
}

// teams adds the AddonSets that the hub makes for the Teams of the files.
func (r *renderer) teams() {
	r.all = slices.Clone(r.fleet.sets)
	for i := range r.fleet.teams {
		t := &r.fleet.teams[i]
		name := t.Namespace + "/" + t.Name
		if !r.isPlatform(t.Namespace) {
			r.fail("Team %s: namespace %q is not a platform namespace, so it governs nothing", name, t.Namespace)
			continue
		}
		if err := team.Check(t); err != nil {
			r.fail("Team %s: %s", name, err)
			continue
		}
		for _, rival := range team.Rivals(t, r.fleet.teams, r.isPlatform) {
			r.fail("Team %s: %s", name, rival)
		}
		for _, shared := range team.Shared(t, r.fleet.teams, r.fleet.registrations(), r.isPlatform) {
			r.fail("Team %s: %s", name, shared)
		}
		spec, err := team.Bootstrap(t)
		if err != nil {
			r.fail("Team %s: %s", name, err)
			continue
		}
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: team.SetName(t.Name)}, Spec: *spec}
		if slices.ContainsFunc(r.fleet.sets, func(s *hubv1.AddonSet) bool { return s.Namespace == set.Namespace && s.Name == set.Name }) {
			r.fail("Team %s: AddonSet %q is in the files, and the hub would make one of that name: rename it, or the Team", name, set.Name)
			continue
		}
		r.all = append(r.all, set)
	}
	slices.SortFunc(r.all, func(a, b *hubv1.AddonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
