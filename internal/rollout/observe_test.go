// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/chandler-hub/chandler/internal/rollout"
)

// A hub with a new epoch moves no cluster by itself. What changes nothing takes no slot, and so it must not be what another epoch
// may render differently.
func TestAnotherEpochChangesSomething(t *testing.T) {
	same := rollout.Unchanged(func(string) []byte { return []byte(`{"addons":[]}`) })
	c := &rollout.Cluster{Revision: "base-1-e2"}
	if same(c, "base-2-e3") {
		t.Error("it changes nothing")
	}
	if c.Revision = "base-1-e3"; !same(c, "base-2-e3") {
		t.Error("it changes something")
	}
}
