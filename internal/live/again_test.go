// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/client-go/util/retry"
)

// TestAgain: what fails is never taken for done, also if its time was over.
func TestAgain(t *testing.T) {
	busy := errors.New("busy")
	for name, tries := range map[string][]error{
		"done":                   {nil},
		"done at the second try": {busy, nil},
		"refused":                {errors.New("no")},
		"out of time":            {fmt.Errorf("patch: %w", context.DeadlineExceeded)},
		"out of time, then":      {busy, context.DeadlineExceeded},
		"ended":                  {context.Canceled},
	} {
		at := 0
		err := Again(retry.DefaultRetry, func(err error) bool { return errors.Is(err, busy) }, func() error {
			at++
			return tries[at-1]
		})
		if want := tries[len(tries)-1]; !errors.Is(err, want) || (err == nil) != (want == nil) || at != len(tries) {
			t.Errorf("%s: %v after %d tries, want %v", name, err, at, want)
		}
	}
}
