// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// TestRolloutBegins: the event names the wave with which a rollout begins, and none if there is none.
func TestRolloutBegins(t *testing.T) {
	for wave, want := range map[string]string{
		"": "rollout of revision base-2-e3 begins", "canary": "rollout of revision base-2-e3 begins with wave canary",
	} {
		events := rollout.Events(&hubv1.RolloutStatus{Revision: "base-1-e3", Phase: hubv1.RolloutDone},
			&hubv1.RolloutStatus{Revision: "base-2-e3", Phase: hubv1.RolloutProgressing, Wave: wave})
		if len(events) != 1 || events[0].Message != want || events[0].Warning || events[0].Reason != hubv1.RolloutStartedEvent {
			t.Errorf("wave %q: got %+v, want %q", wave, events, want)
		}
	}
}
