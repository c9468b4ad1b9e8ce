// SPDX-License-Identifier: Apache-2.0

package pace_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/status"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// delivery returns one with two add-ons in these states.
func delivery(phase status.Phase, reason string, states ...hubv1.AddonState) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{}
	for i, s := range states {
		d.Status.Addons = append(d.Status.Addons, hubv1.AddonStatus{Name: string(rune('a' + i)), Kind: "HelmRelease", Object: "o", State: s})
	}
	if reason != "" {
		status.Summarize(d, status.Summary{Phase: phase, Reason: reason}, now)
	}
	return d
}

func TestDelivery(t *testing.T) {
	none := func() *hubv1.AddonDelivery { return delivery(status.Working, "") }
	some := func() *hubv1.AddonDelivery {
		return delivery(status.Working, hubv1.ProgressingReason, hubv1.AddonReady, hubv1.AddonProgressing)
	}
	all := func() *hubv1.AddonDelivery {
		d := delivery(status.Done, hubv1.AddonsReadyReason, hubv1.AddonReady, hubv1.AddonReady)
		d.Status.ReadyRevision = "r1"
		return d
	}
	failed := func() *hubv1.AddonDelivery {
		return delivery(status.Broken, hubv1.AddonsFailedReason, hubv1.AddonReady, hubv1.AddonFailed)
	}
	with := func(d *hubv1.AddonDelivery, change func(*hubv1.AddonDelivery)) *hubv1.AddonDelivery {
		change(d)
		return d
	}
	second := func(d *hubv1.AddonDelivery) *hubv1.AddonStatus { return &d.Status.Addons[1] }
	for name, tc := range map[string]struct {
		before, after *hubv1.AddonDelivery
		want          bool
	}{
		"nothing changed":  {some(), some(), false},
		"the first status": {none(), some(), true},
		"one more is Ready": {delivery(status.Working, hubv1.ProgressingReason, hubv1.AddonProgressing, hubv1.AddonProgressing),
			some(), true},
		"a version, a message, a generation": {some(), with(some(), func(d *hubv1.AddonDelivery) {
			second(d).Version, second(d).Message, second(d).AppliedGeneration, d.Status.ObservedRevision = "1.0.0", "installing", 2, "r2"
		}), true},
		"at work again":      {all(), with(some(), func(d *hubv1.AddonDelivery) { d.Status.ReadyRevision = "r1" }), true},
		"all are Ready":      {some(), all(), false},
		"one failed":         {some(), failed(), false},
		"recovering":         {failed(), some(), false},
		"the guard is asked": {some(), with(some(), func(d *hubv1.AddonDelivery) { second(d).Removal = "x" }), false},
		"a release is recorded": {some(), with(some(), func(d *hubv1.AddonDelivery) {
			second(d).Release = &hubv1.HelmReleaseIdentity{Name: "x"}
		}), false},
		"it has another object": {some(), with(some(), func(d *hubv1.AddonDelivery) { second(d).Object = "p" }), false},
		"one is on its way out": {some(), with(some(), func(d *hubv1.AddonDelivery) { second(d).State = hubv1.AddonRemoving }), false},
		"one is an orphan":      {some(), with(some(), func(d *hubv1.AddonDelivery) { second(d).State = hubv1.AddonOrphaned }), false},
		"the delivery is leaving": {some(), with(delivery(status.Working, hubv1.ProgressingReason, hubv1.AddonProgressing), func(d *hubv1.AddonDelivery) {
			at := metav1.NewTime(now)
			d.DeletionTimestamp = &at
		}), false},
	} {
		if got := pace.Delivery(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: mere progress: %t, want %t", name, got, tc.want)
		}
	}
}

func registration(phase status.Phase, reason string, reachable metav1.ConditionStatus, why string, ready, total int32) *hubv1.ClusterRegistration {
	reg := &hubv1.ClusterRegistration{}
	if reason == "" {
		return reg
	}
	status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason, "", now)
	status.Set(reg, hubv1.ReachableCondition, reachable, why, "", now)
	reg.Status.AddonCounts = &hubv1.ObjectCounts{Ready: ready, Total: total}
	status.Summarize(reg, status.Summary{Phase: phase, Reason: reason}, now)
	return reg
}

func TestRegistration(t *testing.T) {
	none := registration(status.Working, "", "", "", 0, 0)
	unprobed := registration(status.Working, hubv1.NotProbedReason, metav1.ConditionUnknown, hubv1.NotProbedReason, 0, 0)
	idle := registration(status.Done, hubv1.NoAddonSetReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 0, 0)
	some := registration(status.Working, hubv1.ProgressingReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 1, 3)
	begun := registration(status.Working, hubv1.ProgressingReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 0, 3)
	more := registration(status.Working, hubv1.ProgressingReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 2, 3)
	all := registration(status.Done, hubv1.SucceededReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 3, 3)
	failed := registration(status.Broken, hubv1.AddonsFailedReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 2, 3)
	silent := registration(status.Broken, "Timeout", metav1.ConditionFalse, "Timeout", 3, 3)
	leaving := registration(status.Working, hubv1.AddonsLeavingReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 1, 1)
	for name, tc := range map[string]struct {
		before, after *hubv1.ClusterRegistration
		unready       bool
		want          bool
	}{
		"nothing changed":             {some, some, true, false},
		"the first look":              {none, unprobed, false, true},
		"the first answer":            {none, idle, false, false},
		"the answer comes":            {unprobed, idle, false, false},
		"a set is to be delivered":    {idle, begun, false, true},
		"the first is Ready":          {begun, some, true, false},
		"its delivery is not Ready":   {idle, some, true, false},
		"one more is Ready":           {some, more, true, true},
		"at work again":               {all, some, true, false},
		"another set is selected":     {all, some, false, true},
		"a set leaves":                {all, leaving, true, false},
		"a set leaves that never was": {some, leaving, true, true},
		"it has left":                 {leaving, all, false, false},
		"the last one has left":       {leaving, idle, false, false},
		"it is wanted again":          {leaving, some, true, false},
		"all are Ready":               {more, all, false, false},
		"one failed":                  {some, failed, true, false},
		"recovering":                  {failed, some, true, false},
		"it fell silent":              {all, silent, false, false},
		"it answers once again":       {silent, some, true, false},
	} {
		if got := pace.Registration(tc.before, tc.after, tc.unready); got != tc.want {
			t.Errorf("%s: mere progress: %t, want %t", name, got, tc.want)
		}
	}
}

func TestWaiting(t *testing.T) {
	var w pace.Waiting
	key := types.NamespacedName{Name: "a"}
	const delay = 5 * time.Second
	step := func(progress bool, at, want time.Duration) {
		t.Helper()
		if got := w.For(key, progress, delay, now.Add(at)); got != want {
			t.Errorf("at %s it waits for %s, want %s", at, got, want)
		}
	}
	step(true, 0, delay)
	step(true, 2*time.Second, 3*time.Second) // more of it waits no longer
	step(true, delay, 0)
	step(true, 6*time.Second, delay) // the next begins anew
	step(false, 7*time.Second, 0)    // news takes it along
	step(true, 8*time.Second, delay)
	w.Forget(key)
	step(true, 9*time.Second, delay)
}

func TestDelay(t *testing.T) {
	first, later := pace.Delay(&hubv1.AddonDelivery{}), pace.Delay(delivery(status.Working, hubv1.ProgressingReason))
	sum := pace.Delay(registration(status.Working, hubv1.ProgressingReason, metav1.ConditionTrue, hubv1.ProbeSucceededReason, 1, 3))
	if first <= 0 || first >= later || later >= sum {
		t.Errorf("the first waits %s, later ones %s, a registration's %s", first, later, sum)
	}
}

func TestSooner(t *testing.T) {
	for _, tc := range []struct {
		waits []time.Duration
		want  time.Duration
	}{{nil, 0}, {[]time.Duration{0, 0}, 0}, {[]time.Duration{0, time.Minute}, time.Minute}, {[]time.Duration{time.Minute, 0, time.Second}, time.Second}} {
		if got := pace.Sooner(tc.waits...); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.waits, got, tc.want)
		}
	}
}
