// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"iter"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render"
)

// Releases returns the Helm releases that the add-ons of a delivery go on with, whatever their names would give:
// those that their own objects have kept, those that the delivery's status says are being taken over, and those of
// objects they were moved from. Each part of an add-on has at most one object, so the order of live does not matter.
func Releases(p *compile.Program, namespace, delivery string, live []Live, status []hubv1.AddonStatus) map[string]render.Kept {
	out := map[string]render.Kept{}
	keep := func(addon string, kept hubv1.HelmReleaseIdentity, from string) {
		if _, ok := out[addon]; !ok {
			out[addon] = render.Kept{HelmReleaseIdentity: kept, From: from}
		}
	}
	own := map[string]bool{}
	for i := range live {
		l := &live[i]
		if l.Delivery != delivery || l.Key.Namespace != namespace {
			continue
		}
		own[l.Addon] = true
		if l.Kept.Name != "" {
			keep(l.Addon, l.Kept, "")
		}
	}
	for i := range status {
		if s := &status[i]; s.Release != nil {
			keep(s.Name, *s.Release, "what it takes over")
		}
	}
	for i := range p.Addons {
		for part, l := range movedFrom(&p.Addons[i], live) {
			if !own[part] {
				keep(part, l.Release, "HelmRelease "+l.Key.Namespace+"/"+l.Key.Name)
			}
		}
	}
	return out
}

// movedFrom yields the HelmReleases that an add-on was moved from, each with the part of the add-on that goes on with it.
func movedFrom(a *compile.Addon, live []Live) iter.Seq2[string, *Live] {
	return func(yield func(string, *Live) bool) {
		for _, m := range a.MovedFrom {
			for i := range live {
				for _, part := range []string{"", compile.CRDSuffix} {
					if l := &live[i]; l.Release.Name != "" && l.isOf(m, m.Name+part) && !yield(a.Name+part, l) {
						return
					}
				}
			}
		}
	}
}
