// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// noon is when the sums of these tests are made.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// delivered is a delivery of a set of flux-system, with a Ready condition if there is a reason, and with its add-ons.
func delivered(set, reason string, ready metav1.ConditionStatus, addons ...hubv1.AddonStatus) hubv1.AddonDelivery {
	d := hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", UID: "1"}}
	d.Spec.AddonSetRef.Name = set
	if reason != "" {
		status.Set(&d, hubv1.ReadyCondition, ready, reason, "of "+set, noon)
		d.Status.AddonCounts = &hubv1.ObjectCounts{Total: int32(len(addons))} //nolint:gosec // a few
	}
	for _, a := range addons {
		switch a.State {
		case hubv1.AddonReady, hubv1.AddonSuspended:
			d.Status.AddonCounts.Ready++
		case hubv1.AddonFailed, hubv1.AddonNotOwned:
			d.Status.AddonCounts.Failed++
		}
	}
	d.Status.Addons = addons
	return d
}

func addon(name string, state hubv1.AddonState) hubv1.AddonStatus {
	return hubv1.AddonStatus{Name: name, State: state, Message: string(state)}
}

func edited(d hubv1.AddonDelivery, edit func(*hubv1.AddonDelivery)) hubv1.AddonDelivery {
	edit(&d)
	return d
}

func withdrawn(d *hubv1.AddonDelivery) {
	d.DeletionTimestamp, d.Spec.Withdrawal = &metav1.Time{Time: noon}, d.UID
}

func leaves(after time.Duration) func(*hubv1.AddonDelivery) {
	return func(d *hubv1.AddonDelivery) { d.Spec.WithdrawAfter = &metav1.Time{Time: noon.Add(after)} }
}

// TestOf: what a registration says of its sets, from their deliveries to its Ready condition.
func TestOf(t *testing.T) {
	ok := func(set string, addons ...hubv1.AddonStatus) hubv1.AddonDelivery {
		return delivered(set, hubv1.SucceededReason, metav1.ConditionTrue, addons...)
	}
	ready := addon("a", hubv1.AddonReady)
	held := func(d *hubv1.AddonDelivery) {
		status.Set(d, hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason, "b is held", noon)
	}
	lost := func(s metav1.ConditionStatus) hubv1.AddonDelivery {
		return delivered("base", hubv1.AddonsLostReason, s, addon("a", hubv1.AddonLostTo))
	}
	const leavesLater = "; it leaves after 2026-11-22T12:01:00Z, unless it is selected again"
	for name, tc := range map[string]struct {
		deliveries []hubv1.AddonDelivery
		overrides  []hubv1.Override
		duplicate  bool
		suspended  string
		idleDrain  string
		results    []string
		summary    string
		reason     string
		message    string
		held       string
		left       []string
	}{
		"Ready": {deliveries: []hubv1.AddonDelivery{ok("base", ready)},
			results: []string{"base Delivered"}, summary: "1/1", reason: hubv1.SucceededReason, message: "the add-on is Ready", left: []string{"base/a"}},
		"NoReport": {deliveries: []hubv1.AddonDelivery{delivered("base", "", "")},
			results: []string{"base Delivered"}, summary: "0/0", reason: hubv1.ProgressingReason, message: "about to be delivered: flux-system/base", left: []string{"base"}},
		"NoReportOfOne": {deliveries: []hubv1.AddonDelivery{ok("base", ready), delivered("more", "", "")},
			results: []string{"base Delivered", "more Delivered"}, summary: "1/1", reason: hubv1.ProgressingReason,
			message: "the add-on is Ready; about to be delivered: flux-system/more", left: []string{"base/a", "more"}},
		"NotReady": {deliveries: []hubv1.AddonDelivery{delivered("base", hubv1.RenderFailedReason, metav1.ConditionFalse, addon("a", hubv1.AddonProgressing))},
			results: []string{"base Delivered"}, summary: "0/1", reason: hubv1.RenderFailedReason, message: "the add-on is not Ready; flux-system/base: of base", left: []string{"base/a"}},
		"Failed": {deliveries: []hubv1.AddonDelivery{delivered("base", hubv1.AddonsFailedReason, metav1.ConditionFalse, addon("a", hubv1.AddonFailed), addon("b", hubv1.AddonNotOwned), addon("c", hubv1.AddonReady))},
			results: []string{"base Delivered"}, summary: "1/3", reason: hubv1.AddonsFailedReason, message: "2 of 3 add-ons failed: base/a: Failed, base/b: NotOwned", left: []string{"base/a", "base/b", "base/c"}},
		"Suspended": {deliveries: []hubv1.AddonDelivery{ok("base", addon("a", hubv1.AddonSuspended), addon("b", hubv1.AddonReady))},
			results: []string{"base Delivered"}, summary: "2/2", reason: hubv1.SuspendedReason, message: "all 2 add-ons are Ready; suspended: base/a", left: []string{"base/a", "base/b"}},
		"Lost": {deliveries: []hubv1.AddonDelivery{lost(metav1.ConditionFalse)},
			results: []string{"base Lost: other sets deliver its add-ons here"}, summary: "0/0", reason: hubv1.SucceededReason,
			message: "every add-on is left out here, or delivered by another set", left: []string{"base/a"}},
		"LostAndReady": {deliveries: []hubv1.AddonDelivery{lost(metav1.ConditionTrue)},
			results: []string{"base Delivered"}, summary: "0/0", reason: hubv1.SucceededReason,
			message: "every add-on is left out here, or delivered by another set", left: []string{"base/a"}},
		"Leaving": {deliveries: []hubv1.AddonDelivery{edited(ok("base", addon("a", hubv1.AddonRemoving), addon("b", hubv1.AddonOrphaned), addon("c", hubv1.AddonLostTo), addon("d", hubv1.AddonExcluded)), withdrawn)},
			results: []string{"base Leaving"}, summary: "0/0", reason: hubv1.AddonsLeavingReason, message: "being withdrawn: flux-system/base (a)",
			left: []string{"base/a", "base/b", "base/c", "base/d"}},
		"LeavingWithNothing": {deliveries: []hubv1.AddonDelivery{edited(ok("base", addon("b", hubv1.AddonOrphaned)), withdrawn)},
			results: []string{"base Leaving"}, summary: "0/0", reason: hubv1.AddonsLeavingReason, message: "being withdrawn: flux-system/base", left: []string{"base/b"}},
		"DeletedByOthers": {deliveries: []hubv1.AddonDelivery{edited(ok("base", ready), func(d *hubv1.AddonDelivery) { withdrawn(d); d.Spec.Withdrawal = "2" })},
			results: []string{"base Delivered"}, summary: "1/1", reason: hubv1.SucceededReason, message: "the add-on is Ready", left: []string{"base/a"}},
		"Deselected": {deliveries: []hubv1.AddonDelivery{edited(ok("base", ready), leaves(time.Minute))},
			results: []string{"base Delivered: not selected any more" + leavesLater}, summary: "1/1", reason: hubv1.SucceededReason,
			message: "the add-on is Ready; not selected any more, and leaves unless it is selected again: flux-system/base after 2026-11-22T12:01:00Z", left: []string{"base/a"}},
		"DeselectedAndDue": {deliveries: []hubv1.AddonDelivery{edited(ok("base", ready), leaves(0))},
			results: []string{"base Delivered: not selected any more"}, summary: "1/1", reason: hubv1.SucceededReason, message: "the add-on is Ready", left: []string{"base/a"}},
		"Held": {deliveries: []hubv1.AddonDelivery{edited(ok("base", ready), held)},
			results: []string{"base Delivered"}, summary: "1/1", reason: hubv1.SucceededReason, message: "the add-on is Ready; a removal is held: see condition RemovalsHeld",
			held: "b is held", left: []string{"base/a"}},
		"Duplicate": {deliveries: []hubv1.AddonDelivery{ok("base", ready)}, duplicate: true,
			results: []string{"base Duplicate: delivered through ClusterRegistration tenants/first, if at all"}, summary: "1/1", reason: hubv1.DuplicateReason,
			message: "it is tenants/first", left: []string{"base/a"}},
		"Tripped": {deliveries: []hubv1.AddonDelivery{ok("base", ready)}, suspended: hubv1.ClusterUnreachableReason,
			results: []string{"base Delivered"}, summary: "1/1", reason: hubv1.ClusterUnreachableReason, message: "suspended", left: []string{"base/a"}},
		"IdleOverrides": {deliveries: []hubv1.AddonDelivery{ok("base", ready)}, idleDrain: "the drain's label does nothing here",
			overrides: []hubv1.Override{
				{Name: "a"}, {Name: "typo"}, {Name: "typo"}, {Name: "over", Until: &metav1.Time{Time: noon}},
				{Name: "later", Until: &metav1.Time{Time: noon.Add(time.Second)}},
			},
			results: []string{"base Delivered"}, summary: "1/1", reason: hubv1.SucceededReason,
			message: "the add-on is Ready; spec.overrides names what no set delivers here: typo, later; the drain's label does nothing here", left: []string{"base/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{Overrides: tc.overrides}}
			for _, typ := range []string{hubv1.KubeConfigValidCondition, hubv1.ReachableCondition} {
				status.Set(reg, typ, metav1.ConditionTrue, hubv1.SucceededReason, "", noon)
			}
			if tc.duplicate {
				reg.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: "tenants", Name: "first"}
				status.Set(reg, hubv1.DuplicateCondition, metav1.ConditionTrue, hubv1.DuplicateReason, "it is tenants/first", noon)
			}
			if tc.suspended != "" {
				status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, tc.suspended, "suspended", noon)
			}
			s := Of(reg, tc.deliveries, noon)
			s.IdleDrain = tc.idleDrain
			s.Report(reg, noon)
			s.Summarize(reg, Access{}, noon)
			if got := results(reg); !slices.Equal(got, tc.results) || reg.Status.AddonCounts.Summary != tc.summary || !slices.Equal(s.Left, tc.left) {
				t.Errorf("sets %q, counts %s, left %q; want %q, %s, %q", got, reg.Status.AddonCounts.Summary, s.Left, tc.results, tc.summary, tc.left)
			}
			if c := status.Find(reg, hubv1.ReadyCondition); c.Reason != tc.reason || c.Message != tc.message {
				t.Errorf("Ready says %s: %s; want %s: %s", c.Reason, c.Message, tc.reason, tc.message)
			}
			if c := status.Find(reg, hubv1.RemovalsHeldCondition); (c != nil) != (tc.held != "") || c != nil && c.Message != tc.held {
				t.Errorf("RemovalsHeld is %+v, want %q", c, tc.held)
			}
		})
	}
}

// results are those of status.sets, without the namespace of the sets.
func results(reg *hubv1.ClusterRegistration) []string {
	var out []string
	for _, r := range reg.Status.Sets {
		out = append(out, r.Name[len("flux-system/"):]+" "+r.Result)
	}
	return out
}

// TestInReach: sets that reach a cluster and deliver nothing there are told after those that do, and those that do not select the
// cluster last.
func TestInReach(t *testing.T) {
	set := func(name string) *hubv1.AddonSet {
		return &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
	}
	stalled, later := set("stalled"), set("later")
	status.Set(stalled, hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason, "", noon)
	later.Status.Clusters = &hubv1.ClusterCounts{Waiting: 1}
	later.Status.Rollout = &hubv1.RolloutStatus{Phase: hubv1.RolloutProgressing, Waves: []hubv1.WaveStatus{{}}}
	reg := &hubv1.ClusterRegistration{}
	s := Of(reg, []hubv1.AddonDelivery{delivered("there", "", "")}, noon)
	if !s.Delivers(set("there")) || s.Delivers(later) {
		t.Error("it mistakes which sets deliver")
	}
	s.Reach(set("afar"), "wants tier=prod, and there is no such label")
	s.Reach(stalled, "")
	s.Reach(later, "")
	s.Reach(set("new"), "")
	s.Elsewhere([]hubv1.AddonDelivery{delivered("old", hubv1.SucceededReason, metav1.ConditionTrue, addon("x", hubv1.AddonReady))})
	s.Report(reg, noon)
	want := []string{
		"later WaitingForWave", "new Selected", "stalled Stalled: the set does not compile", "there Delivered",
		"afar NotSelected: wants tier=prod, and there is no such label",
	}
	if got := results(reg); !slices.Equal(got, want) {
		t.Errorf("sets %q, want %q", got, want)
	}
	if want := []string{"old/x", "there"}; !slices.Equal(s.Left, want) || s.Lags() {
		t.Errorf("left %q, want %q; it lags %t", s.Left, want, s.Lags())
	}
	if !Of(reg, []hubv1.AddonDelivery{edited(delivered("base", "", ""), withdrawn)}, noon).Lags() {
		t.Error("a set that is being withdrawn does not lag")
	}
}

// TestBesides: what the Ready condition says besides how the add-ons are.
func TestBesides(t *testing.T) {
	ready := func(s *Sets) { s.counts = hubv1.ObjectCounts{Total: 1, Ready: 1} }
	for name, tc := range map[string]struct {
		sets      func(*Sets)
		leaving   string // the reason of Unregistering
		deleted   bool
		overrides []hubv1.Override
		message   string
	}{
		"Nothing":     {sets: func(*Sets) {}, message: "no AddonSet is in reach: make one in a platform namespace, or in this one"},
		"Doubt":       {sets: func(s *Sets) { ready(s); s.Doubt = "half of the fleet fails" }, message: "the add-on is Ready; half of the fleet fails"},
		"LaterToo":    {sets: func(s *Sets) { ready(s); s.later = []string{"flux-system/new"} }, message: "the add-on is Ready; waits for its wave: flux-system/new"},
		"OnlyLater":   {sets: func(s *Sets) { s.later = []string{"flux-system/new"} }, message: "waits for its wave: flux-system/new"},
		"NoSetToOver": {sets: func(*Sets) {}, overrides: []hubv1.Override{{Name: "a"}}, message: "no AddonSet is in reach: make one in a platform namespace, or in this one"},
		"Waits":       {sets: ready, leaving: hubv1.LabelRemovedReason, message: "leaves; the add-on is Ready"},
		"Goes":        {sets: ready, leaving: hubv1.LabelRemovedReason, deleted: true, message: "the add-on is Ready"},
		"Unregisters": {sets: ready, leaving: hubv1.UnregisteredReason, message: "the add-on is Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{Overrides: tc.overrides}}
			for _, typ := range []string{hubv1.KubeConfigValidCondition, hubv1.ReachableCondition} {
				status.Set(reg, typ, metav1.ConditionTrue, hubv1.SucceededReason, "", noon)
			}
			if tc.leaving != "" {
				status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, tc.leaving, "leaves", noon)
			}
			if tc.deleted {
				reg.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			s := Of(reg, nil, noon)
			tc.sets(s)
			s.Report(reg, noon)
			s.Summarize(reg, Access{}, noon)
			if got := status.Find(reg, hubv1.ReadyCondition).Message; got != tc.message {
				t.Errorf("Ready says %q, want %q", got, tc.message)
			}
		})
	}
}
