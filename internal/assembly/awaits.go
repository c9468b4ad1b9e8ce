// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"maps"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
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
		for _, addon := range slices.Sorted(maps.Keys(d.Moves)) {
			if out.delivers(addon) || d.excludes(addon) || a.there(d, addon) {
				continue
			}
			for j := range a.in.Live {
				l := &a.in.Live[j]
				if part, moved := l.partOf(d.Moves[addon]); moved {
					out.await(l.Key, d.awaits(addon, part))
				}
			}
		}
	}
}

// partOf returns which part of an add-on with these earlier names an object is, as the suffix of its name; false if none.
func (l *Live) partOf(moves []hubv1.MovedAddon) (suffix string, ok bool) {
	for _, part := range []string{"", compile.CRDSuffix} {
		if slices.ContainsFunc(moves, func(m hubv1.MovedAddon) bool { return l.isOf(m, m.Name+part) }) {
			return part, true
		}
	}
	return "", false
}

// await notes for which add-on an object stays. Of two that are to take it over, nobody knows which one will.
func (o *Portion) await(k plan.Key, await Await) {
	if first, two := o.Awaits[k]; two {
		await = first
		await.Known, await.By = false, nil
	}
	o.Awaits[k] = await
}

// awaits returns what is said of an object that stays for a part of an add-on.
func (d *Delivery) awaits(addon, part string) Await {
	out := Await{Addon: addon + part, Known: !Held(d, addon),
		Why: fmt.Sprintf("add-on %q of AddonSet %s/%s is to take it over, and cannot be delivered here now", addon, d.Namespace, d.Set)}
	if out.Known {
		if i := slices.IndexFunc(d.Result.Objects, func(o render.Object) bool { return o.Addon == out.Addon }); i >= 0 {
			out.By = &d.Result.Objects[i]
		}
	}
	return out
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
