// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Event is something that people want to be told.
type Event struct {
	Warning         bool
	Reason, Message string
}

// Events returns what has happened between two states. before may be nil.
func Events(before, after *hubv1.RolloutStatus) []Event {
	if before == nil {
		before = &hubv1.RolloutStatus{}
	}
	var out []Event
	tell := func(reason, format string, args ...any) {
		out = append(out, Event{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	began := before.Revision != after.Revision || before.Started == nil || after.Started != nil && !after.Started.Equal(before.Started)
	if began && before.Revision != "" && after.Phase != hubv1.RolloutDone {
		with := ""
		if after.Wave != "" {
			with = " with wave " + after.Wave
		}
		tell(hubv1.RolloutStartedEvent, "rollout of revision %s begins%s", after.Revision, with)
	} else if after.Wave != before.Wave && after.Wave != "" && before.Wave != "" {
		tell(hubv1.WaveStartedEvent, "wave %s gets revision %s", after.Wave, after.Revision)
	}
	if after.Phase == before.Phase && !began {
		return out
	}
	switch after.Phase {
	case hubv1.RolloutFailed:
		out = append(out, Event{true, hubv1.RolloutFailedReason, fmt.Sprintf("revision %s failed in wave %s: %s", after.Revision, after.Wave,
			sample(after.Failed))})
	case hubv1.RolloutWaitingForApproval, hubv1.RolloutPaused:
		tell(hubv1.RolloutWaitsEvent, "revision %s waits for %s", after.Revision, after.WaitingFor)
	case hubv1.RolloutDone:
		if before.Revision != "" {
			tell(hubv1.RolloutCompleteCondition, "every wave has revision %s", after.Revision)
		}
	case hubv1.RolloutRollingBack:
		out = append(out, Event{true, hubv1.RollbackEvent, fmt.Sprintf("the clusters get revision %s again", after.Revision)})
	case hubv1.RolloutRolledBack:
		tell(hubv1.RollbackEvent, "the clusters have revision %s again; the set itself is ahead", after.Revision)
	}
	return out
}

func sample(names []string) string {
	if len(names) == 0 {
		return "no cluster is named"
	}
	return names[0]
}
