// SPDX-License-Identifier: Apache-2.0

package plan

// Verb is what to do with an object.
type Verb string

const (
	// Create it: it does not exist.
	Create Verb = "Create"
	// Update it: it differs from what is desired, or another writer has edited it.
	Update Verb = "Update"
	// Keep it: there is nothing to do.
	Keep Verb = "Keep"
	// AwaitCluster: it may not be created or updated before the cluster has answered.
	AwaitCluster Verb = "AwaitCluster"
	// AwaitDependency: it may not be created or updated before something else is Ready.
	AwaitDependency Verb = "AwaitDependency"
	// AwaitRemoval: it may not be created or updated before another object is gone.
	AwaitRemoval Verb = "AwaitRemoval"
	// Suspend it: the cluster is paused, or does not answer.
	Suspend Verb = "Suspend"
	// Resume it.
	Resume Verb = "Resume"
	// AwaitResume: it stays as it is while it is suspended.
	AwaitResume Verb = "AwaitResume"
	// Uninstall it: resume it if it is suspended, and delete it.
	Uninstall Verb = "Uninstall"
	// Orphan: suspend it, and delete it. What it has applied stays on the cluster.
	Orphan Verb = "Orphan"
	// HandOver it: as Orphan, but another object goes on with what it leaves. It is an orphan until Flux has recorded that.
	HandOver Verb = "HandOver"
	// AwaitDependants: it is to go, after others that depend on it.
	AwaitDependants Verb = "AwaitDependants"
	// Ask the set's removal guard: it is to go, or to be reinstalled, and stays as it is until that is granted.
	Ask Verb = "Ask"
	// Hold it: it is to go, but not yet.
	Hold Verb = "Hold"
)

// Orphans returns whether what the object has applied belongs to no Flux object after it.
func (v Verb) Orphans() bool { return v == Orphan || v == HandOver }

// Writes returns whether the verb writes what is desired.
func (v Verb) Writes() bool { return v == Create || v == Update }

// Step is what to do with one object, and why, if that is not obvious.
type Step struct {
	Key    Key
	Addon  string
	Verb   Verb
	Reason string
	// To is the object that takes over, in a HandOver.
	To Key
	// Meanwhile is Suspend or Resume, if that is to be done with an object that waits to go; empty if neither.
	Meanwhile Verb
	// Reinstall is where an update would put the workload; nil if it stays where it is.
	Reinstall *Place
}

// Leaving is true if the object is to go.
func (s Step) Leaving() bool {
	switch s.Verb {
	case Ask:
		return s.Reinstall == nil
	case Uninstall, Orphan, HandOver, AwaitDependants, Hold:
		return true
	}
	return false
}
