// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"github.com/chandler-hub/chandler/internal/teardown"
)

// removals returns the steps for leaving objects. An add-on goes when no leaving object that depends on it is left.
func (in *Input) removals(leaving []Observed, observed map[Key]*Observed) []Step {
	slices.SortFunc(leaving, func(a, b Observed) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Key.Kind, b.Key.Kind))
	})
	steps := make([]Step, 0, len(leaving))
	staying, after := in.staying(leaving), dependants(leaving)
	waiting := 0
	for _, o := range leaving {
		s, handed := in.handOver(o, observed)
		if !handed {
			s, handed = in.leaves(o, staying)
		}
		if !handed {
			s = in.removal(o, after)
		}
		if s.Verb == AwaitDependants && o.NeededBy == "" {
			waiting++
		}
		s.Meanwhile = in.meanwhile(s, &o)
		steps = append(steps, s)
	}
	if waiting == len(steps) {
		// They all wait for each other. The compiler accepts no cycle, so a user has edited the annotations.
		for i := range steps {
			steps[i].Verb, steps[i].Reason = Uninstall, "the dependencies form a cycle"
		}
	}
	return steps
}

// meanwhile returns whether an object that stays for now is suspended or resumed, like any other: what it waits for
// may never come.
func (in *Input) meanwhile(s Step, o *Observed) Verb {
	waits := s.Verb == Hold || s.Verb == Ask || s.Verb == AwaitDependants
	if h, ok := in.hold(o.Addon, o); ok && waits && h.Verb != AwaitResume {
		return h.Verb
	}
	return ""
}

// handOver returns the step for a leaving object whose workload another object is to take over; false if there is
// none.
func (in *Input) handOver(o Observed, observed map[Key]*Observed) (Step, bool) {
	s := Step{Key: o.Key, Addon: o.Addon}
	if o.Replaced != "" {
		return s, false // what it looks after is on another cluster: there is nothing to take over, and the new one waits for it to be gone
	}
	for _, d := range in.Desired {
		if observed[d.Key] != nil || !Follows(d, o) ||
			!canTakeOver(d, o) || d.Key == o.Key {
			continue
		}
		if d.Gate != "" && in.outranks(o.Key, d.Key) {
			continue // it may never come, and its own set decides that
		}
		to := d.Key.String()
		switch {
		case in.Suspend != "": // the other could not be made, and nothing would deliver what this one has orphaned
			s.Verb, s.Reason = Hold, to+" takes it over when that is over: "+in.Suspend
		case !in.MayCreate:
			s.Verb, s.Reason = Hold, to+" takes it over when the cluster has answered"
		case d.Gate != "":
			s.Verb, s.Reason = Hold, to+" takes it over; it "+d.Gate
		case o.Foreign && !d.Recorded: // one of the hub's stays until the other one has its release
			s.Verb, s.Reason = Hold, to+" takes it over when that is written down"
		default:
			s.Verb, s.Reason, s.To = HandOver, to+" takes it over", d.Key
		}
		return s, true
	}
	return s, false
}

// outranks returns whether the first object is the platform's, and the second is not.
func (in *Input) outranks(a, b Key) bool {
	return in.Platform != nil && in.Platform(a.Namespace) && !in.Platform(b.Namespace)
}

// desires returns whether an object is desired.
func (in *Input) desires(k Key) bool {
	return slices.ContainsFunc(in.Desired, func(d Desired) bool { return d.Key == k })
}

func (in *Input) removal(o Observed, after map[string][]*Observed) Step {
	s := Step{Key: o.Key, Addon: o.Addon}
	switch d := in.Removal(o); {
	case o.Replaced != "":
		s.Verb, s.Reason = Orphan, o.Replaced
	case o.Foreign:
		s.Verb, s.Reason = Hold, "it is not the hub's, and its workload cannot be taken over as it is"
	case o.Deleting && o.Suspended && (d.Mode == teardown.Hold || d.Mode == teardown.Ask): // with its namespace, for example
		s.Verb, s.Reason = Orphan, teardown.DeletedSuspended
	case d.Mode == teardown.Orphan:
		s.Verb, s.Reason = Orphan, d.Reason
	case d.Mode == teardown.Ask:
		s.Verb, s.Reason = Ask, d.Reason
	case d.Mode == teardown.Uninstall && o.NeededBy != "":
		s.Verb, s.Reason = AwaitDependants, "waits for "+o.NeededBy+" to be gone, for which Flux needs the rights that it brings"
	case d.Mode == teardown.Uninstall:
		s.Verb, s.Reason = Uninstall, d.Reason
		if by := in.dependant(o, after); by != "" {
			s.Verb, s.Reason = AwaitDependants, "waits for add-on "+by+", which depends on it, to be gone"
		}
	default:
		s.Verb, s.Reason = Hold, d.Reason
	}
	return s
}

// ReplacedReason says why an object of a replaced cluster goes. What Flux remembers of the old cluster, it would
// remove from the new one.
const ReplacedReason = "the cluster behind the registration is another one now"

// dependants returns the leaving objects by each add-on and set that they were delivered after. A user who may write Flux objects in a
// namespace can have any number of them leave, so that none is compared with all others.
func dependants(leaving []Observed) map[string][]*Observed {
	after := map[string][]*Observed{}
	for i := range leaving {
		for _, name := range leaving[i].DependsOn {
			after[name] = append(after[name], &leaving[i])
		}
	}
	return after
}

// dependant returns the add-on of a leaving object that depends on another one, or on the whole set of that; "" if there is none. What the
// platform removes does not wait for a tenant's, which his removal guard or a finalizer of his may keep for ever. after is what dependants
// returned.
func (in *Input) dependant(o Observed, after map[string][]*Observed) string {
	for _, other := range after[o.Addon] {
		if other.Key != o.Key && other.Addon != o.Addon && !in.outranks(o.Key, other.Key) {
			return other.Addon
		}
	}
	for _, other := range after[SetBefore(o.Set)] { // of one namespace, so that neither outranks the other
		if other.Key.Namespace == o.Key.Namespace && other.Set != o.Set {
			return other.Addon
		}
	}
	return ""
}

// SetBefore is the form in which DependsOn names a whole set.
func SetBefore(set string) string { return "set/" + set }
