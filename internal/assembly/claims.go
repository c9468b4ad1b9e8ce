// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/plan"
)

// claim is one add-on that one delivery wants on the cluster.
type claim struct {
	// Namespace and Set name the AddonSet.
	Namespace, Set string
	// Platform is true for a set in a platform namespace. These sets win over all others, whatever the priority, so
	// that a tenant's set can never take an add-on from the platform.
	Platform bool
	// Over is true if the set does not want the add-on on the cluster any more, the add-on has no object, and the
	// delivery has not been withdrawn yet, for example because a removal guard holds that. Any other claim wins: what
	// this claim created would only be removed again.
	Over bool
	// Held is true if the add-on's object exists and stays as it is, because its wanted content is unknown. Within a
	// class it wins, whatever the priority: otherwise its workload would have two owners. A platform set wins against
	// it all the same, and so does any other if its set is being deleted.
	Held bool
	// Ends is true if the set is being deleted. What another set of its class wants goes to that at once, even if a removal guard holds the
	// rest: an edit of the set that comes late would take it away.
	Ends bool
	// Priority of the set: the higher one wins within a class.
	Priority int32
	// Incumbent is true if the add-on's object exists and is this delivery's: between equals, the incumbent keeps it.
	Incumbent bool
	// Takes is true if the add-on goes on with an object that was another add-on's: what has that one's name now is new.
	Takes bool
	// Since is when the set came to the cluster; zero sorts last. It decides where no live objects do.
	Since time.Time
	// Addon is the add-on's name. Only one delivery can have it on a cluster.
	Addon string
	// Key is the Flux object that it has, or is to have: by movedFrom it may be that of another add-on. Only one claim can have it.
	Key plan.Key
	// Release is the Helm release, which only one delivery can have either; zero for a Kustomization.
	Release compile.Release
}

// verdict is the answer to a claim.
type verdict struct {
	// Won is true if the claim may be delivered.
	Won bool
	// Winner is the index of the claim that it lost to. Reason names the winner's set, and says why it won.
	Winner int
	Reason string
}

// decide returns a verdict for each claim, in their order. The result does not depend on that order.
func decide(claims []claim) []verdict {
	order := make([]int, len(claims))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return stronger(claims[a], claims[b]) })
	verdicts := make([]verdict, len(claims))
	byAddon, byRelease, byKey := map[string]int{}, map[compile.Release]int{}, map[plan.Key]int{}
	for _, i := range order {
		c := claims[i]
		if w, taken := byAddon[c.Addon]; taken {
			verdicts[i].Winner, verdicts[i].Reason = w, lost(claims[w], c, fmt.Sprintf("add-on %q", c.Addon))
			continue
		}
		if w, taken := byKey[c.Key]; taken {
			verdicts[i].Winner, verdicts[i].Reason = w, lost(claims[w], c, fmt.Sprintf("%s, as its add-on %q", c.Key, claims[w].Addon))
			continue
		}
		if w, taken := byRelease[c.Release]; taken && c.Release != (compile.Release{}) {
			verdicts[i].Winner, verdicts[i].Reason = w, lost(claims[w], c,
				fmt.Sprintf("Helm release %q in namespace %q, as its add-on %q", c.Release.Name, c.Release.Namespace, claims[w].Addon))
			continue
		}
		verdicts[i].Won = true
		byAddon[c.Addon], byRelease[c.Release], byKey[c.Key] = i, i, i
	}
	return verdicts
}

// rule is one of the rules by which a claim wins.
type rule struct {
	compare func(a, b claim) int // negative if a wins
	why     func(winner, loser claim) string
}

// rules decide between two claims: the first one that tells the claims apart. Each says why the winner has won. The last rule makes a
// choice, and no more.
var rules = []rule{
	{first(func(c claim) bool { return !c.Over }),
		says("this set is leaving the cluster, and gets no add-on there that another set delivers")},
	{first(func(c claim) bool { return c.Platform }), says("platform sets win over others")},
	{first(func(c claim) bool { return !c.Ends }), says("this set is being deleted")},
	{first(func(c claim) bool { return c.Held }), says("it is there, and stays as it is for now")},
	{func(a, b claim) int { return cmp.Compare(b.Priority, a.Priority) }, func(winner, loser claim) string {
		return fmt.Sprintf("its priority is %d, and this set's is %d", winner.Priority, loser.Priority)
	}},
	{first(func(c claim) bool { return c.Incumbent }), says("it was there first")},
	{first(func(c claim) bool { return c.Takes }), says("what runs under that name has been moved there")},
	{first(func(c claim) bool { return !c.Since.IsZero() }), says("it was there first")},
	{func(a, b claim) int { return a.Since.Compare(b.Since) }, says("it was there first")},
	{func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Set, b.Set), cmp.Compare(a.Addon, b.Addon))
	}, says("both are equal, so the name decides")},
}

// first returns a comparison in which a claim with a property wins over a claim without it.
func first(has func(claim) bool) func(a, b claim) int {
	return func(a, b claim) int {
		switch {
		case has(a) == has(b):
			return 0
		case has(a):
			return -1
		}
		return 1
	}
}

// says returns a reason that is the same for all claims.
func says(why string) func(winner, loser claim) string { return func(_, _ claim) string { return why } }

// decisive returns the first rule that tells two claims apart, or the last one, and what it says: negative if a wins.
func decisive(a, b claim) (by rule, order int) {
	for _, by = range rules {
		if order = by.compare(a, b); order != 0 {
			break
		}
	}
	return by, order
}

// stronger orders claims, the winner first.
func stronger(a, b claim) int {
	_, order := decisive(a, b)
	return order
}

// lost says why one claim has lost to another one.
func lost(winner, loser claim, what string) string {
	by, _ := decisive(winner, loser)
	return fmt.Sprintf("AddonSet %s/%s delivers %s: %s", winner.Namespace, winner.Set, what, by.why(winner, loser))
}
