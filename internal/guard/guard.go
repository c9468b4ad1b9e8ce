// SPDX-License-Identifier: Apache-2.0

// Package guard decides how much one edit may take away. It is pure: the wanted removals and the recent removals go
// in; the removals to grant and those to hold come out.
//
// A selector with a typo, a script that takes a label off everywhere, an overlay that excludes too much, a renamed
// release: each is one edit, and each strips a fleet. So only a limited number of a set's clusters may lose something in
// a window, whatever the cause. A removal counts once, when it is granted. If more removals are wanted, the guard holds all
// that exceed the limit, until a user approves exactly these or they are not wanted any more. They do not go by themselves
// when the window is over: then the fleet would be stripped by the morning.
package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// sampled is how many held removals a status names.
const sampled = 5

// Removal is what one cluster would lose, or have reinstalled, of a set.
type Removal struct {
	// Cluster is the registration's namespace/name.
	Cluster string
	// Digest identifies exactly this removal: Withdrawal or Change.
	Digest string
	// Addons are the add-ons that the cluster has now and would lose. If there is none, the removal takes nothing
	// away.
	Addons []string
}

// Withdrawal returns the digest of the removal of a whole delivery.
func Withdrawal(deliveryUID string) string { return identity.Hash(8, deliveryUID) }

// Dropped returns the digest of the removal of one Flux object.
func Dropped(objectUID string) string { return identity.Hash(8, objectUID, "dropped") }

// Reinstalled returns the digest of an edit that makes Flux reinstall a Flux object's release; to identifies the new
// release.
func Reinstalled(objectUID, to string) string { return identity.Hash(8, objectUID, "reinstalled", to) }

// Change returns the digest of several removals that one delivery asks for together.
func Change(digests []string) string {
	return identity.Hash(8, slices.Sorted(slices.Values(digests))...)
}

// Input is the wanted removals, and what is known about the set.
type Input struct {
	// Wanted are all removals that have not begun.
	Wanted []Removal
	// Held and Removals are those of the set's status.
	Held     *hubv1.HeldRemovals
	Removals *hubv1.Removals
	// Clusters is how many clusters have something of the set.
	Clusters int
	// Window is the time that the limit is about: WindowOf.
	Window time.Duration
	// Approval is the hash that a user approved; empty for none.
	Approval string
	// Off grants everything.
	Off bool
	Now time.Time
}

// Verdict says what may go. The set's status must hold Held and Removals before anything goes. Otherwise a hub that
// is killed in between would count a removal twice, or hold one that it had granted.
type Verdict struct {
	Go       []Removal
	Held     *hubv1.HeldRemovals
	Removals *hubv1.Removals
	// Approved is true if Go contains held removals that a user approved.
	Approved bool
}

// Decide returns which removals are granted now and which are held. The result does not depend on the order of
// Wanted.
func Decide(in Input) Verdict {
	if in.Off {
		return Verdict{Go: in.Wanted}
	}
	wanted := slices.SortedFunc(slices.Values(in.Wanted), func(a, b Removal) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Digest, b.Digest))
	})
	if in.Removals == nil {
		in.Removals = &hubv1.Removals{}
	}
	var v Verdict
	var asked []Removal
	underWay := sets.New(in.Removals.UnderWay...) // a user may have approved thousands
	for _, r := range wanted {
		if len(r.Addons) == 0 || underWay.Has(r.Digest) {
			v.Go = append(v.Go, r)
		} else {
			asked = append(asked, r)
		}
	}
	counts := newCounter(&in)
	// Only removals that are held already can be approved: an old approval, even of the same edit, may still be on
	// the set.
	v.Approved = len(asked) > 0 && in.Held != nil && in.Approval == hash(asked, in.Held.Since)
	var held []Removal
	for _, r := range asked {
		switch {
		case v.Approved || in.Held == nil && counts.take():
			v.Go = append(v.Go, r)
		default:
			held = append(held, r)
		}
	}
	v.Held = holding(held, in)
	v.Removals = remember(counts.counts, v.Go)
	return v
}

// hash identifies exactly these removals, held since that time.
func hash(removals []Removal, since *metav1.Time) string {
	parts := make([]string, len(removals))
	for i, r := range removals {
		parts[i] = r.Digest
	}
	slices.Sort(parts)
	if !since.IsZero() { // else an older hub began to hold them, and a user may have approved that
		parts = append(parts, since.UTC().Format(time.RFC3339))
	}
	return identity.Hash(8, parts...)
}

// Holds returns whether these removals are exactly what a guard holds: its hash is of the same ones.
func Holds(held *hubv1.HeldRemovals, removals []Removal) bool {
	return held != nil && len(removals) > 0 && hash(removals, held.Since) == held.Hash
}

func holding(held []Removal, in Input) *hubv1.HeldRemovals {
	if len(held) == 0 {
		return nil
	}
	since := new(metav1.NewTime(in.Now))
	if in.Held != nil {
		since = in.Held.Since
	}
	h := &hubv1.HeldRemovals{Since: since, Hash: hash(held, since)}
	clusters := map[string][]string{}
	for _, r := range held {
		clusters[r.Cluster] = append(clusters[r.Cluster], r.Addons...)
	}
	h.Count = int32(len(clusters)) //nolint:gosec // a count of clusters
	for _, c := range slices.Sorted(maps.Keys(clusters))[:min(sampled, len(clusters))] {
		addons := slices.Sorted(slices.Values(clusters[c]))
		h.Sample = append(h.Sample, fmt.Sprintf("%s (%s)", c, shorten(slices.Compact(addons))))
	}
	return h
}

// shorten returns at most three of the names.
func shorten(names []string) string { return status.List(names, 3) }

// remember keeps the digests of granted removals for as long as they may be wanted again. It returns nil if there is
// nothing to keep.
func remember(counts []hubv1.RemovalCount, gone []Removal) *hubv1.Removals {
	out := &hubv1.Removals{Counts: counts}
	for _, r := range gone {
		if len(r.Addons) > 0 {
			out.UnderWay = append(out.UnderWay, r.Digest)
		}
	}
	slices.Sort(out.UnderWay)
	if len(out.Counts)+len(out.UnderWay) == 0 {
		return nil
	}
	return out
}
