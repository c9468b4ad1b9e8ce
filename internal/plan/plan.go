// SPDX-License-Identifier: Apache-2.0

// Package plan compares the Flux objects that a cluster should have with those that it has, and says what to do with
// each. It is pure: it decides, and writes nothing.
//
// # Algorithm
//
// Compute makes one plan for one cluster, over all sets that deliver to it. It looks at one moment only. The caller
// carries out all steps of a plan, and computes the next one when something has changed. A step that waits names what
// it waits for, and has no other effect.
//
//  1. Objects that nobody desires leave. An object also leaves if a desired object has its name and is to go on with
//     the workload of yet another object (obstructed).
//  2. Each leaving object gets the first of these that applies. Flux has finished with it: it is decided what becomes
//     of what it left (finish). A desired object can take its workload over: it is handed over, as soon as the other one
//     may be created (handOver). Another object has the same Helm release, and stays: it is handed over as well (leaves).
//     Otherwise package teardown decides, and dependants go first (removal).
//  3. Frozen objects stay as they are (frozen).
//  4. Each desired object passes these gates in this order (arrival): it was not made for another cluster; the cluster
//     is not suspended; the cluster has answered; its dependencies are Ready; every object that delivered the same
//     before is gone; the removal guard allows a reinstall. The first gate that is closed gives the step. Behind the
//     last one, an object that is missing is created, one that differs is updated, and any other is kept.
//
// # Verbs
//
// Create and Update write an object. Suspend and Resume set and unset spec.suspend. Uninstall, LetGo, HandOver and
// Finish delete an object, and differ in what becomes of its workload: Flux removes it; it stays, and is reported as an
// orphan; it stays, and another object goes on with it; nothing is left of it. All other verbs leave an object as it is,
// and say why: Keep, Hold, Ask, AwaitCluster, AwaitDependency, AwaitRemoval, AwaitDependants and AwaitResume.
//
// # Invariants
//
//   - Every desired object has one step, and so has every other object, unless it is frozen. A name has two steps at
//     most: that of the object that goes, and then that of the one that comes.
//   - The order of the steps depends on names and on the order of Desired, not on the order of Observed.
//   - Nothing is created or updated before the cluster has answered, or while it is suspended.
//   - No workload has two objects: none is created for a workload that another object still has, and no object is
//     uninstalled whose workload another object goes on with.
//   - A frozen object is neither updated nor uninstalled. An object that was made for another cluster is not either: it
//     is let go, since Flux would act on the cluster that is there now.
//   - What the hub did not make is handed over, or it stays.
//   - An add-on is uninstalled after all leaving add-ons that depend on it. A cycle of them is uninstalled at once.
//   - No update makes Flux reinstall a workload unless the removal guard allows it.
//   - The platform's objects do not wait for a tenant's object that may never come.
package plan

import (
	"cmp"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Key names a Flux object.
type Key struct{ Kind, Namespace, Name string }

func (k Key) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

// ParseKey reads what String wrote; zero if it is none.
func ParseKey(s string) Key {
	kind, name, _ := strings.Cut(s, " ")
	namespace, name, ok := strings.Cut(name, "/")
	if !ok {
		return Key{}
	}
	return Key{kind, namespace, name}
}

// Desired is an object that the cluster should have.
type Desired struct {
	Key    Key
	Addon  string
	Hash   string
	Labels map[string]string
	// Release is set for a HelmRelease.
	Release hubv1.HelmReleaseIdentity
	// Recorded is true if the status says which release it goes on with, or its add-on's name does.
	Recorded bool
	// Predecessors are objects whose workload it takes over. If an object has its name, that is another delivery's, and
	// has to go first.
	Predecessors []Key
	// Gate says what it waits for before it is created or updated; empty for nothing.
	Gate string
	// Once is true if it is created, and never updated.
	Once bool
	// Content is what a Kustomization is to apply.
	Content
	// Chart is the chart of a HelmRelease, if Flux reinstalls when the chart changes; empty if Flux would upgrade in
	// place.
	Chart string
	// MayReinstall is true if the set's removal guard grants an edit for which Flux uninstalls the workload and installs
	// it anew.
	MayReinstall bool
}

// Observed is an existing object: one of the hub's, or one that somebody wrote by hand and that is taken over.
type Observed struct {
	Key   Key
	Addon string
	// Set is the AddonSet that delivers it.
	Set    string
	Hash   string
	Labels map[string]string
	// Release is what a HelmRelease asks for. InstalledAs is what Flux has installed, if that is another one; zero if
	// not, or not known.
	Release, InstalledAs hubv1.HelmReleaseIdentity
	// Content is what a Kustomization asks for.
	Content
	// Mark is what Desired.Mark has noted on a Kustomization, and AppliedAs is what ReadMark returns for it.
	AppliedAs, Mark string
	// Chart is the chart that a HelmRelease asks for, and Installed is the one that Flux has installed, each by its
	// name; empty if that is not known.
	Chart, Installed string
	// Foreign is true if it is not the hub's.
	Foreign bool
	// Generation is the object's. Applied is its generation after the hub's last write; 0 if that is not known.
	Generation, Applied int64
	// DependsOn names the add-ons that this one was delivered after, and sets in the form of SetBefore.
	DependsOn []string
	// Replaced says why it is to be let go, whatever is desired: it was made for a cluster that was behind the
	// registration before, or another registration of the cluster is served. It is empty if neither is so.
	Replaced string
	// Suspended is true if Flux leaves it alone, and Held if the hub has asked for that.
	Deleting, Suspended, Held bool
	// Noted is true if Flux has recorded what it has on the cluster for it.
	Noted bool
	// Finished is true if it is being deleted, and Flux has finished with it. Left is what it has left then, in the form
	// of Has.
	Finished bool
	Left     []string
	// Heir is the object that was to go on with that; zero if it was not handed over.
	Heir Key
}

// Verb is what to do with an object.
type Verb string

const (
	// Create it: it does not exist.
	Create Verb = "Create"
	// Update it: it differs from what is desired, or somebody else has edited it.
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
	// LetGo: suspend it, and delete it. What it has applied stays on the cluster.
	LetGo Verb = "LetGo"
	// HandOver it: as LetGo, but another object goes on with what it leaves.
	HandOver Verb = "HandOver"
	// Finish it: Flux has finished with it, and nothing is left of it that is not another object's.
	Finish Verb = "Finish"
	// AwaitDependants: it is to go, after others that depend on it.
	AwaitDependants Verb = "AwaitDependants"
	// Ask the set's removal guard: it is to go, or to be reinstalled, and stays as it is until that is granted.
	Ask Verb = "Ask"
	// Hold it: it is to go, but not yet.
	Hold Verb = "Hold"
)

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
	case Uninstall, LetGo, HandOver, Finish, AwaitDependants, Hold:
		return true
	}
	return false
}

// Input is what a plan is made from.
type Input struct {
	Desired  []Desired
	Observed []Observed
	// MayCreate is true if the cluster has answered: before that nothing is created or updated.
	MayCreate bool
	// Suspend says why the cluster's objects are to be suspended; empty if they are not.
	Suspend string
	// Frozen names objects that may be neither updated nor removed: the hub does not know what they should be.
	Frozen map[Key]bool
	// Removal decides how an object leaves that is not desired any more.
	Removal func(Observed) teardown.Decision
	// Platform says which namespaces are the platform's; nil for none. The platform's objects do not wait for a
	// tenant's.
	Platform func(namespace string) bool
}

// Compute returns the steps for all objects, desired or observed: first those of objects that go, and then those of
// desired objects, in the order of Desired.
func Compute(in Input) []Step {
	observed := make(map[Key]*Observed, len(in.Observed))
	for i := range in.Observed {
		observed[in.Observed[i].Key] = &in.Observed[i]
	}
	desired := make(map[Key]bool, len(in.Desired))
	for _, d := range in.Desired {
		desired[d.Key] = true
	}
	for _, d := range in.Desired {
		if d.obstructed(observed) {
			desired[d.Key] = false
		}
	}
	var leaving []Observed
	for _, o := range in.Observed {
		if !desired[o.Key] && (o.Finished || !in.Frozen[o.Key]) {
			leaving = append(leaving, o)
		}
	}
	steps := in.removals(leaving, observed)
	steps = append(steps, in.frozen()...)
	for _, d := range in.Desired {
		if d.obstructed(observed) {
			steps = append(steps,
				Step{Key: d.Key, Addon: d.Addon, Verb: AwaitRemoval, Reason: "waits for the object of another set to be gone that has its name"})
			continue
		}
		o, s := observed[d.Key], in.arrival(d, observed[d.Key], leaving)
		if o != nil && o.Finished && s.Verb != Create {
			steps = append(steps, o.before(s)...)
		}
		steps = append(steps, s)
	}
	return steps
}

// frozen returns the steps that suspend and resume frozen objects. If there is nothing to do, there is no step:
// nobody knows what such an object should be.
func (in *Input) frozen() []Step {
	var steps []Step
	for _, o := range in.Observed {
		if o.Finished {
			continue // it stays for nobody
		}
		if o.Replaced != "" && in.Frozen[o.Key] {
			steps = append(steps, Step{Key: o.Key, Addon: o.Addon, Verb: LetGo, Reason: o.Replaced})
			continue
		}
		if s, ok := in.hold(o.Addon, &o); ok && in.Frozen[o.Key] && s.Verb != AwaitResume {
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Compare(a.Key.Namespace+"/"+a.Key.Name, b.Key.Namespace+"/"+b.Key.Name)
	})
	return steps
}

// hold returns the step that follows from the cluster's suspension for an object; false if there is none.
func (in *Input) hold(addon string, o *Observed) (Step, bool) {
	s := Step{Key: o.Key, Addon: addon}
	switch {
	case o.Deleting || o.Foreign:
		return s, false
	case in.Suspend != "" && !(o.Held && o.Suspended):
		s.Verb, s.Reason = Suspend, in.Suspend
	case in.Suspend != "":
		s.Verb, s.Reason = AwaitResume, in.Suspend
	case o.Held:
		s.Verb = Resume
	default:
		return s, false
	}
	return s, true
}

// obstructed returns whether a desired object that is to go on with a predecessor's workload finds another workload's
// object under its name. If that object were updated, the predecessor's workload would have two owners.
func (d *Desired) obstructed(observed map[Key]*Observed) bool {
	there := func(k Key) bool { return k != d.Key && observed[k] != nil }
	return observed[d.Key] != nil && slices.ContainsFunc(d.Predecessors, there)
}

func (in *Input) arrival(d Desired, o *Observed, leaving []Observed) Step {
	step := Step{Key: d.Key, Addon: d.Addon}
	if o != nil && o.Replaced != "" && !(o.Finished && len(o.Left) == 0) {
		step.Verb, step.Reason = LetGo, o.Replaced
		return step
	}
	if o != nil {
		// An object that is about to be resumed is updated before that, if it may be updated.
		if s, ok := in.hold(d.Addon, o); ok && (s.Verb != Resume || d.Once || d.Gate != "" || !in.MayCreate || upToDate(d, o) || d.asks(o)) {
			return s
		}
	}
	gone := o == nil || o.Finished // which is made again, and goes on with what it has left
	switch {
	case gone && in.Suspend != "":
		step.Verb, step.Reason = AwaitResume, in.Suspend
	case gone && !in.MayCreate:
		step.Verb, step.Reason = AwaitCluster, "nothing is made before the cluster has answered"
	case !in.MayCreate && !o.Deleting && !d.Once && !upToDate(d, o):
		// As after its registration was made again: the cluster's UID and version are part of what is desired.
		step.Verb, step.Reason = AwaitCluster, "nothing is changed before the cluster has answered"
	case d.Gate != "" && (o == nil || o.Finished && len(o.Left) == 0 || !d.Once && o.Hash != d.Hash):
		step.Verb, step.Reason = AwaitDependency, d.Gate
	case gone && replaced(d, leaving) != "":
		step.Verb, step.Reason = AwaitRemoval, "waits for "+replaced(d, leaving)+", which delivered this add-on before, to be gone"
	case gone && o != nil && o.Replaced != "":
		step.Verb, step.Reason = AwaitRemoval, ReplacedReason
	case gone:
		step.Verb = Create
	case o.Deleting:
		step.Verb, step.Reason = AwaitRemoval, "the object is being deleted; it is made again when it is gone"
	case d.Once || upToDate(d, o):
		step.Verb = Keep
	case d.movesOnto(o, leaving) != "":
		step.Verb, step.Reason = AwaitRemoval, "waits for "+d.movesOnto(o, leaving)+", which has the release, to be gone"
	case d.asks(o):
		from, to, _ := d.Reinstall(o)
		step.Verb, step.Reason = Ask, guard.ReinstallHeld(from.String(), to.String())
	default:
		step.Verb = Update
	}
	if _, to, anew := d.Reinstall(o); anew && !d.Once && !gone {
		step.Reinstall = &to
	}
	return step
}

// replaced returns an existing object that delivered the same before, in another form or from another place; "" if
// there is none. Two at once would fight over the same objects on the cluster.
func replaced(d Desired, leaving []Observed) string {
	for _, o := range leaving {
		ready := o.Finished && (len(o.Left) == 0 || o.Heir == d.Key)
		if Follows(d, o) && !ready {
			return o.Key.String()
		}
	}
	return ""
}

// Follows returns whether a desired object delivers what another one did.
func Follows(d Desired, o Observed) bool {
	return !o.Foreign && d.Addon == o.Addon || d.sameRelease(&o) || slices.Contains(d.Predecessors, o.Key)
}

func (d *Desired) sameRelease(o *Observed) bool {
	same := func(r hubv1.HelmReleaseIdentity) bool {
		return r.Name == d.Release.Name && r.StorageNamespace == d.Release.StorageNamespace
	}
	return d.Release.Name != "" && (same(o.Release) || same(o.InstalledAs))
}

// canTakeOver returns whether the workload can go from one object to the other as it is. Flux takes over a Helm
// release if name and namespaces are the same (helm-controller, DetermineReleaseState), and labels what a
// Kustomization applies as the new owner's. If the new object applied another folder, or elsewhere, nobody would own
// what the old one has applied: the new one does not know of it, and does not prune it. The same is true if Flux has
// installed or applied something else than the old one asks for now.
func canTakeOver(d Desired, o Observed) bool {
	installed := o.InstalledAs == (hubv1.HelmReleaseIdentity{}) || o.InstalledAs == d.Release
	applied := o.AppliedAs == "" || o.AppliedAs == d.hash()
	return d.Key.Kind == o.Key.Kind && d.Release == o.Release && installed && d.Content == o.Content && applied
}

// upToDate is the rule for skipping a write. The hash alone would miss that somebody edited the spec, and the
// generation alone would miss that the hub's own labels changed. If the generation is older than the one after the
// hub's last write, it is only the cache that is stale.
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

// removals returns the steps for leaving objects. An add-on goes when no leaving object that depends on it is left.
func (in *Input) removals(leaving []Observed, observed map[Key]*Observed) []Step {
	slices.SortFunc(leaving, func(a, b Observed) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Key.Kind, b.Key.Kind))
	})
	steps := make([]Step, 0, len(leaving))
	waiting := 0
	for _, o := range leaving {
		if o.Finished {
			steps = append(steps, in.finish(o, observed))
			continue
		}
		s, handed := in.handOver(o, observed)
		if !handed {
			s, handed = in.leaves(o, leaving)
		}
		if !handed {
			s = in.removal(o, leaving)
		}
		if s.Verb == AwaitDependants {
			waiting++
		}
		s.Meanwhile = in.meanwhile(s, &o)
		steps = append(steps, s)
	}
	if waiting == len(steps) {
		// They all wait for each other. The compiler accepts no cycle, so somebody has edited the annotations.
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
		if there := observed[d.Key]; there != nil && !there.Finished && !d.obstructed(observed) || !Follows(d, o) ||
			!canTakeOver(d, o) || d.Key == o.Key {
			continue
		}
		if (d.Gate != "" || d.obstructed(observed)) && in.outranks(o.Key, d.Key) {
			continue // it may never come, and its own set decides that
		}
		to := d.Key.String()
		switch {
		case d.obstructed(observed):
			s.Verb, s.Reason = Hold, to+" takes it over when the object of another set is gone that has its name"
		case in.Suspend != "": // the other could not be made, and nobody would deliver what this one has let go
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

func (in *Input) removal(o Observed, leaving []Observed) Step {
	s := Step{Key: o.Key, Addon: o.Addon}
	switch d := in.Removal(o); {
	case o.Replaced != "":
		s.Verb, s.Reason = LetGo, o.Replaced
	case o.Foreign:
		s.Verb, s.Reason = Hold, "it is not the hub's, and its workload cannot be taken over as it is"
	case d.Mode == teardown.LetGo:
		s.Verb, s.Reason = LetGo, d.Reason
	case d.Mode == teardown.Ask:
		s.Verb, s.Reason = Ask, d.Reason
	case d.Mode == teardown.Uninstall && dependant(o, leaving) != "":
		s.Verb, s.Reason = AwaitDependants, "waits for add-on "+dependant(o, leaving)+", which depends on it, to be gone"
	case d.Mode == teardown.Uninstall:
		s.Verb, s.Reason = Uninstall, d.Reason
	default:
		s.Verb, s.Reason = Hold, d.Reason
	}
	return s
}

// ReplacedReason says why an object of a replaced cluster goes. What Flux remembers of the old cluster, it would
// remove from the new one.
const ReplacedReason = "the cluster behind the registration is another one now"

func dependant(o Observed, leaving []Observed) string {
	for _, other := range leaving {
		mine := other.Key.Namespace == o.Key.Namespace && other.Set != o.Set && slices.Contains(other.DependsOn, SetBefore(o.Set))
		if other.Key != o.Key && !other.Finished && (other.Addon != o.Addon && slices.Contains(other.DependsOn, o.Addon) || mine) {
			return other.Addon
		}
	}
	return ""
}

// SetBefore is the form in which DependsOn names a whole set.
func SetBefore(set string) string { return "set/" + set }
