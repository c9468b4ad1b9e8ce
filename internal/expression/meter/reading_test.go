// SPDX-License-Identifier: Apache-2.0

package meter

import "testing"

// TestOnePrice: a function that reads its arguments has no rule besides.
func TestOnePrice(t *testing.T) {
	for name := range isReading {
		if rules[name] != nil {
			t.Errorf("%s is listed as one that reads, and has a rule", name)
		}
	}
}
