// SPDX-License-Identifier: Apache-2.0

// Package assembly combines what all sets deliver to one cluster. It decides which set wins a conflict, which add-on
// comes after which, and which add-on takes over from which. It is pure, and looks at one cluster at a time.
package assembly

import (
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// Delivery is what one set delivers to the cluster.
type Delivery struct {
	// Namespace and Set name the AddonSet, Name the AddonDelivery.
	Namespace, Set, Name string
	// Platform and Priority decide conflicts.
	Platform bool
	Priority int32
	// Since is when the set could first be delivered to the cluster, if that is what is known instead of the live objects; zero if not, or if
	// nothing is there yet. Between equals, who came first keeps what both want.
	Since time.Time
	// Leaving is true if the delivery is being withdrawn, and Ends if its set is being deleted.
	Leaving, Ends bool
	// Returns is true if it is being withdrawn, and its set makes it again when it is gone.
	Returns bool
	// Result is nil if rendering failed: the delivery's objects stay as they are.
	Result *render.Result
	// Stays names add-ons that have an object and stay as they are, whatever Result says.
	Stays map[string]bool
	// Over names add-ons that have no object, and that the set does not want on the cluster any more: see claim.
	Over map[string]bool
	// Moves maps each add-on to its earlier names.
	Moves map[string][]hubv1.MovedAddon
	// DependsOn names sets of the same namespace, and Pending those of them that are about to be delivered here.
	DependsOn, Pending []string
	// Latched is true if all objects of the present revision have been written once: then no gate closes again for one that is there.
	Latched bool
	// Ready is true if every add-on has been Ready on the present revision, on the present cluster.
	Ready bool
}

// Live is an existing Flux object of the hub.
type Live struct {
	Key plan.Key
	// Set is the value of the label: the set's name, shortened if it is too long.
	Addon, Set, Delivery string
	Release              hubv1.HelmReleaseIdentity
	// Kept is the Helm release that the object goes on with, if its add-on's name would give another one.
	Kept hubv1.HelmReleaseIdentity
	// Content is what a Kustomization applies.
	Content plan.Content
	Hash    string
	// Ready is true if Flux reports Ready for the generation that the hub applied.
	Ready bool
	// Going is true if the object goes, whatever any set wants: it is being deleted, or was made for another cluster.
	Going bool
}

// Foreign is a HelmRelease for this cluster that the hub did not make.
type Foreign struct {
	Key     plan.Key
	Release hubv1.HelmReleaseIdentity
}

// Input is what the hub knows about the cluster.
type Input struct {
	Deliveries []Delivery
	Live       []Live
	Foreign    []Foreign
	// Adopted are hand-written objects that an add-on may take over.
	Adopted map[plan.Key]bool
	// End is true if all that depends on something counts as having come after it: where it all leads to.
	End bool
}

// Portion is the part of a delivery that it may deliver on this cluster.
type Portion struct {
	Wanted []Wanted
	// Lost maps each add-on that another set delivers to a text that names that set.
	Lost map[string]string
	// HandedOver are the lost add-ons that another set still delivers for now. This set takes each over by movedFrom
	// when the other set no longer delivers it.
	HandedOver map[string]bool
	// Yields are objects that would stay as they are, but must go: another object has the same workload.
	Yields map[plan.Key]bool
	// NotOwned maps each add-on whose release belongs to another owner to a text that names the owner.
	NotOwned map[string]string
	// Keeps are objects that stay because an add-on is to take them over, and cannot now. The text says that.
	Keeps map[plan.Key]string
}

// Wanted is an object to be delivered.
type Wanted struct {
	flux.Object
	// Gate says what the object waits for before the hub creates or changes it; empty for nothing.
	Gate string
	// Predecessors are objects whose workload it takes over.
	Predecessors []plan.Key
}

// Key names an object.
func Key(o *flux.Object) plan.Key {
	return plan.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// Content returns what a Kustomization applies; zero for a HelmRelease.
func Content(o *flux.Object) plan.Content {
	if o.Kind != fluxspec.KustomizationKind {
		return plan.Content{}
	}
	return plan.Content{Namespace: o.TargetNamespace, Names: plan.Names(o.NamePrefix, o.NameSuffix), Folder: plan.FolderOf(o.Path)}
}

// Assemble returns a portion for each delivery, in the order of the input.
func Assemble(in Input) []Portion {
	a := assembler{in: in, live: map[plan.Key]*Live{}, winners: map[string]winner{}}
	for i := range in.Live {
		a.live[in.Live[i].Key] = &in.Live[i]
	}
	for range in.Deliveries {
		a.out = append(a.out, Portion{Lost: map[string]string{}, HandedOver: map[string]bool{}, NotOwned: map[string]string{},
			Keeps: map[plan.Key]string{}, Yields: map[plan.Key]bool{}})
	}
	a.names()
	a.decide()
	a.keep()
	a.link()
	a.gates()
	return a.out
}

type assembler struct {
	in      Input
	live    map[plan.Key]*Live
	out     []Portion
	winners map[string]winner // by add-on
	// takes are the live objects that objects of deliveries go on with by movedFrom.
	takes map[*flux.Object]*Live
	// given are the live objects that their own sets give to another add-on of theirs.
	given map[plan.Key]bool
	// taken are those that another add-on goes on with that delivers the same, and kept those that have such an add-on of their own name.
	taken, kept map[plan.Key]bool
}

// winner is the delivery that delivers an add-on.
type winner struct {
	delivery int
	key      plan.Key
	held     bool // it is there, and stays as it is
}

// entry is the object that a claim is for.
type entry struct {
	delivery int
	object   *flux.Object
	held     *Live // instead of object: something that stays as it is
}

func (e entry) key() plan.Key {
	if e.held != nil {
		return e.held.Key
	}
	return Key(e.object)
}

// decide decides which delivery delivers which add-on.
func (a *assembler) decide() {
	claims, entries := a.claims()
	for i, v := range decide(claims) {
		if entries[i].held != nil {
			a.settleHeld(claims[i].Addon, entries[i], v, entries[v.Winner])
			continue
		}
		a.settle(claims[i].Addon, entries[i], v, entries[v.Winner].key())
	}
	a.keepTogether()
}

// claims returns what each delivery claims, and the entry of each claim: the objects that it has and that stay as they
// are, and those that it is to have.
func (a *assembler) claims() (claims []claim, entries []entry) {
	for i := range a.in.Deliveries {
		d := &a.in.Deliveries[i]
		if d.Leaving {
			continue
		}
		for j := range a.in.Live {
			l := &a.in.Live[j]
			if l.Delivery == d.Name && l.Key.Namespace == d.Namespace && Held(d, l.Addon) {
				c := a.claim(d, l.Addon, l.Release, l.Key)
				c.Held = !l.Going
				claims, entries = append(claims, c), append(entries, entry{i, nil, l})
			}
		}
		if d.Result == nil {
			continue
		}
		for j := range d.Result.Objects {
			o := &d.Result.Objects[j]
			if Held(d, o.Addon) {
				continue // its object was claimed above, and if it has none, none is made
			}
			c := a.claim(d, o.Addon, o.Release, Key(o))
			c.Over, c.Takes = d.Over[o.Addon], a.takes[o] != nil
			claims, entries = append(claims, c), append(entries, entry{i, o, nil})
		}
	}
	return claims, entries
}

// keepTogether makes an add-on of manifests lose together with its CustomResourceDefinitions, which are a release of
// their own.
func (a *assembler) keepTogether() {
	for i := range a.out {
		out := &a.out[i]
		out.Wanted = slices.DeleteFunc(out.Wanted, func(w Wanted) bool {
			base, ok := strings.CutSuffix(w.Addon, compile.CRDSuffix)
			if !ok || w.Form != fluxspec.ManifestsKind {
				return false
			}
			why, lost := out.Lost[base]
			theirs, notOwned := out.NotOwned[base]
			switch {
			case lost:
				out.Lost[w.Addon] = why
				if out.HandedOver[base] {
					out.HandedOver[w.Addon] = true
				}
			case notOwned:
				out.NotOwned[w.Addon] = theirs
			default:
				return false
			}
			delete(a.winners, w.Addon)
			return true
		})
	}
}

// Held returns whether an add-on's object stays as it is: rendering failed, or another version of the hub rendered
// it.
func Held(d *Delivery, addon string) bool {
	if d.Result == nil || d.Stays[addon] {
		return true
	}
	for failed := range d.Result.Failed {
		if addon == failed || addon == failed+compile.CRDSuffix {
			return true
		}
	}
	return false
}

func (a *assembler) claim(d *Delivery, addon string, release hubv1.HelmReleaseIdentity, key plan.Key) claim {
	l := a.live[key]
	return claim{
		Namespace: d.Namespace, Set: d.Set, Platform: d.Platform, Priority: d.Priority, Addon: addon, Ends: d.Ends,
		Incumbent: l != nil && l.of(d) && l.Addon == addon && !a.given[key],
		Since:     d.Since,
		Key:       key,
		Release:   compile.Release{Namespace: release.StorageNamespace, Name: release.Name},
	}
}

// settleHeld records the verdict on an object that stays as it is. If the claim lost to another set, the object
// yields: its content is unknown, but it must not be there. If the claim lost within its own set, it stays: an add-on
// may exist in two forms for a while.
func (a *assembler) settleHeld(addon string, e entry, v verdict, to entry) {
	switch {
	case v.Won:
		a.winners[addon] = winner{e.delivery, e.held.Key, true}
	case to.delivery != e.delivery && a.yields(e, to):
		a.out[e.delivery].Lost[addon] = v.Reason
		a.out[e.delivery].Yields[e.held.Key] = true
	}
}

// yields returns whether an object that would stay as it is goes, because another one has won. If the content of both
// is unknown and both sets are of one class, both stay, unless they have the same Helm release: then one of them must
// go.
func (a *assembler) yields(e, to entry) bool {
	if to.held == nil || to.held.Going || a.in.Deliveries[e.delivery].Platform != a.in.Deliveries[to.delivery].Platform {
		return true
	}
	return e.held.Release.Name != "" && e.held.Release == to.held.Release
}

// settle records the verdict on a claim. to is the winner's object, if the claim is lost.
func (a *assembler) settle(addon string, e entry, v verdict, to plan.Key) {
	out := &a.out[e.delivery]
	if !v.Won {
		out.Lost[addon] = v.Reason
		if l := a.takes[e.object]; l != nil && l.Key == to {
			out.HandedOver[addon] = true
		}
		return
	}
	key := Key(e.object)
	if l := a.live[key]; l != nil && a.in.Deliveries[e.delivery].Over[addon] {
		out.Lost[addon] = fmt.Sprintf("%s is there of another set, and this one is to leave the cluster", key)
		return
	}
	if f := a.foreign(e.object, key); f != nil {
		out.NotOwned[addon] = fmt.Sprintf("HelmRelease %s/%s, which Chandler did not make, delivers release %q to this cluster; it is left "+
			"alone. "+
			"Write adopt: {namespace: %s, name: %s} to take it over", f.Key.Namespace, f.Key.Name, f.Release.Name, f.Key.Namespace, f.Key.Name)
		return
	}
	w := Wanted{Object: *e.object}
	for _, l := range a.moved(e.object) {
		w.Predecessors = append(w.Predecessors, l.Key)
	}
	if a.live[key] == nil {
		if to := e.object.Adopt; to != nil && to.Namespace != key.Namespace {
			w.Predecessors = append(w.Predecessors, plan.Key{Kind: to.Kind, Namespace: to.Namespace, Name: to.Name})
		}
	}
	out.Wanted = append(out.Wanted, w)
	a.winners[addon] = winner{e.delivery, key, false}
}

// moved returns the live objects of other namespaces that an object of a delivery takes over by movedFrom. It returns none if the object
// itself exists already.
func (a *assembler) moved(o *flux.Object) []*Live {
	if a.live[Key(o)] != nil {
		return nil
	}
	var out []*Live
	for i := range a.in.Live {
		if l := &a.in.Live[i]; MovesFrom(o, l) {
			out = append(out, l)
		}
	}
	return out
}

// MovesFrom returns whether an object of a delivery takes over a live one of another namespace by movedFrom.
func MovesFrom(o *flux.Object, l *Live) bool {
	return l.Key.Namespace != o.Namespace && slices.ContainsFunc(o.MovedFrom, func(m hubv1.MovedAddon) bool { return l.isOf(m, m.Name) })
}

// isOf returns whether a live object is the add-on that a movedFrom names.
func (l *Live) isOf(m hubv1.MovedAddon, addon string) bool {
	return l.Addon == addon && l.Set == identity.LabelValue(m.AddonSet) && l.Key.Namespace == m.Namespace
}

// foreign returns the HelmRelease of another owner that has the same Helm release as an object. It returns nil if the
// object exists already, or takes over that HelmRelease.
func (a *assembler) foreign(o *flux.Object, key plan.Key) *Foreign {
	if o.Release.Name == "" || a.live[key] != nil {
		return nil
	}
	for i := range a.in.Foreign {
		f := &a.in.Foreign[i]
		same := f.Release.Name == o.Release.Name && f.Release.StorageNamespace == o.Release.StorageNamespace
		adopted := o.Adopt != nil && o.Adopt.Namespace == f.Key.Namespace && o.Adopt.Name == f.Key.Name
		if same && !adopted {
			return f
		}
	}
	return nil
}
