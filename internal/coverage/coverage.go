// SPDX-License-Identifier: Apache-2.0

// Package coverage sums up how the clusters of a set stand: how many there are of each kind, and what the conditions of the set say of
// them. It is pure: the addonset controller reads the deliveries and the registrations.
package coverage

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// Fleet is how the clusters of a set stand.
type Fleet struct {
	Counts hubv1.ClusterCounts
	// InUse are the revisions that deliveries name.
	InUse map[string]bool
	// Clusters are those of a rollout.
	Clusters []rollout.Cluster
	// Nothing says why no cluster is selected; empty if one is.
	Nothing string
	// Held is what the removal guard holds.
	Held *hubv1.HeldRemovals
	// Rollout says what the rollout waits for, and Next what the next revision waits for.
	Rollout string
	Next    Next

	// behind names clusters in reach that have not been Ready on the newest revision, with the reason, except those of
	// failedBehind.
	behind, failedBehind []string
	// later names those of them that the rollout has not come to.
	later []string
	// failed names the other clusters with a failed add-on, with the reason: they were Ready on the newest revision before.
	failed []string
	// originless names the clusters on which nothing changes while their origin cannot be read.
	originless []string
	// suspended names the clusters with an add-on that a user has suspended.
	suspended []string
	// without counts the clusters that get nothing of the set, because other sets deliver all of its add-ons there.
	without int32
	// lost counts the clusters by what the set lost there, and to whom.
	lost map[string]int
	// withdrawn counts the clusters that the set is being withdrawn from. deselected names those that it does not select any more,
	// and after which time it is withdrawn from them.
	withdrawn  int32
	deselected []string
	// waiting do not have the newest revision yet.
	waiting []waiting
}

// Next is the revision that a set is about to get.
type Next struct {
	// Waits says what it waits for; empty if none is to come. Broken is true if Flux cannot read that.
	Waits  string
	Broken bool
}

func (n Next) text() string {
	if n.Broken {
		return "the next revision cannot be made: " + n.Waits
	}
	return "the next revision waits for " + n.Waits
}

// New returns a fleet without a cluster.
func New() *Fleet { return &Fleet{InUse: map[string]bool{}, lost: map[string]int{}} }

// waiting is a cluster that does not have the newest revision yet.
type waiting struct {
	key       types.NamespacedName
	name, why string
	counts    bool
	// fresh is true if it has no delivery yet, and registered is when it was registered.
	fresh      bool
	registered time.Time
}

// Admit sorts the clusters that do not have the newest revision yet. Those that get it now are behind, or have failed: all, or
// the ones in coming, and those without a delivery that get one at once. The set does not wait for the others before the rollout has come
// to them.
func (f *Fleet) Admit(everyone bool, coming map[types.NamespacedName]bool, next *rollout.Decision) {
	for _, w := range f.waiting {
		now := everyone || coming[w.key] || w.fresh && next != nil && next.Newcomers != "" && rollout.Young(w.registered, next.After)
		switch {
		case w.why != "" && now && w.counts:
			f.failedBehind = append(f.failedBehind, w.name+" ("+w.why+")")
		case w.why != "":
			f.failed = append(f.failed, w.name+" ("+w.why+")")
		case now && w.counts:
			f.behind = append(f.behind, w.name)
		case w.counts:
			f.later = append(f.later, w.name)
		}
		if w.fresh && !now {
			f.Counts.Waiting++
		}
	}
	f.Sum()
}

// Coming returns the clusters that are about to get the newest revision: those that start now, and those of which the matcher has been
// told before, which the cache does not show yet.
func (f *Fleet) Coming(newest string, starts []rollout.Start) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	for i := range f.Clusters {
		if c := &f.Clusters[i]; c.Revision == newest {
			out[c.Key] = true
		}
	}
	for i := range starts {
		if starts[i].Revision == newest {
			out[starts[i].Cluster] = true
		}
	}
	return out
}

// expect counts a selected cluster that has no delivery yet.
func (f *Fleet) expect(c *rollout.Cluster) {
	f.Counts.Matched++
	if c.Offline {
		f.Counts.Offline++
	}
	f.waiting = append(f.waiting, waiting{key: c.Key, name: c.Key.Name,
		counts: !c.Offline && c.Excused == "", registered: c.Registered, fresh: true})
}

// Leave counts a cluster that has a delivery, and that the set does not select any more. waits is true while its time is not over.
func (f *Fleet) Leave(d *hubv1.AddonDelivery, waits bool) {
	f.Counts.Leaving++
	if !waits {
		return // it is withdrawn now, or the removal guard holds that
	}
	name := d.Spec.RegistrationRef.Name
	if after := d.Spec.WithdrawAfter; after != nil {
		name += " after " + after.UTC().Format(time.RFC3339)
	}
	f.deselected = append(f.deselected, name)
}

// Withdraw counts a cluster that the set is being withdrawn from.
func (f *Fleet) Withdraw() {
	f.Counts.Leaving++
	f.withdrawn++
}

// Count counts a cluster that has a delivery, and that the set selects.
func (f *Fleet) Count(set *hubv1.AddonSet, d *hubv1.AddonDelivery, online bool) {
	name := d.Spec.RegistrationRef.Name
	f.Counts.Matched++
	if status.IsTrue(d, hubv1.ReadyCondition) && d.Status.ReadyRevision == d.Spec.RevisionName {
		f.Counts.Ready++
	}
	if !online {
		f.Counts.Offline++
	}
	paused, why := f.look(d)
	if status.Reason(d, hubv1.ReadyCondition) == hubv1.OriginMissingReason {
		f.originless = append(f.originless, name)
	}
	given := d.Spec.RevisionName == set.Status.Revision
	paused = paused || unserved(d)
	if paused {
		f.Counts.Paused++
	}
	if why != "" {
		f.Counts.Failed++
	}
	without := status.Reason(d, hubv1.ReadyCondition) == hubv1.AddonsLostReason && !status.IsTrue(d, hubv1.ReadyCondition)
	switch updated := d.Status.ReadyRevision == set.Status.Revision; {
	case without:
		f.without++
	case updated && why != "":
		f.Counts.Updated++
		f.failed = append(f.failed, name+" ("+why+")")
	case updated:
		f.Counts.Updated++
	case !given:
		f.waiting = append(f.waiting, waiting{key: d.Spec.RegistrationRef.Key(), name: name, why: why, counts: online && !excused(d)})
	case online && why != "":
		f.failedBehind = append(f.failedBehind, name+" ("+why+")")
	case online && !excused(d):
		f.behind = append(f.behind, name)
	}
}

// look reads the add-ons of a cluster. It returns whether a user has paused or suspended any, and why the first
// failed one failed.
func (f *Fleet) look(d *hubv1.AddonDelivery) (paused bool, why string) {
	for _, a := range d.Status.Addons {
		switch a.State {
		case hubv1.AddonPaused:
			paused = true
		case hubv1.AddonSuspended:
			paused = true
			f.suspended = append(f.suspended, d.Spec.RegistrationRef.Name+"/"+a.Name)
		case hubv1.AddonLostTo:
			f.lost[fmt.Sprintf("%s (%s)", a.Name, a.Message)]++
		}
	}
	return paused, rollout.Trouble(d)
}

// Sum sorts the names that were collected.
func (f *Fleet) Sum() {
	for _, names := range [][]string{f.behind, f.failedBehind, f.later, f.failed, f.originless, f.suspended, f.deselected} {
		slices.Sort(names)
	}
	f.Counts.ReadySummary = status.Fraction(f.Counts.Ready, f.Counts.Matched)
	f.Counts.UpdatedSummary = status.Fraction(f.Counts.Updated, f.Counts.Matched)
}

// excused returns whether a tool that waits for the set should not wait for a cluster.
func excused(d *hubv1.AddonDelivery) bool { return unserved(d) || rollout.Excused(d) }

// unserved returns whether nothing is delivered through a registration, because another registration of its cluster
// is served. It counts like a paused one.
func unserved(d *hubv1.AddonDelivery) bool {
	return status.Reason(d, hubv1.ReadyCondition) == hubv1.DuplicateReason
}

// CountNew counts the clusters that a set selects and that are not served yet, and returns them. selector is nil if the set does not
// compile.
func (f *Fleet) CountNew(selector *match.Selector, regs []hubv1.ClusterRegistration,
	served map[types.NamespacedName]bool) map[types.NamespacedName]bool {
	without := map[types.NamespacedName]bool{}
	for i := range regs {
		reg := &regs[i]
		key := types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}
		if selector != nil && !served[key] && !status.Goes(reg) && selector.Matches(reg) {
			without[key] = true
			c := rollout.ObserveNew(reg)
			f.expect(&c)
			f.Clusters = append(f.Clusters, c)
		}
	}
	return without
}

// WhyNothing says why a set selects nothing.
func WhyNothing(set *hubv1.AddonSet, selector *match.Selector, regs []hubv1.ClusterRegistration) string {
	where := "in any namespace"
	switch from := selector.Reach(); {
	case from.ByTeam():
		where = fmt.Sprintf("of Team %s/%s (%s)", from.Team.Namespace, from.Team.Name, from.Team.Clusters)
	case !from.Platform:
		where = fmt.Sprintf("in namespace %q, which is all that a set outside the platform namespaces reaches", set.Namespace)
	}
	var near []string
	for i := range regs {
		if reg := &regs[i]; selector.Reaches(reg) && !status.Goes(reg) {
			near = append(near, fmt.Sprintf("%s %s", reg.Name, selector.Why(reg)))
		}
	}
	if len(near) == 0 {
		return "there is no ClusterRegistration " + where
	}
	slices.Sort(near)
	return fmt.Sprintf("%s selects none of %s %s: %s", selector, status.Count(len(near), "ClusterRegistration"), where, status.List(near, 3))
}
