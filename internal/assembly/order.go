// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"cmp"
	"fmt"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render"
)

// link writes into each object what it comes after. Flux orders objects of one kind; between kinds, and between sets, the hub
// does, by gates.
func (a *assembler) link() {
	for i := range a.out {
		d := &a.in.Deliveries[i]
		for j := range a.out[i].Wanted {
			w := &a.out[i].Wanted[j]
			var before []render.Dependency
			for _, ref := range w.DependsOn {
				to, ok := a.find(d, ref)
				if !ok {
					continue
				}
				dependency := render.Dependency{Addon: ref.Name}
				if to.key.Kind == w.Kind {
					dependency.Namespace, dependency.Name = to.key.Namespace, to.key.Name
				}
				before = append(before, dependency)
			}
			w.Link(before, a.setsBefore(d))
		}
	}
}

// find returns who delivers a dependency; false if nobody does on this cluster, and then it is ignored.
func (a *assembler) find(d *Delivery, ref hubv1.AddonReference) (winner, bool) {
	w, ok := a.winners[ref.Name]
	if !ok {
		return winner{}, false
	}
	other := &a.in.Deliveries[w.delivery]
	if ref.AddonSet != "" && (other.Set != ref.AddonSet || other.Namespace != d.Namespace) {
		return winner{}, false
	}
	return w, true
}

// setsBefore are the sets that a delivery's own depends on and that are on this cluster.
func (a *assembler) setsBefore(d *Delivery) []string {
	var out []string
	for _, name := range d.DependsOn {
		if a.set(d.Namespace, name) != nil {
			out = append(out, name)
		}
	}
	return out
}

func (a *assembler) set(namespace, name string) *Delivery {
	for i := range a.in.Deliveries {
		if d := &a.in.Deliveries[i]; d.Namespace == namespace && d.Set == name && !d.Leaving {
			return d
		}
	}
	return nil
}

// gates says what each object waits for. A gate is a latch: when the revision has been written in full, it never closes
// again. What another add-on of its set is to go on with waits all the same.
func (a *assembler) gates() {
	for i := range a.out {
		d := &a.in.Deliveries[i]
		whole := a.setGate(d)
		for j := range a.out[i].Wanted {
			w := &a.out[i].Wanted[j]
			if w.Gate = whole; w.Gate == "" {
				w.Gate = a.addonGate(d, w)
			}
			if d.Latched || w.Gate == "" {
				w.Gate = a.renamed(i, w)
			}
		}
		for j := range a.out[i].Wanted {
			w := &a.out[i].Wanted[j]
			w.Gate = cmp.Or(w.Gate, a.inTheWay(i, w))
		}
	}
}

func (a *assembler) setGate(d *Delivery) string {
	for _, name := range d.DependsOn {
		if slices.Contains(d.Pending, name) {
			return fmt.Sprintf("waits for AddonSet %q, which selects this cluster and is not on it yet", name)
		}
		if other := a.set(d.Namespace, name); other != nil && !other.Ready {
			return fmt.Sprintf("waits for AddonSet %q, whose add-ons have not all been Ready yet", name)
		}
	}
	return ""
}

func (a *assembler) addonGate(d *Delivery, w *Wanted) string {
	for _, ref := range w.DependsOn {
		to, ok := a.find(d, ref)
		switch {
		case !ok && ref.AddonSet != "" && slices.Contains(d.Pending, ref.AddonSet):
			return fmt.Sprintf("waits for add-on %q of AddonSet %q, which selects this cluster and is not on it yet", ref.Name, ref.AddonSet)
		case !ok && ref.AddonSet == "" && d.Result != nil && d.Result.Failed[ref.Name] != nil:
			return fmt.Sprintf("waits for add-on %q, which does not come out", ref.Name)
		case ok && to.key.Kind != w.Kind && !a.ready(to):
			return fmt.Sprintf("waits for add-on %q (%s) to be Ready", ref.Name, to.key.Kind)
		}
	}
	return ""
}

// renamed says of an add-on whose set has another one that was called so, and is to go on with what runs, that it waits: brought in line with what it
// is to be now, nothing would be left to go on with.
func (a *assembler) renamed(delivery int, w *Wanted) string {
	d := &a.in.Deliveries[delivery]
	for i := range d.Result.Objects {
		o := &d.Result.Objects[i]
		if a.out[delivery].HandedOver[o.Addon] && slices.ContainsFunc(a.moved(d, o), func(l *Live) bool { return l.Key == Key(&w.Object) }) {
			return fmt.Sprintf("stays as it is: add-on %q of the same AddonSet was called so, and cannot go on with it while this one is there. Drop one of them, or movedFrom", o.Addon)
		}
	}
	return ""
}

// inTheWay says of an add-on that is not here yet that it waits for another one of its set that was called so, and is not here either: that one would
// take it for what it was itself, and not come. One that comes after it cannot be waited for.
func (a *assembler) inTheWay(delivery int, w *Wanted) string {
	for i := range a.out[delivery].Wanted {
		o := &a.out[delivery].Wanted[i]
		if a.wasCalled(delivery, o, w) && !a.here(w) && !a.here(o) && !a.after(delivery, o, w, map[string]bool{}) {
			return fmt.Sprintf("waits: add-on %q of the same AddonSet was called so, and would take it for its own if it were here first", o.Addon)
		}
	}
	return ""
}

// wasCalled returns whether an add-on has been called as another one of its set is now.
func (a *assembler) wasCalled(delivery int, o, w *Wanted) bool {
	d := &a.in.Deliveries[delivery]
	return o.Kind == w.Kind && slices.Contains(o.MovedFrom, hubv1.MovedAddon{Namespace: d.Namespace, AddonSet: d.Set, Name: w.Addon})
}

// here returns whether the object of an add-on is there, and stays.
func (a *assembler) here(w *Wanted) bool {
	l := a.live[Key(&w.Object)]
	return l != nil && !l.Going
}

// after returns whether an add-on waits for another one of its set, or for one that does.
func (a *assembler) after(delivery int, w, other *Wanted, seen map[string]bool) bool {
	seen[w.Addon] = true
	for i := range a.out[delivery].Wanted {
		o := &a.out[delivery].Wanted[i]
		if !slices.Contains(w.DependsOn, hubv1.AddonReference{Name: o.Addon}) && !a.wasCalled(delivery, o, w) {
			continue
		}
		if o == other || !seen[o.Addon] && a.after(delivery, o, other, seen) {
			return true
		}
	}
	return false
}

// ready returns whether a dependency is Ready as it is wanted now.
func (a *assembler) ready(w winner) bool {
	l := a.live[w.key]
	if l == nil || !l.Ready {
		return false
	}
	if w.held {
		return true
	}
	for i := range a.out[w.delivery].Wanted {
		if o := &a.out[w.delivery].Wanted[i]; Key(&o.Object) == w.key {
			return o.Once || o.Hash == l.Hash
		}
	}
	return false
}
