// SPDX-License-Identifier: Apache-2.0

package simulation

// Known are invariants that the hub is known to break, with what is to be mended first. A seed that breaks one of them fails no test. It is
// to be empty.
var Known = map[string]string{
	"orphans": "one seed in some hundreds: a hand-over, and its set goes, while a cluster is silent",
}
