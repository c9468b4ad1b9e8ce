// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestProbedTurned(t *testing.T) {
	var p probed
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	for i, step := range []struct {
		key   types.NamespacedName
		state string
		want  bool
		why   string
	}{
		{one, "Provisioning", false, "its first probe is under way anyway"},
		{two, "Ready", false, "each has its own"},
		{one, "Provisioning", false, "no news"},
		{one, "Ready", true, "its API server has come up"},
		{one, "Ready", false, "once"},
		{one, "NotReady", true, "it has gone"},
	} {
		if got := p.turned(step.key, step.state); got != step.want {
			t.Errorf("%d: %s: turned is %t", i, step.why, got)
		}
	}
	p.forget(one)
	if p.turned(one, "Ready") {
		t.Error("what was forgotten is remembered")
	}
}
