// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestWaiter: what is waited for is said once, and what it was when the time is over.
func TestWaiter(t *testing.T) {
	var out strings.Builder
	w := &Waiter{Out: &out, Timeout: time.Minute, Pause: time.Millisecond}
	texts := []string{"a: 0/2", "a: 0/2", "a: 1/2", ""}
	err := w.Until(t.Context(), func(context.Context) (string, error) {
		text := texts[0]
		texts = texts[1:]
		return text, nil
	})
	if err != nil || out.String() != "a: 0/2\na: 1/2\n" {
		t.Errorf("%v, and it says %q", err, out.String())
	}
	w.Timeout = 10 * time.Millisecond
	err = w.Until(t.Context(), func(context.Context) (string, error) { return "a: 1/2", nil })
	if err == nil || !strings.Contains(err.Error(), "a: 1/2") {
		t.Errorf("it says %v", err)
	}
}
