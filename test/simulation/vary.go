// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Vary returns a script with the same acts in the same order. Between the acts, caches, controllers and Flux go on in another order, and
// some of the waits are shorter or longer.
func Vary(script []string, seed uint64) []string {
	d := &draw{rand.New(rand.NewPCG(seed, 51))}
	anyOrder := func() string { return fmt.Sprintf("run %d %d", 1+d.IntN(60), d.IntN(1_000_000)) }
	var out []string
	begun := false // what comes before the first wait makes the fleet
	for _, line := range script {
		verb, _, _ := strings.Cut(line, " ")
		begun = begun || verb == "wait" || verb == "run"
		if verb == "run" {
			line = anyOrder()
		}
		if verb == "wait" && d.IntN(8) == 0 {
			line = "wait " + d.one("1s", "7s", "30s", "2m")
		}
		out = append(out, line)
		if begun && line != "" && d.IntN(4) == 0 {
			out = append(out, anyOrder())
		}
	}
	return out
}
