// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"slices"

	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// A workload keeps its Flux object: an add-on that is renamed, moved to another set of the namespace, or adopts a hand-written object of
// the namespace, goes on with the object that is there, under the name that it has. The add-on is in the object's label; a name says only
// what the object was made for.

// names gives each object of each delivery the name of the live object that it goes on with, or else a name that no other add-on's object
// has. What delivers the same as the live object comes first: Flux has nothing to do then. Several may get one name: their claims are
// decided later. It changes copies: the results are of callers who keep them.
func (a *assembler) names() {
	a.in.Deliveries = slices.Clone(a.in.Deliveries)
	a.takes, a.given, a.taken, a.kept = map[*flux.Object]*Live{}, map[plan.Key]bool{}, map[plan.Key]bool{}, map[plan.Key]bool{}
	for i := range a.in.Deliveries {
		d := &a.in.Deliveries[i]
		if d.Result == nil {
			continue
		}
		result := *d.Result
		result.Objects = slices.Clone(result.Objects)
		d.Result = &result
	}
	a.each(func(d *Delivery, o *flux.Object) {
		if l := a.mover(d, o); l != nil && l.Content == Content(o) {
			a.take(d, o, l)
		}
	})
	named := map[*flux.Object]bool{}
	a.each(func(d *Delivery, o *flux.Object) {
		if own := a.own(d, o); a.takes[o] == nil && own != nil && (own.of(d) || own.Content == Content(o)) {
			o.Name, named[o] = own.Key.Name, true
			a.kept[own.Key] = a.kept[own.Key] || own.Content == Content(o)
		}
	})
	a.each(func(d *Delivery, o *flux.Object) {
		if a.takes[o] == nil && !named[o] {
			a.name(d, o)
		}
	})
}

// name gives an object a name for which nothing delivers the same yet.
func (a *assembler) name(d *Delivery, o *flux.Object) {
	if l := a.mover(d, o); l != nil && !a.taken[l.Key] && !a.kept[l.Key] {
		a.take(d, o, l)
		return
	}
	if own := a.own(d, o); own != nil {
		o.Name = own.Key.Name
		return
	}
	if to := o.Adopt; to != nil && to.Namespace == o.Namespace {
		if k := (plan.Key{Kind: o.Kind, Namespace: to.Namespace, Name: to.Name}); a.in.Adopted[k] {
			o.Name = to.Name
			return
		}
	}
	for n, name := 1, o.Name; a.live[Key(o)] != nil; n++ {
		o.Name = identity.Beside(name, n)
	}
}

// take has an object go on with a live one. If that is of the same delivery, what has its former name now is something new.
func (a *assembler) take(d *Delivery, o *flux.Object, l *Live) {
	a.takes[o], o.Name = l, l.Key.Name
	a.given[l.Key] = a.given[l.Key] || l.of(d)
	a.taken[l.Key] = a.taken[l.Key] || l.Content == Content(o)
}

// mover returns the live object of the namespace that an object is to go on with by movedFrom; nil if there is none, or if its add-on has
// one. Of several, one that delivers the same comes first: another add-on may have the former name by now.
func (a *assembler) mover(d *Delivery, o *flux.Object) *Live {
	if len(o.MovedFrom) == 0 || slices.ContainsFunc(a.in.Live, func(l Live) bool { return l.of(d) && l.fits(o) }) {
		return nil
	}
	for _, m := range o.MovedFrom {
		var found *Live
		for i := range a.in.Live {
			l := &a.in.Live[i]
			moves := l.isOf(m, m.Name) && l.Key.Kind == o.Kind && l.Key.Namespace == o.Namespace && !l.Going
			if moves && (found == nil || l.Content == Content(o)) {
				found = l
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// own returns the live object of an add-on: the delivery's, or that of another one which had the add-on before; nil if there is none.
func (a *assembler) own(d *Delivery, o *flux.Object) (found *Live) {
	for i := range a.in.Live {
		l := &a.in.Live[i]
		if !l.fits(o) || a.given[l.Key] || !l.of(d) && a.taken[l.Key] || l.of(d) && a.promised(d, o, l) {
			continue
		}
		if found == nil || !found.of(d) && l.of(d) || found.of(d) == l.of(d) && found.Going && !l.Going {
			found = l
		}
	}
	return found
}

// promised returns whether a live object waits for another add-on of its delivery, which had its name before and does not render now. What
// has the name by now is something new, unless it delivers the same.
func (a *assembler) promised(d *Delivery, o *flux.Object, l *Live) bool {
	if l.Content == Content(o) && l.Release == o.Release {
		return false
	}
	for addon := range d.Result.Failed {
		if addon != l.Addon && l.movedTo(d.Moves[addon]) && !a.there(d, addon) {
			return true
		}
	}
	return false
}

// each calls a function with every object that a delivery is to have, the deliveries in the order of the input.
func (a *assembler) each(f func(*Delivery, *flux.Object)) {
	for i := range a.in.Deliveries {
		if d := &a.in.Deliveries[i]; d.Result != nil && !d.Leaving {
			for j := range d.Result.Objects {
				f(d, &d.Result.Objects[j])
			}
		}
	}
}

// of returns whether a live object is of a delivery.
func (l *Live) of(d *Delivery) bool { return l.Delivery == d.Name && l.Key.Namespace == d.Namespace }

// fits returns whether a live object has the add-on, the kind and the namespace of an object that has no other name yet. One that has lost
// its label is of the add-on that its name says.
func (l *Live) fits(o *flux.Object) bool {
	named := l.Addon == o.Addon || l.Addon == "" && l.Key.Name == o.Name
	return named && l.Key.Kind == o.Kind && l.Key.Namespace == o.Namespace
}
