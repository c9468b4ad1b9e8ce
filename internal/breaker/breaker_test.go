// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/breaker"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	until := func(d time.Duration) *hubv1.Pause {
		at := metav1.NewTime(now.Add(d))
		return &hubv1.Pause{Until: &at, Reason: "upgrade of the network"}
	}
	down := breaker.Facts{Answered: true, Down: true, Fleet: breaker.Fleet{Probed: 100, Failed: 1}}
	mass := breaker.Fleet{Probed: 20, Failed: 12}
	restarts := func(down time.Duration, open string, restarts bool) breaker.Facts {
		return breaker.Facts{Answered: true, Down: true, DownSince: now.Add(-down), Open: open, Maintenance: breaker.State{Reason: "R", Message: "it is being upgraded", Restarts: restarts}}
	}
	waits := func(since time.Duration, open string, opened time.Duration) breaker.Facts {
		return breaker.Facts{Answered: true, Waiting: now.Add(-since), Open: open, OpenSince: now.Add(-opened), Again: time.Minute}
	}
	cases := map[string]struct {
		facts   breaker.Facts
		reason  string
		message string
		doubt   bool
		wait    time.Duration
	}{
		"Closed":               {facts: breaker.Facts{Answered: true}},
		"Opens":                {facts: down, reason: hubv1.ClusterUnreachableReason},
		"NeverAnswered":        {facts: breaker.Facts{Down: true}},
		"StaysOpen":            {facts: breaker.Facts{Answered: true, Down: true, Open: hubv1.ClusterUnreachableReason}, reason: hubv1.ClusterUnreachableReason},
		"Closes":               {facts: breaker.Facts{Answered: true, Open: hubv1.ClusterUnreachableReason}},
		"HubsOwnNetwork":       {facts: breaker.Facts{Answered: true, Down: true, Fleet: mass, Again: time.Second}, doubt: true, wait: time.Second},
		"OpenBeforeTheNetwork": {facts: breaker.Facts{Answered: true, Down: true, Open: hubv1.ClusterUnreachableReason, Fleet: mass}, reason: hubv1.ClusterUnreachableReason},
		"FewOfFew":             {facts: breaker.Facts{Answered: true, Down: true, Fleet: breaker.Fleet{Probed: 6, Failed: 5}}, reason: hubv1.ClusterUnreachableReason},
		"ManyOfMany":           {facts: breaker.Facts{Answered: true, Down: true, Fleet: breaker.Fleet{Probed: 1000, Failed: 300}}, reason: hubv1.ClusterUnreachableReason},
		"Paused":               {facts: breaker.Facts{Pause: &hubv1.Pause{}}, reason: hubv1.PausedReason},
		"PausedUntil":          {facts: breaker.Facts{Answered: true, Pause: until(time.Minute)}, reason: hubv1.PausedReason, message: "until 2026-11-21T12:01:00Z: upgrade of the network", wait: time.Minute},
		"PauseIsOver":          {facts: breaker.Facts{Answered: true, Pause: until(0)}},
		"PausedAndDown":        {facts: breaker.Facts{Answered: true, Down: true, Pause: &hubv1.Pause{}}, reason: hubv1.PausedReason},
		"PauseIsOverAndDown":   {facts: breaker.Facts{Answered: true, Down: true, Pause: until(-time.Minute), Open: hubv1.PausedReason}, reason: hubv1.ClusterUnreachableReason},
		"Sleeping":             {facts: breaker.Facts{Answered: true, Down: true, Expected: breaker.State{Reason: hubv1.ClusterSleepingReason}, Fleet: mass}, reason: hubv1.ClusterSleepingReason},
		"Restarts":             {facts: restarts(14*time.Minute, "", true), doubt: true, wait: time.Minute},
		"RestartsForTooLong":   {facts: restarts(15*time.Minute, "", true), reason: hubv1.ClusterUnreachableReason},
		"WasDownBefore":        {facts: restarts(time.Minute, hubv1.ClusterUnreachableReason, true), reason: hubv1.ClusterUnreachableReason},
		"DoesNotRestart":       {facts: restarts(time.Minute, "", false), reason: hubv1.ClusterUnreachableReason},
		"Refuses":              {facts: breaker.Facts{Answered: true, Down: true, Refused: true}, reason: hubv1.CredentialRefusedReason, message: "refuses the credential"},
		"RefusesNow":           {facts: breaker.Facts{Answered: true, Down: true, Refused: true, Open: hubv1.ClusterUnreachableReason}, reason: hubv1.CredentialRefusedReason},
		"RefusesAndWasPaused":  {facts: breaker.Facts{Answered: true, Down: true, Refused: true, Pause: &hubv1.Pause{}}, reason: hubv1.PausedReason},
		"FluxWaits":            {facts: waits(4*time.Minute, "", 0), wait: time.Minute},
		"FluxHangs":            {facts: waits(5*time.Minute, "", 0), reason: hubv1.FluxHangsReason, message: "restarted"},
		"FluxHangsAndIsDown":   {facts: breaker.Facts{Answered: true, Down: true, Waiting: now.Add(-time.Hour)}, reason: hubv1.ClusterUnreachableReason},
		"FluxHangsEverywhere":  {facts: breaker.Facts{Answered: true, Waiting: now.Add(-time.Hour), Hanging: mass, Again: time.Second}, doubt: true, wait: time.Second},
		"FluxStillHangs":       {facts: waits(time.Hour, hubv1.FluxHangsReason, 29*time.Minute+30*time.Second), reason: hubv1.FluxHangsReason, wait: 30 * time.Second},
		"FluxTriesAgain":       {facts: waits(time.Hour, hubv1.FluxHangsReason, 30*time.Minute)},
		"FluxHasGoneOn":        {facts: breaker.Facts{Answered: true, Open: hubv1.FluxHangsReason, OpenSince: now}},
		"RestartsAndAnswers":   {facts: breaker.Facts{Answered: true, DownSince: now, Maintenance: breaker.State{Reason: "R", Restarts: true}}},
		"OthersAreDown":        {facts: breaker.Facts{Answered: true, Fleet: mass, Again: time.Second}},
		"RefusedOnce":          {facts: breaker.Facts{Answered: true, Refused: true}}, // as of a probe that did not fail often enough
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Now = now
			d := breaker.Decide(tc.facts)
			if d.Reason != tc.reason || !strings.Contains(d.Message, tc.message) || (d.Doubt != "") != tc.doubt || d.Wait != tc.wait {
				t.Errorf("got %+v, want reason %q, message %q, doubt %v, wait %s", d, tc.reason, tc.message, tc.doubt, tc.wait)
			}
		})
	}
}
