// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/chandler-hub/chandler/internal/cli/factory"
)

// now is the time of the commands that are tested.
var now = time.Now

// made is the factory of the commands that are tested.
var made = func() *factory.Factory {
	f := factory.New()
	f.Now = func() time.Time { return now() }
	return f
}()
