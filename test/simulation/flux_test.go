// SPDX-License-Identifier: Apache-2.0

package simulation

import "testing"

// TestFluxWaits: the model's Flux does not begin with an object before all that it depends on are Ready, and then does.
func TestFluxWaits(t *testing.T) {
	w := newWorld()
	w.startHub()
	defer w.stopHub()
	play := func(lines ...string) {
		for _, line := range lines {
			if err := w.do(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	play("cluster w1 Secret tier=prod", "break hello", "set flux-system base tier=prod hello:helm more:helm:hello", "wait 5m")
	c := w.cluster("w1")
	if len(c.workloads) > 0 {
		t.Errorf("it has %v before hello is Ready", sortedKeys(c.workloads))
	}
	play("mend hello", "wait 20m")
	if len(c.workloads) != 2 {
		t.Errorf("it has %v after hello is Ready", sortedKeys(c.workloads))
	}
}
