// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"cmp"
	"fmt"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// link writes the predecessors into each object as dependsOn. Flux orders only objects of the same kind. Between
// kinds and between sets, the hub orders by gates.
func (a *assembler) link() {
	for i := range a.out {
		d := &a.in.Deliveries[i]
		for j := range a.out[i].Wanted {
			w := &a.out[i].Wanted[j]
			var before []flux.Dependency
			for _, ref := range w.DependsOn {
				to, ok := a.find(d, ref)
				if !ok {
					continue
				}
				dependency := flux.Dependency{Addon: ref.Name}
				if to.key.Kind == w.Kind {
					dependency.Namespace, dependency.Name = to.key.Namespace, to.key.Name
				}
				before = append(before, dependency)
			}
			w.Link(before, a.setsBefore(d))
		}
	}
}

// find returns the winner of a dependency. It returns false if no set delivers it on this cluster; then the
// dependency is ignored. A name without a set may be that of an add-on that another set delivers here. For a platform's add-on that is no
// tenant's set: its add-on may never be Ready, and the platform's would wait for it.
func (a *assembler) find(d *Delivery, ref hubv1.AddonReference) (winner, bool) {
	w, ok := a.winners[ref.Name]
	if !ok {
		return winner{}, false
	}
	other := &a.in.Deliveries[w.delivery]
	if d.Platform && !other.Platform {
		return winner{}, false
	}
	if ref.AddonSet != "" && (other.Set != ref.AddonSet || other.Namespace != d.Namespace) {
		return winner{}, false
	}
	return w, true
}

// setsBefore returns the sets that a delivery's set depends on and that are on this cluster.
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

// gates sets the gate of each object. A gate is a latch: once the revision has been written in full, it never closes
// again for an object that is there. One that is to be made has its gate even then: the cluster may be another one, or its add-on may have
// been left out until now.
func (a *assembler) gates() {
	for i := range a.out {
		d := &a.in.Deliveries[i]
		whole := a.setGate(d)
		for j := range a.out[i].Wanted {
			w := &a.out[i].Wanted[j]
			if w.Gate = whole; w.Gate == "" {
				w.Gate = a.addonGate(d, w)
			}
			if a.in.End || d.Latched && a.here(w) {
				w.Gate = ""
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
		if other := a.set(d.Namespace, name); other != nil && !other.Ready && !a.lostAll(other) {
			return fmt.Sprintf("waits for AddonSet %q, whose add-ons have not all been Ready yet", name)
		}
	}
	return ""
}

// lostAll returns whether other sets deliver all that a delivery would, so that it has nothing to be Ready with. To wait for those
// sets instead could be to wait for each other: cycles were not looked for there.
func (a *assembler) lostAll(d *Delivery) bool {
	out := &a.out[slices.IndexFunc(a.in.Deliveries, func(o Delivery) bool { return o.Namespace == d.Namespace && o.Name == d.Name })]
	others := len(out.Wanted) + len(out.HandedOver) + len(out.NotOwned)
	return d.Result != nil && len(d.Result.Failed) == 0 && len(out.Lost) > 0 && others == 0
}

func (a *assembler) addonGate(d *Delivery, w *Wanted) string {
	for _, ref := range w.DependsOn {
		to, ok := a.find(d, ref)
		switch {
		case !ok && ref.AddonSet != "" && slices.Contains(d.Pending, ref.AddonSet):
			return fmt.Sprintf("waits for add-on %q of AddonSet %q, which selects this cluster and is not on it yet", ref.Name, ref.AddonSet)
		case !ok && ref.AddonSet == "" && d.Result != nil && d.Result.Failed[ref.Name] != nil:
			if d.Result.Failed[ref.Name].Waits() {
				return fmt.Sprintf("waits for add-on %q, which waits for a fact about the cluster", ref.Name)
			}
			return fmt.Sprintf("waits for add-on %q, which cannot be rendered", ref.Name)
		case ok && to.key.Kind != w.Kind && !a.ready(to):
			return fmt.Sprintf("waits for add-on %q (%s) to be Ready", ref.Name, to.key.Kind)
		}
	}
	return ""
}

// inTheWay returns the gate of an add-on without an object that has the former name of another add-on without one, or whose object still
// has that name; "" if there is none. If it came first, the other one would take it over. An add-on does not wait for one that waits for
// it. What has the name stays also if the other one cannot be delivered, and then no other set gets the name, but the platform's before a
// tenant's: two objects would look after the same.
func (a *assembler) inTheWay(delivery int, w *Wanted) string {
	for i := range a.out[delivery].Wanted {
		o := &a.out[delivery].Wanted[i]
		if a.wasCalled(delivery, o, w) && !a.isCalled(w) && !a.isCalled(o) && !a.after(delivery, o, w, map[string]bool{}) {
			return fmt.Sprintf("waits: add-on %q of the same AddonSet had this name before (movedFrom), and would take this add-on over if it "+
				"came first", o.Addon)
		}
	}
	for i := range a.in.Live { // in the order of the input, which is always the same
		l := &a.in.Live[i]
		if l.Addon != w.Addon || a.here(w) {
			continue
		}
		for by := range a.out {
			if why := a.out[by].Keeps[l.Key]; why != "" && a.keepsFrom(by, delivery, l) {
				return "waits: what has this name stays, since " + why
			}
		}
	}
	return ""
}

// keepsFrom returns whether a live object that stays for one delivery keeps its name from what another one wants.
func (a *assembler) keepsFrom(by, delivery int, l *Live) bool {
	if by == delivery {
		return l.of(&a.in.Deliveries[delivery])
	}
	return a.in.Deliveries[by].Platform || !a.in.Deliveries[delivery].Platform
}

// wasCalled returns whether an earlier name of an add-on is the present name of another add-on of its set.
func (a *assembler) wasCalled(delivery int, o, w *Wanted) bool {
	d := &a.in.Deliveries[delivery]
	return o.Kind == w.Kind && slices.Contains(o.MovedFrom, hubv1.MovedAddon{Namespace: d.Namespace, AddonSet: d.Set, Name: w.Addon})
}

// here returns whether an add-on has an object that stays.
func (a *assembler) here(w *Wanted) bool {
	l := a.live[Key(&w.Object)]
	return l != nil && !l.Going
}

// isCalled returns whether an add-on has an object that stays, and that has its name.
func (a *assembler) isCalled(w *Wanted) bool {
	return a.here(w) && a.live[Key(&w.Object)].Addon == w.Addon
}

// after returns whether an add-on depends on another one of its set, directly or through others.
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

// ready returns whether a dependency stays, and is Ready with its present content.
func (a *assembler) ready(w winner) bool {
	l := a.live[w.key]
	if l == nil || l.Going || !l.Ready {
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
