// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestSetSaysWhatItWaitsFor: a sentence, without the marks of a command line's text.
func TestSetSaysWhatItWaitsFor(t *testing.T) {
	set := &hubv1.AddonSet{}
	set.Status.Rollout = &hubv1.RolloutStatus{Phase: hubv1.RolloutFailed, WaitingFor: "another revision; or for `chandler rollout retry`"}
	if got := (&Board{}).setBar(set, nil).Says; got != "waits for another revision; or for chandler rollout retry" {
		t.Errorf("it says %q", got)
	}
}
