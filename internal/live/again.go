// SPDX-License-Identifier: Apache-2.0

package live

import (
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// Again tries until that succeeds, or fails with an error that does not go away by trying again. It returns what came of the last try.
// retry.OnError alone takes a try that ran out of time, as by --request-timeout, for one that succeeded.
func Again(backoff wait.Backoff, goesAway func(error) bool, try func() error) error {
	var last error
	_ = retry.OnError(backoff, goesAway, func() error {
		last = try()
		return last
	})
	return last
}
