// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
	"sort"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// The limit: of the clusters that have an add-on, a third may lose it in an hour, but no more than this many, or this
// share if that is more.
const (
	few     = 3
	percent = 10
	period  = time.Hour
	// span is the resolution of the counts: clusters are counted in spans, so that a status needs no time for each of
	// them.
	span = 5 * time.Minute
)

// limit returns how many of the clusters that have an add-on may lose it in an hour. One may always: otherwise nothing
// would ever leave a fleet of two without approval.
func limit(clusters int) int { return max(1, min(few, clusters/3), clusters*percent/100) }

// mark is a short hash of a cluster's name, for a status. If two clusters have the same mark, one more cluster may
// lose the add-on. That is rare, and does no harm.
type mark [3]byte

func markOf(cluster string) mark {
	sum := sha256.Sum256([]byte(cluster))
	return mark(sum[:len(mark{})])
}

// maxMarks is how many marks a status holds: 64 KiB of text. If there is no room to count a removal, it is held.
const maxMarks = 16384

// counter counts the clusters that lose an add-on, for each add-on.
type counter struct {
	counts []hubv1.RemovalCount
	now    time.Time
	// lost are the clusters that lost an add-on in the last hour. unknown are the numbers of further clusters that an
	// older hub counted without marks.
	lost    map[string]map[mark]bool
	unknown map[string]int
	// marks is the number of marks in the status, over all add-ons.
	marks int
	// had is how many clusters have an add-on now, or had it an hour ago.
	had map[string]int
}

func newCounter(in Input, underWay map[string]bool) *counter {
	c := &counter{counts: slices.Clone(in.Removals.Counts), now: in.Now, lost: map[string]map[mark]bool{}, unknown: map[string]int{},
		had: map[string]int{}}
	for _, a := range slices.Sorted(maps.Keys(in.Going)) {
		for _, name := range in.Going[a] {
			c.recount(a, markOf(name))
		}
	}
	for _, r := range in.Wanted {
		if underWay[r.Digest] {
			for _, a := range r.Addons {
				c.recount(a, markOf(r.Cluster))
			}
		}
	}
	for _, n := range c.counts {
		c.marks += c.remember(n)
	}
	for _, n := range in.Before {
		c.remember(n)
	}
	for a, clusters := range in.Delivered {
		c.had[a] = len(c.lost[a]) + c.unknown[a]
		for _, name := range clusters {
			if len(c.lost[a]) == 0 || !c.lost[a][markOf(name)] {
				c.had[a]++
			}
		}
	}
	return c
}

// remember adds a count of the last hour, and returns how many marks it has.
func (c *counter) remember(n hubv1.RemovalCount) int {
	if c.old(n) {
		return 0
	}
	marks := marksOf(n.Clusters)
	c.unknown[n.Addon] += max(0, int(n.Count)-len(marks))
	for _, m := range marks {
		c.lose(n.Addon, m)
	}
	return len(marks)
}

func marksOf(clusters []byte) []mark {
	var out []mark
	for part := range slices.Chunk(clusters, len(mark{})) {
		if len(part) == len(mark{}) {
			out = append(out, mark(part))
		}
	}
	return out
}

func (c *counter) lose(addon string, m mark) {
	if c.lost[addon] == nil {
		c.lost[addon] = map[mark]bool{}
	}
	c.lost[addon][m] = true
}

// gone records that a cluster is losing add-ons that it still has. If the loss was counted, the cluster stays part of
// the total of the last hour; if somebody approved it, it does not.
func (c *counter) gone(r Removal) {
	for _, a := range r.Addons {
		if !c.lost[a][markOf(r.Cluster)] {
			c.had[a]--
		}
	}
}

// take counts a cluster that loses add-ons, and returns whether it is within the limit for each of them. If it is
// not, take counts nothing. A cluster that lost an add-on within the hour and got it back does not count again.
// Counts older than an hour are dropped only when something is counted, so that the passing of time does not change a
// status.
func (c *counter) take(r Removal) bool {
	m := markOf(r.Cluster)
	more := 0
	for _, a := range r.Addons {
		if c.lost[a][m] {
			continue
		}
		more++
		if len(c.lost[a])+c.unknown[a]+1 > limit(c.had[a]) {
			return false
		}
	}
	if c.marks+more > maxMarks {
		return false
	}
	c.marks += more
	c.counts = slices.DeleteFunc(slices.Clone(c.counts), c.old)
	for _, a := range r.Addons {
		c.lose(a, m)
		c.write(a, m)
	}
	return true
}

// again returns whether a cluster lost all of these add-ons within the hour, and got them back. Such a cluster may lose them again,
// whatever is held: the clusters of one edit ask one after the other, as the delay of each ends, and which of them asks first
// decides nothing.
func (c *counter) again(r Removal) bool {
	m := markOf(r.Cluster)
	return !slices.ContainsFunc(r.Addons, func(a string) bool { return !c.lost[a][m] })
}

// recount counts a cluster at the present time that was counted earlier, because its add-on is still going, or has not been marked yet by a
// hub that died: the hour that counts is the hour in which it goes.
func (c *counter) recount(addon string, m mark) {
	counted := slices.ContainsFunc(c.counts, func(n hubv1.RemovalCount) bool {
		_, there := find(n.Clusters, m)
		return n.Addon == addon && there
	})
	if counted {
		c.write(addon, m)
	}
}

// write records that a cluster loses an add-on now. It replaces an earlier record of the same cluster and add-on.
func (c *counter) write(addon string, m mark) {
	began := metav1.NewTime(c.now.Truncate(span).UTC())
	present := func(n hubv1.RemovalCount) bool { return n.Addon == addon && n.Time.Equal(&began) }
	for i := range c.counts {
		n := &c.counts[i]
		at, there := find(n.Clusters, m)
		switch {
		case n.Addon != addon || !there:
		case present(*n):
			return
		default:
			n.Clusters = slices.Concat(n.Clusters[:at], n.Clusters[at+len(m):])
			n.Count--
		}
	}
	c.counts = slices.DeleteFunc(c.counts, func(n hubv1.RemovalCount) bool { return n.Count <= 0 })
	i := slices.IndexFunc(c.counts, present)
	if i < 0 {
		c.counts, i = append(c.counts, hubv1.RemovalCount{Addon: addon, Time: began}), len(c.counts)
	}
	n := &c.counts[i]
	at, _ := find(n.Clusters, m)
	n.Clusters = slices.Concat(n.Clusters[:at], m[:], n.Clusters[at:])
	n.Count++
}

// find returns the index of a cluster's mark among sorted marks, or where it would be, and whether it is there.
func find(clusters []byte, m mark) (int, bool) {
	i, there := sort.Find(len(clusters)/len(m), func(i int) int {
		return bytes.Compare(m[:], clusters[i*len(m):(i+1)*len(m)])
	})
	return i * len(m), there
}

func (c *counter) old(n hubv1.RemovalCount) bool { return c.now.Sub(n.Time.Time) >= period+span }
