// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// skew is how far clocks may be apart. The API server tells its time in whole seconds.
const skew = 5 * time.Second

func clockSummary(f *Facts) string {
	if f.Clock.Server.IsZero() {
		return "of this machine and of the hub"
	}
	return "of this machine and of the hub, against the API server's " + f.Clock.Server.UTC().Format(time.TimeOnly)
}

// callerClock finds a machine whose clock is not the API server's.
func callerClock(f *Facts) []Finding {
	if f.Clock.Server.IsZero() {
		return nil
	}
	by := f.Clock.Caller.Sub(f.Clock.Server)
	if by.Abs() <= skew+f.Clock.Trip {
		return nil
	}
	return one(Finding{Severity: Warning, Code: "ClockOfCaller",
		What: fmt.Sprintf("the clock of this machine is %s the API server's: ages and expiries that commands show are off by that much",
			offset(by)),
		Remedy: "set the clock of this machine or of the API server's by NTP; if it is the server's, tokens and certificates are refused " +
			"too early or too late"})
}

// hubClock finds a hub whose clock is ahead. One that is behind cannot be told from one that renews late.
func hubClock(f *Facts) []Finding {
	l := f.Hub.Lease
	if l == nil || l.Holder == "" {
		return nil
	}
	by := l.Renewed.Sub(f.Now)
	if by <= skew {
		return nil
	}
	return one(Finding{Severity: Warning, Code: "ClockOfHub",
		What:   fmt.Sprintf("the clock of %s is %s the API server's", l.Holder, offset(by)),
		Remedy: "set the clock of the node that it runs on by NTP: the hub goes by it for windows, soaks, expiries and delays of removals"})
}

func offset(d time.Duration) string {
	text := excerpt.Duration(d.Abs().Round(time.Second))
	if d > 0 {
		return text + " ahead of"
	}
	return text + " behind"
}
