// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// TestDefects: each defect can still be put back. Whether the simulation finds it is for `make defects`, which builds the hub for each.
func TestDefects(t *testing.T) {
	for _, d := range Defects {
		t.Run(d.Name, func(t *testing.T) {
			if _, err := d.Overlay("../../..", t.TempDir()); err != nil {
				t.Error(err)
			}
			if name, ok := Scripts[d.Name]; ok {
				if _, err := os.Stat("../testdata/" + name + ".txt"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRead(t *testing.T) {
	f, err := read("--- FAIL: TestSeeds\n    simulation_test.go:47: seed 4: guard: 4 clusters have lost\n    x.go:50: the story, shrunk:\n        0s a\n        the script:\n" +
		"        cluster w1 Secret tier=prod\n        chart base hello other\n        wait 1s\nFAIL\n")
	if err != nil || f.seen != 5 || f.invariant != "guard" || len(f.script) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
}
