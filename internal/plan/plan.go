// SPDX-License-Identifier: Apache-2.0

// Package plan compares the Flux objects that a cluster should have with those that it has, and says what to do. It is
// pure: it decides, and writes nothing.
package plan

import (
	"cmp"
	"slices"

	"github.com/chandler-hub/chandler/internal/teardown"
)

// Key names a Flux object.
type Key struct{ Kind, Namespace, Name string }

// Desired is an object that the cluster should have.
type Desired struct {
	Key    Key
	Addon  string
	Hash   string
	Labels map[string]string
}

// Observed is an object of the hub's that is there.
type Observed struct {
	Key    Key
	Addon  string
	Hash   string
	Labels map[string]string
	// Generation of the object, and Applied, the one that the hub's last write led to; 0 if that is not known.
	Generation, Applied int64
	// DependsOn names the add-ons that this one was delivered after.
	DependsOn           []string
	Deleting, Suspended bool
}

// Verb is what to do with an object.
type Verb string

const (
	// Create it: it is not there.
	Create Verb = "Create"
	// Update it: it differs from what is desired, or somebody else has edited it.
	Update Verb = "Update"
	// Keep it: there is nothing to do.
	Keep Verb = "Keep"
	// AwaitCluster: it is not there, and may not be made before the cluster has answered.
	AwaitCluster Verb = "AwaitCluster"
	// AwaitRemoval: it may not be made, or changed, before another object is gone.
	AwaitRemoval Verb = "AwaitRemoval"
	// Uninstall it: resume it if need be, and delete it.
	Uninstall Verb = "Uninstall"
	// Release it: suspend it, and delete it.
	Release Verb = "Release"
	// AwaitDependants: it is to go, and others that depend on it go first.
	AwaitDependants Verb = "AwaitDependants"
	// Hold it: it is to go, and may not yet.
	Hold Verb = "Hold"
)

// Step is what to do with one object, and why, where that is not plain.
type Step struct {
	Key    Key
	Addon  string
	Verb   Verb
	Reason string
}

// Leaving is true if the object is on its way out.
func (s Step) Leaving() bool {
	switch s.Verb {
	case Uninstall, Release, AwaitDependants, Hold:
		return true
	}
	return false
}

// Input is what a plan is made from.
type Input struct {
	Desired  []Desired
	Observed []Observed
	// MayCreate is true if the cluster has answered and its kubeconfig mirror is in place.
	MayCreate bool
	// Frozen names objects that may be neither changed nor removed: the hub does not know what they should be.
	Frozen map[Key]bool
	// Removal decides how an object leaves that is no longer desired.
	Removal func(Observed) teardown.Decision
}

// Compute returns one step for each object, desired or there, sorted: what goes first, then what comes, in the order of
// Desired.
func Compute(in Input) []Step {
	observed := make(map[Key]*Observed, len(in.Observed))
	for i := range in.Observed {
		observed[in.Observed[i].Key] = &in.Observed[i]
	}
	desired := make(map[Key]bool, len(in.Desired))
	for _, d := range in.Desired {
		desired[d.Key] = true
	}
	var leaving []Observed
	for _, o := range in.Observed {
		if !desired[o.Key] && !in.Frozen[o.Key] {
			leaving = append(leaving, o)
		}
	}
	steps := removals(leaving, in.Removal)
	for _, d := range in.Desired {
		steps = append(steps, arrival(d, observed[d.Key], leaving, in.MayCreate))
	}
	return steps
}

func arrival(d Desired, o *Observed, leaving []Observed, mayCreate bool) Step {
	step := Step{Key: d.Key, Addon: d.Addon}
	switch {
	case o == nil && !mayCreate:
		step.Verb, step.Reason = AwaitCluster, "nothing is made before the cluster has answered"
	case o == nil && replaced(d, leaving) != "":
		step.Verb, step.Reason = AwaitRemoval, "waits for "+replaced(d, leaving)+", which delivered this add-on before, to be gone"
	case o == nil:
		step.Verb = Create
	case o.Deleting:
		step.Verb, step.Reason = AwaitRemoval, "the object is being deleted; it is made again when it is gone"
	case upToDate(d, o):
		step.Verb = Keep
	default:
		step.Verb = Update
	}
	return step
}

// replaced returns the object that delivered the same add-on in another form, if it is still there: a Kustomization
// that became a HelmRelease, say. Two at once would fight over the same objects on the cluster.
func replaced(d Desired, leaving []Observed) string {
	for _, o := range leaving {
		if o.Addon == d.Addon {
			return o.Key.Kind + " " + o.Key.Namespace + "/" + o.Key.Name
		}
	}
	return ""
}

// upToDate is the skip rule. The hash alone would miss an edit that somebody made to the spec; the generation alone
// would miss a change of ours to labels. An older generation than the one that we applied is only a cache that lags.
func upToDate(d Desired, o *Observed) bool {
	if o.Hash != d.Hash || o.Generation > o.Applied {
		return false
	}
	for k, v := range d.Labels {
		if o.Labels[k] != v {
			return false
		}
	}
	return true
}

// removals orders what leaves: an add-on goes when nothing that depends on it and leaves too is still there.
func removals(leaving []Observed, decide func(Observed) teardown.Decision) []Step {
	slices.SortFunc(leaving, func(a, b Observed) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Key.Kind, b.Key.Kind))
	})
	steps := make([]Step, 0, len(leaving))
	free := 0
	for _, o := range leaving {
		s := Step{Key: o.Key, Addon: o.Addon}
		d := decide(o)
		switch {
		case d.Mode == teardown.Release:
			s.Verb, s.Reason = Release, d.Reason
		case d.Mode == teardown.Uninstall && dependant(o, leaving) != "":
			s.Verb, s.Reason = AwaitDependants, "waits for add-on "+dependant(o, leaving)+", which depends on it, to be gone"
		case d.Mode == teardown.Uninstall:
			s.Verb, s.Reason = Uninstall, d.Reason
		default:
			s.Verb, s.Reason = Hold, d.Reason
		}
		if s.Verb != AwaitDependants {
			free++
		}
		steps = append(steps, s)
	}
	if free == 0 {
		// They all wait for each other. The compiler lets no cycle through, so somebody has edited the annotations.
		for i := range steps {
			steps[i].Verb, steps[i].Reason = Uninstall, "the dependencies form a cycle"
		}
	}
	return steps
}

func dependant(o Observed, leaving []Observed) string {
	for _, other := range leaving {
		if other.Addon != o.Addon && slices.Contains(other.DependsOn, o.Addon) {
			return other.Addon
		}
	}
	return ""
}
