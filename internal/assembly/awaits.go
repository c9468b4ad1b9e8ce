// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"slices"

	"github.com/chandler-hub/chandler/internal/compile"
)

// await finds the objects that an add-on of this cluster is to take over by movedFrom but cannot yet: another set
// delivers an add-on of that name, its rendering fails, or somebody else has its release. The old objects stay until
// it can, because renaming an add-on does not ask for its removal.
func (a *assembler) await() {
	for i := range a.in.Deliveries {
		d, out := &a.in.Deliveries[i], &a.out[i]
		if d.Leaving {
			continue
		}
		for addon, moves := range d.Moves {
			if out.delivers(addon) || d.excludes(addon) || a.there(d, addon) {
				continue
			}
			for _, m := range moves {
				for j := range a.in.Live {
					l := &a.in.Live[j]
					if l.isOf(m, m.Name) || l.isOf(m, m.Name+compile.CRDSuffix) {
						out.Awaits[l.Key] = fmt.Sprintf("add-on %q of AddonSet %s/%s is to take it over, and cannot be delivered here now", addon,
							d.Namespace, d.Set)
					}
				}
			}
		}
	}
}

func (o *Portion) delivers(addon string) bool {
	return slices.ContainsFunc(o.Wanted, func(w Wanted) bool { return w.Addon == addon })
}

func (d *Delivery) excludes(addon string) bool {
	if d.Result == nil {
		return false
	}
	_, excluded := d.Result.Excluded[addon]
	return excluded
}

// there returns whether an add-on of a delivery has an object.
func (a *assembler) there(d *Delivery, addon string) bool {
	return slices.ContainsFunc(a.in.Live, func(l Live) bool {
		return l.Delivery == d.Name && l.Key.Namespace == d.Namespace &&
			l.Addon == addon
	})
}
