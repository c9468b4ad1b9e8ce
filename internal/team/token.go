// SPDX-License-Identifier: Apache-2.0

package team

import "time"

// TokenLifetime is how long a token is asked for. The API server may give another time.
const TokenLifetime = 24 * time.Hour

// leastRenewal is how long a token is kept at least before the hub asks for another one, however short it is.
const leastRenewal = time.Minute

// RenewIn returns after how long a token is renewed: when a third of its time is over, so that a hub that is down, or
// a cluster that does not answer, has the rest. It returns 0 if that is now.
func RenewIn(issued, expires, now time.Time) time.Duration {
	after := max(expires.Sub(issued)/3, leastRenewal)
	return max(issued.Add(after).Sub(now), 0)
}
