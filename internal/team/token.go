// SPDX-License-Identifier: Apache-2.0

package team

import "time"

// TokenLifetime is how long a token is asked for. The API server may give another time.
const TokenLifetime = 24 * time.Hour

// leastRenewal is how long a token is kept at least before the hub asks for another one, however short it is.
const leastRenewal = time.Minute

// leastLifetime is the shortest that an API server gives (Kubernetes, TokenRequest).
const leastLifetime = 10 * time.Minute

// Expiry returns when a token counts as expired of which a cluster says when it expires. The cluster may be wrong, or lie:
// a token that seemed to last for years would not be renewed, and one that seemed to be over would be all the time.
func Expiry(issued, says time.Time) time.Time {
	return issued.Add(min(max(says.Sub(issued), leastLifetime), TokenLifetime))
}

// RenewIn returns after how long a token is renewed: when a third of its time is over, so that a hub that is down, or
// a cluster that does not answer, has the rest. It returns 0 if that is now.
func RenewIn(issued, expires, now time.Time) time.Duration {
	after := max(expires.Sub(issued)/3, leastRenewal)
	return max(issued.Add(after).Sub(now), 0)
}
