// SPDX-License-Identifier: Apache-2.0

package expression

// Lack says of a field of Cluster that it is not known yet.
type Lack struct {
	// Why says why, and what to do.
	Why string
	// Stays is true if nothing brings the fact by itself: the author has to write something else.
	Stays bool
}

// Unknown is the error of an expression that rests on a fact that is not known yet. The fact is not 0 or "", because an
// expression would decide as if that were known. has() and .? are no errors: their author says what holds meanwhile.
//
// These are errors of CEL and not its unknowns: both come out of && || and ?: the same way, and errors cost those
// nothing who know all facts.
type Unknown struct {
	// Fact is the field, such as cluster.version.
	Fact string
	Lack
}

func (u *Unknown) Error() string { return u.Fact + " is not known: " + u.Why }

// lacks returns the error of reading a field that is not known; nil if it is known.
func (c *Cluster) lacks(name string) error {
	if lack, ok := c.Unknown[name]; ok {
		return &Unknown{clusterName + "." + name, lack}
	}
	return nil
}
