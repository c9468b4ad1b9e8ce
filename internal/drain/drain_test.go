// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/origin"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func tenant(annotations ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetName("tenant1")
	all := map[string]string{}
	for _, a := range annotations {
		k, v, _ := strings.Cut(a, "=")
		all[k] = v
	}
	u.SetAnnotations(all)
	return u
}

// was is the condition of a drain that began some time ago.
func was(reason string, ago time.Duration) *metav1.Condition {
	return &metav1.Condition{Type: hubv1.DrainingCondition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-ago))}
}

func TestDecide(t *testing.T) {
	on, tenMinutes := &hubv1.DrainBeforeDeletion{}, &hubv1.DrainBeforeDeletion{Timeout: &metav1.Duration{Duration: 10 * time.Minute}}
	asked, going := tenant("chandler.dev/drain=true"), tenant("chandler.dev/drain=true")
	going.SetDeletionTimestamp(&metav1.Time{Time: now})
	left := []string{"base/a", "base/b"}
	guarded := drain.Decision{Guarded: true}
	in := func(wait time.Duration) drain.Decision {
		return drain.Decision{Guarded: true, Reason: hubv1.DrainInProgressReason, Wait: wait}
	}
	drained := drain.Decision{Guarded: true, Drained: true, Reason: hubv1.DrainedReason}
	timedOut := drain.Decision{Guarded: true, Drained: true, Reason: hubv1.DrainTimedOutReason}
	cases := map[string]struct {
		facts drain.Facts
		want  drain.Decision
		text  string // in the message, or in what is idle
	}{
		"Off":                {drain.Facts{Origin: tenant()}, drain.Decision{}, ""},
		"OffAndAskedFor":     {drain.Facts{Origin: asked}, drain.Decision{}, `annotation chandler.dev/drain of TenantControlPlane "tenant1" does nothing without spec.drainBeforeDeletion`},
		"SwitchedOff":        {drain.Facts{Origin: asked, Was: was(hubv1.DrainedReason, time.Hour)}, drain.Decision{}, "does nothing without"},
		"On":                 {drain.Facts{Spec: on, Origin: tenant()}, guarded, ""},
		"AskedForOtherwise":  {drain.Facts{Spec: on, Origin: tenant("chandler.dev/drain=yes")}, guarded, ""},
		"OriginUnknown":      {drain.Facts{Spec: on, Was: was(hubv1.DrainedReason, time.Hour)}, drain.Decision{Keep: true}, ""},
		"OriginGoing":        {drain.Facts{Spec: on, Origin: going, Left: left}, drain.Decision{Keep: true}, ""},
		"SwitchedOffTooLate": {drain.Facts{Origin: going, Was: was(hubv1.DrainedReason, time.Hour)}, drain.Decision{Keep: true}, ""},
		"Secret":             {drain.Facts{Kind: origin.Secret, Origin: asked}, drain.Decision{Keep: true}, ""},
		"SecretAndOn":        {drain.Facts{Kind: origin.Secret, Spec: on, Origin: asked}, drain.Decision{Keep: true}, "a TenantControlPlane or a Cluster"},

		"Begins":             {drain.Facts{Spec: on, Origin: asked, Left: left}, in(2 * time.Second), `left: base/a, base/b; TenantControlPlane "tenant1" may be deleted when none is left, or 30m0s after this began`},
		"BeginsWithNothing":  {drain.Facts{Spec: on, Origin: asked}, in(2 * time.Second), "no add-on is left"},
		"MayBeDeliveredYet":  {drain.Facts{Spec: on, Origin: asked, Was: was(hubv1.DrainInProgressReason, time.Second)}, in(time.Second), "no add-on is left"},
		"NothingLeft":        {drain.Facts{Spec: on, Origin: asked, Was: was(hubv1.DrainInProgressReason, 2*time.Second)}, drained, "remove annotation chandler.dev/drain from it"},
		"SomeLeft":           {drain.Facts{Spec: on, Origin: asked, Left: left, Was: was(hubv1.DrainInProgressReason, time.Minute)}, in(29 * time.Minute), "left: base/a, base/b"},
		"OwnTimeout":         {drain.Facts{Spec: tenMinutes, Origin: asked, Left: left, Was: was(hubv1.DrainInProgressReason, time.Minute)}, in(9 * time.Minute), "10m0s after this began"},
		"Waits":              {drain.Facts{Spec: on, Origin: asked, Left: left, Waits: "spec.pause", Was: was(hubv1.DrainInProgressReason, time.Minute)}, in(29 * time.Minute), "it waits: spec.pause"},
		"CameBack":           {drain.Facts{Spec: on, Origin: asked, Left: left, Was: was(hubv1.DrainedReason, time.Minute)}, in(29 * time.Minute), "left: "},
		"StaysDrained":       {drain.Facts{Spec: on, Origin: asked, Was: was(hubv1.DrainedReason, time.Hour)}, drained, ""},
		"TimesOut":           {drain.Facts{Spec: on, Origin: asked, Left: left, Was: was(hubv1.DrainInProgressReason, 30*time.Minute)}, timedOut, "not everything was uninstalled within 30m0s, and TenantControlPlane \"tenant1\" may be deleted all the same; left: base/a, base/b"},
		"OrphanedAfterThat":  {drain.Facts{Spec: on, Origin: asked, Was: was(hubv1.DrainTimedOutReason, time.Hour)}, timedOut, "no add-on is left"},
		"GivenMoreTime":      {drain.Facts{Spec: on, Origin: asked, Left: left, Was: was(hubv1.DrainTimedOutReason, 20*time.Minute)}, in(10 * time.Minute), ""},
		"DoneAtTheLastPoint": {drain.Facts{Spec: on, Origin: asked, Was: was(hubv1.DrainInProgressReason, 30*time.Minute)}, drained, ""},
		"NobodyWasAtWork":    {drain.Facts{Spec: on, Origin: asked, Left: left, Since: now.Add(-time.Minute), Was: was(hubv1.DrainInProgressReason, 5*time.Hour)}, in(29 * time.Minute), "left: base/a, base/b"},
		"AndItIsOverNow":     {drain.Facts{Spec: on, Origin: asked, Left: left, Since: now.Add(-30 * time.Minute), Was: was(hubv1.DrainInProgressReason, 5*time.Hour)}, timedOut, "left: base/a, base/b"},
		"ItHadTimedOut":      {drain.Facts{Spec: on, Origin: asked, Left: left, Since: now.Add(-time.Minute), Was: was(hubv1.DrainTimedOutReason, 5*time.Hour)}, timedOut, "left: base/a, base/b"},
		"ItWasThereBefore":   {drain.Facts{Spec: on, Origin: asked, Left: left, Since: now.Add(-9 * time.Hour), Was: was(hubv1.DrainInProgressReason, 20*time.Minute)}, in(10 * time.Minute), ""},
		"CalledOff":          {drain.Facts{Spec: on, Origin: tenant("chandler.dev/drained=true"), Was: was(hubv1.DrainedReason, time.Hour)}, guarded, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Now = now
			if tc.facts.Kind == (origin.Kind{}) {
				tc.facts.Kind = origin.Kamaji
			}
			got := drain.Decide(tc.facts)
			if text := got.Message + got.Idle; !strings.Contains(text, tc.text) || tc.want.Reason == "" && tc.text == "" && text != "" {
				t.Errorf("says %q, want %q", text, tc.text)
			}
			got.Message, got.Idle = "", ""
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestMessagesAreSteady: what is told does not change by the passing of time alone, or it would be written again and again.
func TestMessagesAreSteady(t *testing.T) {
	for _, ago := range []time.Duration{time.Minute, time.Hour} {
		f := drain.Facts{Spec: &hubv1.DrainBeforeDeletion{}, Kind: origin.Kamaji, Origin: tenant("chandler.dev/drain=true"), Left: []string{"base/a"}, Was: was(hubv1.DrainInProgressReason, ago), Now: now}
		a := drain.Decide(f)
		f.Now = f.Now.Add(time.Minute)
		if b := drain.Decide(f); a.Message != b.Message || a.Reason != b.Reason {
			t.Errorf("%q, and a minute later %q", a.Message, b.Message)
		}
	}
}

func TestRequested(t *testing.T) {
	reg := &hubv1.ClusterRegistration{}
	reg.Spec.DrainBeforeDeletion = &hubv1.DrainBeforeDeletion{}
	if drain.Requested(reg) {
		t.Error("a cluster that may have to be drained some time is drained now")
	}
	reg.Status.Conditions = []metav1.Condition{*was(hubv1.DrainTimedOutReason, time.Hour)}
	if !drain.Requested(reg) {
		t.Error("a cluster that is being drained is not")
	}
}
