// SPDX-License-Identifier: Apache-2.0

// Package token decides when a ServiceAccount's token that the hub has asked for is renewed. It is pure: the clock and
// what a Secret says are arguments.
package token

import (
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// leastRenewal is how long a token is kept at least before the hub asks for another one, however short it is.
const leastRenewal = time.Minute

// Shortest is the shortest lifetime that an API server gives (Kubernetes, TokenRequest), and Longest is the longest that
// the hub asks for.
const (
	Shortest = 10 * time.Minute
	Longest  = 365 * 24 * time.Hour
)

// Apart is the time between two tokens of one cluster at least, whatever it says of them: the shortest one is renewed after so long.
const Apart = Shortest / 3

// Said is what a cluster says of a token, by its own clock. Issued is zero if it does not say.
type Said struct {
	Issued, Expires time.Time
}

// Of returns what the token in a kubeconfig says of itself. answer is what the cluster says besides of its end, and counts if the
// token says nothing.
func Of(c *kubeconfig.Config, answer time.Time) Said {
	_, issued, _ := c.Account()
	if expires, ok := c.Expiration(); ok && !issued.IsZero() {
		return Said{issued, expires}
	}
	return Said{Expires: answer}
}

// Expiry returns when a token counts as expired, by the clock of the process that asked for it, for a lifetime. How long it lives is the
// time between the two that it says of itself: if the clock of the cluster is wrong, that is the same. The cluster may lie: a token
// that seemed to last for years would not be renewed, and one that seemed to be over would be all the time.
func Expiry(asked time.Time, says Said, lifetime time.Duration) time.Time {
	from := says.Issued
	if from.IsZero() {
		from = asked
	}
	return asked.Add(min(max(says.Expires.Sub(from), Shortest), lifetime))
}

// RenewIn returns after how long a token is renewed: when a third of its time is over, so that a hub that is down, or
// a cluster that does not answer, has the rest. It returns 0 if that is now.
func RenewIn(issued, expires, now time.Time) time.Duration {
	after := max(expires.Sub(issued)/3, leastRenewal)
	return max(issued.Add(after).Sub(now), 0)
}

// Notes say of a token that lies in a Secret when it was asked for, by the clock of the process that asked, and when it expires.
type Notes struct {
	Issued, Expires time.Time
	// Fingerprint is that of the kubeconfig with the token.
	Fingerprint string
}

// RenewIn returns after how long the token is renewed. A user who may write the Secret may write the notes: they count within what a token
// may be asked for.
func (n Notes) RenewIn(now time.Time) time.Duration {
	return RenewIn(n.Issued, Expiry(n.Issued, Said{n.Issued, n.Expires}, Longest), now)
}

// Annotations returns the notes as the annotations of a Secret.
func (n Notes) Annotations() map[string]string {
	return map[string]string{
		hubv1.FingerprintAnnotation: n.Fingerprint,
		hubv1.TokenIssuedAnnotation: n.Issued.UTC().Format(time.RFC3339),
		hubv1.TokenExpiryAnnotation: n.Expires.UTC().Format(time.RFC3339),
	}
}

// NotesOf reads the notes of a Secret about a kubeconfig. It returns false if they are not about that one, or cannot be
// true: a user who may write the Secret may write them.
func NotesOf(annotations map[string]string, fingerprint string, now time.Time) (Notes, bool) {
	n := Notes{Fingerprint: fingerprint}
	var err, err2 error
	n.Issued, err = time.Parse(time.RFC3339, annotations[hubv1.TokenIssuedAnnotation])
	n.Expires, err2 = time.Parse(time.RFC3339, annotations[hubv1.TokenExpiryAnnotation])
	ok := err == nil && err2 == nil && annotations[hubv1.FingerprintAnnotation] == fingerprint && !n.Issued.After(now)
	return n, ok
}

// Lifetime reads the value of annotation chandler.dev/renew-token. It returns false if that is no duration that a token may have.
func Lifetime(value string) (time.Duration, bool) {
	d, err := time.ParseDuration(value)
	return d, err == nil && d >= Shortest && d <= Longest
}
