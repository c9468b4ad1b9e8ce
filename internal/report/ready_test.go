// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestReady: what READY, ADDONS and REASON of a delivery say of the states of its add-ons.
func TestReady(t *testing.T) {
	is := func(name string, state hubv1.AddonState, reason, message string) hubv1.AddonStatus {
		return hubv1.AddonStatus{Name: name, State: state, Reason: reason, Message: message}
	}
	was := func(name string, state hubv1.AddonState) hubv1.AddonStatus {
		return hubv1.AddonStatus{Name: name, State: state, Before: hubv1.AddonReady}
	}
	ready := func(name string) hubv1.AddonStatus { return is(name, hubv1.AddonReady, "", "") }
	lost := is("b", hubv1.AddonLostTo, "", `AddonSet flux-system/base delivers add-on "b": it was there first`)
	for name, tc := range map[string]struct {
		addons []hubv1.AddonStatus
		// suspended is why the cluster's Flux objects are.
		suspended string
		// older is true if it has been Ready on an older revision only, frozen if nothing comes out of this one.
		older, frozen bool
		want          status.Phase
		reason, says  string
		counts        string
	}{
		"One":              {addons: []hubv1.AddonStatus{ready("a")}, want: status.Done, reason: "AddonsReady", says: "the add-on is Ready", counts: "1/1"},
		"Two":              {addons: []hubv1.AddonStatus{ready("a"), ready("b")}, want: status.Done, reason: "AddonsReady", says: "all 2 add-ons are Ready", counts: "2/2"},
		"None":             {want: status.Done, reason: "AddonsReady", says: "no add-on of this set is for this cluster", counts: "0/0"},
		"Excluded":         {addons: []hubv1.AddonStatus{is("a", hubv1.AddonExcluded, "", "")}, want: status.Done, reason: "AddonsReady", says: "no add-on of this set", counts: "0/0"},
		"Failed":           {addons: []hubv1.AddonStatus{ready("a"), is("b", hubv1.AddonFailed, "UpgradeFailed", "UpgradeFailed: timeout")}, want: status.Broken, reason: "AddonsFailed", says: "b: UpgradeFailed: timeout", counts: "1/2"},
		"LostAll":          {addons: []hubv1.AddonStatus{lost}, want: status.Broken, reason: "AddonsLost", says: "nothing of this set is delivered here; delivered by other sets: b (AddonSet flux-system/base delivers", counts: "0/1"},
		"LostAllButExcl":   {addons: []hubv1.AddonStatus{is("a", hubv1.AddonExcluded, "", ""), lost}, want: status.Broken, reason: "AddonsLost", says: "nothing of this set", counts: "0/1"},
		"LostSome":         {addons: []hubv1.AddonStatus{ready("a"), lost}, want: status.Done, reason: "AddonsLost", says: "1 of 2 add-ons are Ready; delivered by other sets: b (AddonSet flux-system/base", counts: "1/2"},
		"HandOver":         {addons: []hubv1.AddonStatus{is("b", hubv1.AddonLostTo, "HandOver", "AddonSet x/y delivers it")}, want: status.Working, reason: "Progressing", says: "b waits to take over (AddonSet x/y delivers it)", counts: "0/1"},
		"HandOverOfOne":    {addons: []hubv1.AddonStatus{ready("a"), is("b", hubv1.AddonLostTo, "HandOver", "y")}, want: status.Working, reason: "Progressing", says: "b waits to take over", counts: "1/2"},
		"NoSource":         {addons: []hubv1.AddonStatus{is("a", hubv1.AddonProgressing, "SourceNotFound", "Flux waits for x")}, want: status.Working, reason: "SourceNotFound", says: "a is Progressing (Flux waits for x)", counts: "0/1"},
		"NoSourceOfOne":    {addons: []hubv1.AddonStatus{is("a", hubv1.AddonProgressing, "SourceNotFound", "x"), is("b", hubv1.AddonProgressing, "", "")}, want: status.Working, reason: "Progressing", says: "a is Progressing (x)", counts: "0/2"},
		"Paused":           {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), was("b", hubv1.AddonPaused)}, suspended: "Paused", want: status.Done, reason: "Paused", says: "maintenance; what runs stays as it is", counts: "2/2"},
		"PausedBeforeIt":   {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), is("b", hubv1.AddonPaused, "", "")}, suspended: "Paused", want: status.Working, reason: "Paused", says: "maintenance", counts: "1/2"},
		"PausedAndOutdate": {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused)}, suspended: "Paused", older: true, want: status.Working, reason: "Paused", says: "maintenance", counts: "1/1"},
		"PausedRemoving":   {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), is("b", hubv1.AddonRemoving, "", "")}, suspended: "Paused", want: status.Working, reason: "Paused", says: "maintenance", counts: "1/1"},
		"PausedAndFrozen":  {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused)}, suspended: "Paused", frozen: true, want: status.Done, reason: "Paused", says: "maintenance", counts: "1/1"},
		"PausedAndLost":    {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), lost}, suspended: "Paused", want: status.Done, reason: "Paused", says: "maintenance", counts: "1/2"},
		"Asleep":           {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused)}, suspended: "ClusterSleeping", want: status.Done, reason: "ClusterSleeping", says: "maintenance", counts: "1/1"},
		"Silent":           {addons: []hubv1.AddonStatus{is("a", hubv1.AddonUnreachable, "", "")}, suspended: "ClusterUnreachable", want: status.Working, reason: "ClusterUnreachable", says: "maintenance", counts: "0/1"},
		"Suspended":        {addons: []hubv1.AddonStatus{was("a", hubv1.AddonSuspended), ready("b")}, want: status.Done, reason: "Suspended", says: "1 add-on suspended: a; `flux resume` lets it go on", counts: "2/2"},
		"SuspendedEarly":   {addons: []hubv1.AddonStatus{is("a", hubv1.AddonSuspended, "", ""), ready("b")}, want: status.Working, reason: "Suspended", says: "1 add-on suspended: a", counts: "1/2"},
		"SuspendedAndNot":  {addons: []hubv1.AddonStatus{was("a", hubv1.AddonSuspended), is("b", hubv1.AddonProgressing, "", "")}, want: status.Working, reason: "Progressing", says: "b is Progressing", counts: "1/2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := report.Facts{Addons: tc.addons, Counts: *report.Count(tc.addons), Registered: true, Answered: true, WasReady: !tc.older}
			if tc.suspended != "" {
				f.Suspended = &metav1.Condition{Type: hubv1.SuspendedCondition, Status: metav1.ConditionTrue, Reason: tc.suspended, Message: "maintenance"}
			}
			if tc.frozen {
				f.Unrendered, f.Reason, f.Frozen = true, hubv1.FrozenReason, true
			}
			got := report.Ready(f)
			if got.Phase != tc.want || got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.says) && !strings.Contains(got.Message, tc.says) {
				t.Errorf("got %+v, want phase %d, %s: %s", got, tc.want, tc.reason, tc.says)
			}
			if f.Counts.Summary != tc.counts {
				t.Errorf("ADDONS %s, want %s", f.Counts.Summary, tc.counts)
			}
		})
	}
}
