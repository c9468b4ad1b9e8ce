// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// served is what the sets do for a cluster.
type served struct {
	counts hubv1.ObjectCounts
	// addons are those of every set that delivers here, in whatever state.
	addons map[string]bool
	// idle names the overrides of add-ons that no set delivers here.
	idle []string
	// refused is what the hub ignores of what the cluster's owner wrote, and refusedReason is the condition's reason.
	refused       []string
	refusedReason string
	// left names every add-on that is on the cluster, or may be.
	left []string
	// idleDrain says which settings about draining have no effect.
	idleDrain string
	// doubt says why the breaker does not open, although it should.
	doubt string
	// held says what the removal guards of sets hold here.
	held []string
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
	// leaving says what is left of each set that is being withdrawn. deselected names the sets that do not select the cluster any more,
	// and after which time each is withdrawn.
	leaving, deselected []string
}

// unready is why a delivery is not Ready.
type unready struct{ set, reason, message string }

// maxSets is how many sets status.sets names.
const maxSets = 20

// deliveriesOf lists the deliveries to the cluster of a registration. They are the cache's own, so no caller may write to them.
func (r *Reconciler) deliveriesOf(ctx context.Context, reg *hubv1.ClusterRegistration) ([]hubv1.AddonDelivery, error) {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, index.DeliveriesOf(client.ObjectKeyFromObject(reg)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the deliveries: %w", err)
	}
	return counted(list.Items), nil
}

// deliveries counts the add-ons of a cluster and sets status.sets.
func (r *Reconciler) deliveries(ctx context.Context, reg *hubv1.ClusterRegistration) (served, error) {
	out, holder := served{addons: map[string]bool{}}, reg.Status.DuplicateOf
	deliveries, err := r.deliveriesOf(ctx, reg)
	if err != nil {
		return out, err
	}
	results := map[string]string{}
	for i := range deliveries {
		d := &deliveries[i]
		set := d.SetKey().String()
		if results[set] = hubv1.SetDelivered; holder != nil {
			results[set] = fmt.Sprintf("%s: delivered through ClusterRegistration %s, if at all", hubv1.SetDuplicate, holder.Key())
		}
		out.left = append(out.left, leftOf(d)...)
		if d.Withdrawn() {
			results[set] = hubv1.SetLeaving
			out.leaving = append(out.leaving, leavingText(d))
			continue
		}
		if result := out.add(d); result != "" {
			results[set] = result
		}
		if after := d.Spec.WithdrawAfter; after != nil {
			until := "after " + after.UTC().Format(time.RFC3339)
			results[set] = fmt.Sprintf("%s: not selected any more; it leaves %s, unless it is selected again", hubv1.SetDelivered, until)
			out.deselected = append(out.deselected, set+" "+until)
		}
	}
	slices.Sort(out.failed)
	slices.Sort(out.held)
	slices.Sort(out.leaving)
	slices.Sort(out.deselected)
	slices.Sort(out.suspended)
	slices.SortFunc(out.unready, func(a, b unready) int { return cmp.Compare(a.set, b.set) })
	orphans, omitted := teardown.Orphans(reg.Status.Orphans, deliveries, r.scopesOf(ctx, reg))
	reg.Status.Orphans, reg.Status.OrphansOmitted = orphans, reg.Status.OrphansOmitted+omitted
	if holder != nil { // a drain is over when all is gone from the cluster, through whichever registration it came
		if err := r.leftThrough(ctx, holder.Key(), &out); err != nil {
			return out, err
		}
	}
	slices.Sort(out.left)
	out.idle = idleOverrides(reg, out.addons, r.Clock.Now())
	out.counts.Summary = status.Fraction(out.counts.Ready, out.counts.Total)
	reg.Status.AddonCounts = &out.counts
	return out, r.sets(ctx, reg, results, &out)
}

// counted returns those of some deliveries that the hub has made, by their names.
func counted(all []hubv1.AddonDelivery) []hubv1.AddonDelivery {
	return slices.DeleteFunc(slices.Clone(all), func(d hubv1.AddonDelivery) bool { return !provenance.Named(&d) })
}

// add counts a delivery that stays, and returns what is worth saying about its set besides that it delivers; "" for
// nothing.
func (s *served) add(d *hubv1.AddonDelivery) (result string) {
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
	if held := heldIn(d); held != "" {
		s.held = append(s.held, held)
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

// leftThrough names what is on the cluster through another registration.
func (r *Reconciler) leftThrough(ctx context.Context, other types.NamespacedName, out *served) error {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, index.DeliveriesOf(other), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the deliveries of ClusterRegistration %s: %w", other, err)
	}
	for _, d := range counted(list.Items) {
		out.left = append(out.left, leftOf(&d)...)
	}
	return nil
}

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

// sets fills status.sets: what delivers here, and why the others in reach do not.
func (r *Reconciler) sets(ctx context.Context, reg *hubv1.ClusterRegistration, results map[string]string, out *served) error {
	sets := &hubv1.AddonSetList{}
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the sets: %w", err)
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		name := s.Namespace + "/" + s.Name
		if _, ok := results[name]; ok {
			continue
		}
		from, err := reach.Of(ctx, r.Client, r.Config, s.Namespace)
		if err != nil {
			return err
		}
		selector, err := match.New(from, &s.Spec)
		if err != nil || !selector.Reaches(reg) || s.DeletionTimestamp != nil {
			continue
		}
		switch why := selector.Why(reg); {
		case why != "":
			results[name] = hubv1.SetNotSelected + ": " + why
			out.why = append(out.why, name+" "+why)
		case status.IsTrue(s, hubv1.StalledCondition):
			results[name] = hubv1.SetStalled + ": the set does not compile"
			out.why = append(out.why, name+" does not compile")
		case rollout.Waits(s):
			results[name] = hubv1.SetWaits
			out.later = append(out.later, name)
		default:
			results[name] = hubv1.SetSelected
			out.pending = append(out.pending, name)
		}
	}
	list := make([]hubv1.SetResult, 0, len(results))
	for name, result := range results {
		list = append(list, hubv1.SetResult{Name: name, Result: result})
	}
	slices.SortFunc(list, func(a, b hubv1.SetResult) int {
		return cmp.Or(cmp.Compare(rank(a.Result), rank(b.Result)), cmp.Compare(a.Name, b.Name))
	})
	reg.Status.Sets = list[:min(maxSets, len(list))]
	slices.Sort(out.why)
	slices.Sort(out.pending)
	slices.Sort(out.later)
	return nil
}

func rank(result string) int {
	if strings.HasPrefix(result, hubv1.SetNotSelected) {
		return 1
	}
	return 0
}

// summarize sets Ready.
func (r *Reconciler) summarize(reg *hubv1.ClusterRegistration, found resolution, refused *refusal, s served) {
	out := summary(reg, found, refused, s)
	if c := status.Find(reg, hubv1.UnregisteringCondition); c != nil && hubv1.Waits(c.Reason) && reg.DeletionTimestamp == nil {
		out.Message = c.Message + "; " + out.Message
	}
	if s.doubt != "" {
		out.Message += "; " + s.doubt
	}
	if len(s.later) > 0 && out.Reason != hubv1.WaitingForWaveReason {
		out.Message += "; waits for its wave: " + status.List(s.later, 3)
	}
	if len(s.idle) > 0 && len(s.addons) > 0 {
		out.Message += fmt.Sprintf("; spec.overrides names what no set delivers here: %s", status.List(s.idle, 3))
	}
	if len(s.deselected) > 0 {
		out.Message += "; not selected any more, and leaves unless it is selected again: " + status.List(s.deselected, 3)
	}
	out.Message += reportRefused(reg, s, r.Clock.Now())
	out.Message += reportHeld(reg, s.held, r.Clock.Now())
	if s.idleDrain != "" {
		out.Message += "; " + s.idleDrain
	}
	status.Summarize(reg, out, r.Clock.Now())
}

// reportHeld sets or clears the condition that removal guards of sets hold something on the cluster, and returns what
// Ready says of it.
func reportHeld(reg *hubv1.ClusterRegistration, held []string, now time.Time) string {
	if len(held) == 0 {
		status.Clear(reg, hubv1.RemovalsHeldCondition)
		return ""
	}
	status.Set(reg, hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason, status.List(held, 3), now)
	return "; a removal is held: see condition " + hubv1.RemovalsHeldCondition
}

func summary(reg *hubv1.ClusterRegistration, found resolution, refused *refusal, s served) status.Summary {
	valid, reachable := status.Find(reg, hubv1.KubeConfigValidCondition), status.Find(reg, hubv1.ReachableCondition)
	suspended, maintenance := status.Find(reg, hubv1.SuspendedCondition), status.Find(reg, hubv1.MaintenanceCondition)
	switch {
	case reg.Status.DuplicateOf != nil:
		return status.Summary{Phase: status.Broken, Reason: hubv1.DuplicateReason, Message: status.Find(reg, hubv1.DuplicateCondition).Message}
	case suspended != nil && !hubv1.Tripped(suspended.Reason):
		// A user chose this. It is no failure, and what was Ready stays Ready.
		phase := status.Done
		if s.lags() {
			phase = status.Working
		}
		return status.Summary{Phase: phase, Reason: suspended.Reason, Message: suspended.Message + "; its Flux objects are suspended"}
	case valid.Status != metav1.ConditionTrue:
		phase := status.Broken
		if found.waiting {
			phase = status.Working
		}
		return status.Summary{Phase: phase, Reason: valid.Reason, Message: valid.Message}
	case refused != nil:
		return status.Summary{Phase: status.Broken, Reason: refused.reason, Message: refused.message}
	case reachable.Status == metav1.ConditionUnknown && !reg.Status.UsesWorkloadIdentity():
		return status.Summary{Phase: status.Working, Reason: reachable.Reason, Message: reachable.Message}
	case reachable.Status == metav1.ConditionFalse && maintenance != nil:
		return status.Summary{Phase: status.Working, Reason: maintenance.Reason,
			Message: fmt.Sprintf("%s: %s", maintenance.Message, reachable.Message)}
	case reachable.Status == metav1.ConditionFalse:
		return status.Summary{Phase: status.Broken, Reason: reachable.Reason, Message: reachable.Message}
	case suspended != nil: // by the breaker, and it answers
		return status.Summary{Phase: status.Broken, Reason: suspended.Reason, Message: suspended.Message}
	case drain.Requested(reg):
		return draining(status.Find(reg, hubv1.DrainingCondition))
	}
	return s.summary()
}

// lags returns whether a delivery is not Ready, or leaves.
func (s *served) lags() bool { return len(s.unready) > 0 || len(s.leaving) > 0 }

// summary sums up what the sets do here.
func (s *served) summary() status.Summary {
	ready := status.SomeReady(s.counts.Ready, s.counts.Total)
	leaving := "being withdrawn: " + status.List(s.leaving, 3)
	switch {
	case s.counts.Failed > 0:
		m := fmt.Sprintf("%d of %s failed: %s", s.counts.Failed, status.Count(s.counts.Total, "add-on"), status.List(s.failed, 2))
		if len(s.leaving) > 0 {
			m += "; " + leaving
		}
		return status.Summary{Phase: status.Broken, Reason: hubv1.AddonsFailedReason, Message: m}
	case len(s.leaving) > 0:
		return status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: leaving}
	case len(s.unready) > 0:
		return s.waits(ready)
	case len(s.pending) > 0 && s.counts.Total == 0:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
			Message: "about to be delivered: " + status.List(s.pending, 3)}
	case len(s.pending) > 0:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
			Message: ready + "; about to be delivered: " + status.List(s.pending, 3)}
	case s.counts.Total == 0 && len(s.addons) > 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason,
			Message: "every add-on is left out here, or delivered by another set"}
	case s.counts.Total == 0 && len(s.later) > 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.WaitingForWaveReason, Message: "waits for its wave: " + status.List(s.later, 3)}
	case s.counts.Total == 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: noSet(s.why)}
	case s.counts.Ready < s.counts.Total:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: ready}
	}
	if len(s.suspended) > 0 {
		return status.Summary{Phase: status.Done, Reason: hubv1.SuspendedReason, Message: ready + "; suspended: " + status.List(s.suspended, 3)}
	}
	return status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: ready}
}

// onTheWay are reasons of a delivery that need no mention: the counts say the same, or they are about to change,
// since this cluster answers and is not paused.
var onTheWay = []string{
	hubv1.ProgressingReason, hubv1.WaitingForClusterReason, hubv1.ClusterUnreachableReason, hubv1.CredentialRefusedReason,
	hubv1.FluxHangsReason, hubv1.PausedReason, hubv1.ClusterSleepingReason,
	hubv1.ClusterWriteLimitedReason, hubv1.ClusterMigratingReason,
}

// waits returns the summary of a cluster with a delivery that is not Ready and has not failed. It has the reason of
// the first delivery that is not merely on its way.
func (s *served) waits(ready string) status.Summary {
	for _, u := range s.unready {
		if !slices.Contains(onTheWay, u.reason) {
			return status.Summary{Phase: status.Working, Reason: u.reason, Message: fmt.Sprintf("%s; %s: %s", ready, u.set, u.message)}
		}
	}
	if s.counts.Ready < s.counts.Total {
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: ready}
	}
	return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
		Message: fmt.Sprintf("%s; %s: %s", ready, s.unready[0].set, s.unready[0].message)}
}

func noSet(why []string) string {
	if len(why) == 0 {
		return "no AddonSet is in reach: make one in a platform namespace, or in this one"
	}
	return "no AddonSet delivers to this cluster: " + status.List(why, 3)
}

// nextLook returns after how long the status changes with time alone: the credential's days count down.
func (r *Reconciler) nextLook(reg *hubv1.ClusterRegistration) time.Duration {
	c := reg.Status.Credential
	if c == nil || c.ExpirationTime == nil {
		return 0
	}
	left := c.ExpirationTime.Sub(r.Clock.Now())
	switch {
	case left <= 0:
		return 0
	case left < 24*time.Hour:
		return left%time.Hour + time.Second
	case left <= 90*24*time.Hour:
		return left%(24*time.Hour) + time.Second
	}
	return left - 90*24*time.Hour + time.Second
}
