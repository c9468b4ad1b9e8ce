// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// notes returns what Flux has recorded on the cluster for an object, and would remove with it.
func (o *Observed) notes() []string {
	switch {
	case !o.Noted:
		return nil
	case o.AppliedAs != "":
		return []string{has(o.Release, o.AppliedAs)}
	}
	return o.Has()
}

// Leaves returns what a finished object has left: what Flux has recorded, unless Flux has removed that; what Flux has
// tried and not recorded; and what existed before the object was made, if Flux has never recorded anything.
func (o *Observed) Leaves(noted, tried, never bool, inherited []string) []string {
	var out []string
	if noted {
		out = append(out, o.Has()...)
	} else if tried || o.AppliedAs != "" && o.AppliedAs != o.hash() {
		out = append(out, has(o.Release, o.hash()))
	}
	if never {
		out = append(out, inherited...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// finish returns the step for a finished object. It goes if nothing is left, or if another object has recorded as its
// own what is left. If another object is to go on with that, this one waits for it, because nothing else records it; not if the
// other one waits for add-ons that may never be Ready. Otherwise it is reported and let go.
func (in *Input) finish(o Observed, observed map[Key]*Observed, by candidates) Step {
	s := Step{Key: o.Key, Addon: o.Addon, Verb: Finish}
	if len(o.Left) == 0 {
		return s
	}
	if o.Replaced != "" {
		s.Verb, s.Reason = LetGo, o.Replaced
		return s
	}
	heir, has := in.heir(o, observed, by)
	switch gate := in.gate(heir, observed); {
	case has:
		s.Reason = heir.String() + " has taken it over"
	case heir != Key{} && in.Suspend != "":
		s.Verb, s.Reason = Hold, heir.String()+" takes it over when that is over: "+in.Suspend
	case gate != "": // it may never come
		s.Verb, s.Reason = LetGo, "its Flux object was deleted, and Flux has not removed it; "+heir.String()+" takes it over later: it "+gate
	case heir != Key{}:
		s.Verb, s.Reason, s.To = HandOver, heir.String()+" takes it over", heir
	default:
		s.Verb, s.Reason = LetGo, "its Flux object was deleted, and Flux has not removed it"
		if in.Frozen[o.Key] {
			break // nobody knows whether it is wanted
		}
		if d := in.Removal(o); d.Mode == teardown.Hold {
			s.Verb, s.Reason = Hold, d.Reason
		} else if d.Mode == teardown.LetGo {
			s.Reason = cmp.Or(d.Reason, s.Reason)
		}
	}
	return s
}

// gate says what an object that is to go on with something waits for; "" for nothing.
func (in *Input) gate(k Key, observed map[Key]*Observed) string {
	for i := range in.Desired {
		if d := &in.Desired[i]; d.Key == k && d.gated(observed[k]) {
			return d.Gate
		}
	}
	return ""
}

// before returns what happens to a finished object in whose place another one cannot be made yet. If nothing is left,
// the object goes. Otherwise it stays, to remember what is left, unless the other one waits for add-ons that may
// never be Ready.
func (o *Observed) before(s Step) []Step {
	switch {
	case len(o.Left) == 0:
		return []Step{{Key: o.Key, Addon: o.Addon, Verb: Finish}}
	case s.Verb == AwaitDependency:
		return []Step{{Key: o.Key, Addon: o.Addon, Verb: LetGo,
			Reason: "its Flux object was deleted, and Flux has not removed it; it is made again later: it " + s.Reason}}
	}
	return nil
}

// heir returns the object that is to go on with what a finished object has left, and whether Flux has recorded all of
// that as the heir's; an empty key if there is none. A tenant's object is no heir of a platform object if nobody
// delivers it and Flux has recorded nothing for it: it may be forged, and may never deliver anything. by is what candidates returned.
func (in *Input) heir(o Observed, observed map[Key]*Observed, by candidates) (key Key, has bool) {
	for _, d := range in.Desired {
		if d.Key == o.Key || d.Key.Kind != o.Key.Kind || !subset(o.Left, d.Has()) || d.Key != o.Heir && !Follows(d, o) {
			continue
		}
		h := observed[d.Key]
		return d.Key, h != nil && subset(o.Left, h.notes())
	}
	k, seen := o.Heir, map[Key]bool{o.Key: true}
	for ; observed[k] != nil && !seen[k] && len(seen) <= maxHeirs; k = observed[k].Heir {
		seen[k] = true
		h := observed[k]
		if subset(o.Left, h.notes()) {
			return k, true
		}
		if !h.Deleting && h.Replaced == "" && subset(o.Left, h.Has()) && !in.outranks(o.Key, k) {
			return k, false
		}
	}
	return in.goesOn(o, by)
}

// maxHeirs is how many objects are looked at of a chain in which each is the heir of the one before. A chain has an object for each time
// that an add-on was moved while Flux was not done with the move before; a longer one is forged.
const maxHeirs = 32

// workload is a Helm release of a kind of Flux object, and record is what Flux has recorded of it, in the form of Has.
type (
	workload struct {
		kind    string
		release hubv1.HelmReleaseIdentity
	}
	record struct {
		workload
		what string
	}
)

// candidates are the objects that stay and have a Helm release, by their place in Observed: the first of each release, the first of the
// platform's, and all of which Flux has recorded something. They are found once for all that is finished: whoever may write Flux objects in
// his own namespace can have any number of both.
type candidates struct {
	first, platforms map[workload]int
	recorded         map[record][]int
}

func (in *Input) candidates() candidates {
	by := candidates{map[workload]int{}, map[workload]int{}, map[record][]int{}}
	for i := range in.Observed {
		h := &in.Observed[i]
		if h.Release.Name == "" || h.Deleting || h.Replaced != "" {
			continue
		}
		w := workload{h.Key.Kind, h.Release}
		if _, ok := by.first[w]; !ok {
			by.first[w] = i
		}
		if _, ok := by.platforms[w]; !ok && in.Platform != nil && in.Platform(h.Key.Namespace) {
			by.platforms[w] = i
		}
		for _, what := range h.notes() {
			by.recorded[record{w, what}] = append(by.recorded[record{w, what}], i)
		}
	}
	return by
}

// goesOn returns the first object that stays and has the release of a finished one, and whether Flux has recorded for it all that is left.
// A tenant's that it has not is none of a platform object.
func (in *Input) goesOn(o Observed, by candidates) (key Key, has bool) {
	w, first := workload{o.Key.Kind, o.Release}, by.first
	if in.Platform != nil && in.Platform(o.Key.Namespace) {
		first = by.platforms
	}
	at, ok := first[w]
	for _, i := range by.recorded[record{w, o.Left[0]}] {
		if ok && i >= at {
			break
		}
		if subset(o.Left, in.Observed[i].notes()) {
			at, ok = i, true
		}
	}
	if !ok {
		return Key{}, false
	}
	h := &in.Observed[at]
	return h.Key, subset(o.Left, h.notes())
}

// subset returns whether every element of the first list is in the second.
func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}
