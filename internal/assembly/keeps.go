// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// keep finds the objects that an add-on is to take over by movedFrom and cannot now: its rendering fails, another set delivers an add-on of
// that name, another owner has its release, or its delivery is withdrawn and comes again. They stay, since a rename asks for no removal.
// Nothing stays for a set that is to leave the cluster.
func (a *assembler) keep() {
	for i := range a.in.Deliveries {
		d := &a.in.Deliveries[i]
		if d.Leaving && !d.Returns {
			continue
		}
		for addon, moves := range d.Moves {
			if out := &a.out[i]; out.delivers(addon) || d.excludes(addon) || d.Over[addon] || a.there(d, addon) {
				continue
			}
			for j := range a.in.Live {
				if l := &a.in.Live[j]; l.movedTo(moves) && a.mayTake(d, addon, l) {
					a.out[i].Keeps[l.Key] = fmt.Sprintf("add-on %q of AddonSet %s/%s is to take it over, and cannot be delivered here now", addon,
						d.Namespace, d.Set)
				}
			}
		}
	}
}

// returns returns whether the delivery of a live object is withdrawn and comes again.
func (a *assembler) returns(l *Live) bool {
	return slices.ContainsFunc(a.in.Deliveries, func(d Delivery) bool { return d.Returns && l.of(&d) })
}

// mayTake returns whether an add-on of a delivery would take over a live object, as far as that is known. If the deliveries of both are
// withdrawn and come again, neither goes before the other.
func (a *assembler) mayTake(d *Delivery, addon string, l *Live) bool {
	if Held(d, addon) {
		return !d.Returns || !a.returns(l)
	}
	return slices.ContainsFunc(d.Result.Objects, func(o flux.Object) bool {
		return (o.Addon == addon || o.Addon == addon+compile.CRDSuffix) && o.Kind == l.Key.Kind && (Key(&o) == l.Key || MovesFrom(&o, l))
	})
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

// movedTo returns whether a live object is a part of an add-on with these earlier names.
func (l *Live) movedTo(moves []hubv1.MovedAddon) bool {
	return slices.ContainsFunc(moves, func(m hubv1.MovedAddon) bool { return l.isOf(m, m.Name) || l.isOf(m, m.Name+compile.CRDSuffix) })
}

// there returns whether an add-on of a delivery has an object.
func (a *assembler) there(d *Delivery, addon string) bool {
	return slices.ContainsFunc(a.in.Live, func(l Live) bool { return l.of(d) && l.Addon == addon })
}
