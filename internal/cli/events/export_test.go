// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"
	"time"
)

// ReadEvery sets how often the objects are read, until the test ends.
func ReadEvery(t *testing.T, d time.Duration) {
	before := readEvery
	readEvery = d
	t.Cleanup(func() { readEvery = before })
}
