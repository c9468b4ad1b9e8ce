// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// The limit: of the clusters that have something of a set, a third may lose something in a window, but no more than this many, or this
// share if that is more.
const (
	few     = 3
	percent = 10
	// buckets is in how many parts a window is counted: a status needs no time for each removal.
	buckets = 12
)

// DefaultWindow is the window of a guard that says none.
const DefaultWindow = time.Hour

// WindowOf returns the window of a set's guard: its own, or else the hub's.
func WindowOf(spec *hubv1.AddonSetSpec, hubs time.Duration) time.Duration {
	if g := spec.RemovalGuard; g != nil && g.Window != nil {
		return g.Window.Duration
	}
	return cmp.Or(hubs, DefaultWindow)
}

// Bucket returns how long a part of a window is: of what is counted, the time is known so well.
func Bucket(window time.Duration) time.Duration { return window / buckets }

// limit returns how many of the clusters of a set may lose something in a window. One may always: otherwise nothing
// would ever leave a fleet of two without approval.
func limit(clusters int) int { return max(1, min(few, clusters/3), clusters*percent/100) }

// counter counts what is granted.
type counter struct {
	counts []hubv1.RemovalCount
	now    time.Time
	bucket time.Duration
	// left is how many more removals may be granted.
	left int
	// free is true for a set of one cluster, which was no larger in the window: it is no fleet, and nothing is counted.
	free bool
}

func newCounter(in *Input) *counter {
	c := &counter{counts: in.Removals.Counts, now: in.Now, bucket: Bucket(in.Window)}
	recent := 0
	for _, n := range c.counts {
		if !c.old(n) {
			recent += int(n.Count)
		}
	}
	c.left, c.free = limit(in.Clusters)-recent, in.Clusters <= 1 && recent == 0
	return c
}

// take counts a removal, and returns whether it is within the limit. Counts older than the window are dropped only when something is
// counted, so that the passing of time does not change a status.
func (c *counter) take() bool {
	switch {
	case c.free:
		return true
	case c.left <= 0:
		return false
	}
	c.left--
	c.counts = slices.DeleteFunc(slices.Clone(c.counts), c.old)
	began := metav1.NewTime(c.now.Truncate(c.bucket).UTC())
	if i := slices.IndexFunc(c.counts, func(n hubv1.RemovalCount) bool { return n.Time.Equal(&began) }); i >= 0 {
		c.counts[i].Count++
		return true
	}
	c.counts = append(c.counts, hubv1.RemovalCount{Time: began, Count: 1})
	return true
}

// old returns whether the window has passed since a count ended.
func (c *counter) old(n hubv1.RemovalCount) bool {
	return c.now.Sub(n.Time.Time) >= c.bucket*(buckets+1)
}
