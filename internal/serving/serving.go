// SPDX-License-Identifier: Apache-2.0

// Package serving sums up what the sets do for one cluster: what its registration counts, which sets it names, and what
// its Ready condition says. It is pure: the registration controller reads the deliveries and the sets.
package serving

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// Sets are what the sets do for a cluster.
type Sets struct {
	// Left names every add-on that is on the cluster, or may be, as set/add-on.
	Left []string
	// IdleDrain says which settings about draining have no effect.
	IdleDrain string
	// Doubt says why the breaker does not open, although it should.
	Doubt string

	counts hubv1.ObjectCounts
	// results are what status.sets says, by the namespace and name of the set.
	results map[string]string
	// addons are those of every set that delivers here, in whatever state.
	addons map[string]bool
	// idle names the overrides of add-ons that no set delivers here.
	idle []string
	// refused is what the hub ignores of what the cluster's owner wrote.
	refused []string
	// held says what the removal guards of sets hold here, by the set.
	held map[string]string
	// failed names each failed add-on, with its set and the reason.
	failed []string
	// why says why each set in reach does not select the cluster, if it does not.
	why []string
	// unready are the deliveries that are not Ready. A delivery whose add-ons are all delivered by other sets lacks
	// nothing here.
	unready []unready
	// pending names the sets that are to be delivered and have no report yet.
	pending []string
	// later names the sets that deliver nothing here before their rollouts come to the cluster.
	later []string
	// suspended names the add-ons whose Flux object a user has suspended.
	suspended []string
	// leaving says what is left of each set that is being withdrawn.
	leaving []string
	// deselected says after which time each set is withdrawn that does not select the cluster any more; those whose time is over are not
	// among them.
	deselected map[string]string
	// quoted is the set of the delivery whose message the Ready condition quotes; "" for none. What that message says is not said again.
	quoted string
}

// unready is why a delivery is not Ready.
type unready struct{ set, reason, message string }

// maxSets is how many sets status.sets names.
const maxSets = 20

// Of counts the deliveries that a cluster gets through its registration.
func Of(reg *hubv1.ClusterRegistration, deliveries []hubv1.AddonDelivery, now time.Time) *Sets {
	s := &Sets{addons: map[string]bool{}, results: map[string]string{}, held: map[string]string{}, deselected: map[string]string{}}
	for i := range deliveries {
		d := &deliveries[i]
		set := d.SetKey().String()
		if s.results[set] = hubv1.SetDelivered; reg.Status.DuplicateOf != nil {
			s.results[set] = fmt.Sprintf("%s: delivered through ClusterRegistration %s, if at all", hubv1.SetDuplicate, reg.Status.DuplicateOf.Key())
		}
		s.Left = append(s.Left, left(d)...)
		if d.Withdrawn() {
			s.results[set] = hubv1.SetLeaving
			s.leaving = append(s.leaving, leavingText(d))
			continue
		}
		if result := s.add(d); result != "" {
			s.results[set] = result
		}
		if after := d.Spec.WithdrawAfter; after != nil {
			s.results[set] = hubv1.SetDelivered + ": not selected any more"
			if now.Before(after.Time) {
				s.deselected[set] = "after " + after.UTC().Format(time.RFC3339)
				s.results[set] += fmt.Sprintf("; it leaves %s, unless it is selected again", s.deselected[set])
			}
		}
	}
	return s
}

// add counts a delivery that stays, and returns what is worth saying about its set besides that it delivers; "" for
// nothing.
func (s *Sets) add(d *hubv1.AddonDelivery) (result string) {
	switch c := status.Find(d, hubv1.ReadyCondition); {
	case c == nil:
		s.pending = append(s.pending, d.SetKey().String())
	case c.Reason == hubv1.AddonsLostReason && c.Status != metav1.ConditionTrue:
		result = "Lost: other sets deliver its add-ons here"
	case c.Status != metav1.ConditionTrue:
		s.unready = append(s.unready, unready{d.SetKey().String(), c.Reason, c.Message})
	}
	if c := d.Status.AddonCounts; c != nil {
		s.counts.Total += max(c.Total-lostToOthers(d), 0)
		s.counts.Ready += c.Ready
		s.counts.Failed += c.Failed
	}
	s.refuse(d)
	if c := status.Find(d, hubv1.RemovalsHeldCondition); c != nil && c.Message != "" {
		s.held[d.SetKey().String()] = c.Message
	}
	for _, a := range d.Status.Addons {
		s.addons[a.Name] = true
		if a.State == hubv1.AddonSuspended {
			s.suspended = append(s.suspended, d.Spec.AddonSetRef.Name+"/"+a.Name)
		}
		if a.State == hubv1.AddonFailed || a.State == hubv1.AddonNotOwned {
			s.failed = append(s.failed, fmt.Sprintf("%s/%s: %s", d.Spec.AddonSetRef.Name, a.Name, a.Message))
		}
	}
	return result
}

// Elsewhere adds the deliveries that the cluster gets through another registration: a drain is over when all is gone from the cluster,
// through whichever registration it came.
func (s *Sets) Elsewhere(deliveries []hubv1.AddonDelivery) {
	for i := range deliveries {
		s.Left = append(s.Left, left(&deliveries[i])...)
	}
}

// Delivers returns whether a set delivers to the cluster, or leaves it.
func (s *Sets) Delivers(set *hubv1.AddonSet) bool {
	_, ok := s.results[set.Namespace+"/"+set.Name]
	return ok
}

// Reach adds a set that reaches the cluster, and does not deliver there. why says why the set does not select the cluster; empty if it
// does.
func (s *Sets) Reach(set *hubv1.AddonSet, why string) {
	name := set.Namespace + "/" + set.Name
	switch {
	case why != "":
		s.results[name] = hubv1.SetNotSelected + ": " + why
		s.why = append(s.why, name+" "+why)
	case status.IsTrue(set, hubv1.StalledCondition):
		s.results[name] = hubv1.SetStalled + ": the set does not compile"
		s.why = append(s.why, name+" does not compile")
	case rollout.Waits(set):
		s.results[name] = hubv1.SetWaits
		s.later = append(s.later, name)
	default:
		s.results[name] = hubv1.SetSelected
		s.pending = append(s.pending, name)
	}
}

// Report writes the counts and the sets into a registration's status, after all deliveries and sets have been added.
func (s *Sets) Report(reg *hubv1.ClusterRegistration, now time.Time) {
	for _, names := range [][]string{s.failed, s.leaving, s.suspended, s.Left, s.why, s.pending, s.later} {
		slices.Sort(names)
	}
	slices.SortFunc(s.unready, func(a, b unready) int { return cmp.Compare(a.set, b.set) })
	s.idle = idleOverrides(reg, s.addons, now)
	s.counts.Summary = status.Fraction(s.counts.Ready, s.counts.Total)
	reg.Status.AddonCounts = &s.counts
	list := make([]hubv1.SetResult, 0, len(s.results))
	for name, result := range s.results {
		list = append(list, hubv1.SetResult{Name: name, Result: result})
	}
	slices.SortFunc(list, func(a, b hubv1.SetResult) int {
		return cmp.Or(cmp.Compare(rank(a.Result), rank(b.Result)), cmp.Compare(a.Name, b.Name))
	})
	reg.Status.Sets = list[:min(maxSets, len(list))]
}

// rank puts the sets that do not select the cluster last.
func rank(result string) int {
	if strings.HasPrefix(result, hubv1.SetNotSelected) {
		return 1
	}
	return 0
}

// Lags returns whether a delivery is not Ready, or leaves.
func (s *Sets) Lags() bool { return len(s.unready) > 0 || len(s.leaving) > 0 }

// lostToOthers returns how many add-ons of a delivery other sets deliver. They are counted there.
func lostToOthers(d *hubv1.AddonDelivery) int32 {
	var n int32
	for _, a := range d.Status.Addons {
		if a.State == hubv1.AddonLostTo {
			n++
		}
	}
	return n
}

// leavingText says what is left of a set that is being withdrawn: "base (hello, policies)".
func leavingText(d *hubv1.AddonDelivery) string {
	var names []string
	for _, a := range d.Status.Addons {
		if a.State != hubv1.AddonOrphaned && a.State != hubv1.AddonLostTo && a.State != hubv1.AddonExcluded {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return d.SetKey().String()
	}
	return fmt.Sprintf("%s (%s)", d.SetKey(), status.List(names, 3))
}

// idleOverrides names the overrides that have no effect, because no set delivers an add-on of that name here. Most
// are typing errors.
func idleOverrides(reg *hubv1.ClusterRegistration, addons map[string]bool, now time.Time) []string {
	var out []string
	for _, o := range reg.Spec.Overrides {
		over := o.Until != nil && !now.Before(o.Until.Time)
		if !over && !addons[o.Name] && !slices.Contains(out, o.Name) {
			out = append(out, o.Name)
		}
	}
	return out
}

// left names the add-ons of a delivery, as set/add-on.
func left(d *hubv1.AddonDelivery) []string {
	if len(d.Status.Addons) == 0 {
		return []string{d.Spec.AddonSetRef.Name}
	}
	out := make([]string, len(d.Status.Addons))
	for i, a := range d.Status.Addons {
		out[i] = d.Spec.AddonSetRef.Name + "/" + a.Name
	}
	return out
}
