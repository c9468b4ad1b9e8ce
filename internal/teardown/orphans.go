// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// maxOrphans is how many orphans a status names, and maxWaiting how many while deliveries wait to be named.
const (
	maxOrphans = 20
	maxWaiting = 200
)

// Orphans updates a list of orphans from deliveries: it adds what they have orphaned, and takes off what Flux has recorded
// for them again. The newest come first. It returns how many of the oldest the list names no more. One whose delivery is still
// there is not left out, since the delivery waits until it is named: so each is counted once. scope names the scope of a
// namespace, in which the names of add-ons are unique on a cluster; nil if all are in one.
func Orphans(list []hubv1.Orphan, deliveries []hubv1.AddonDelivery,
	scope func(namespace string) string) (out []hubv1.Orphan, omitted int32) {
	return update(list, deliveries, scope, true)
}

// OrphansOfSet is Orphans for the list of a set, from its own deliveries. These do not show when another set has gone on with an add-on, so
// that what is taken over is on the list of the registration alone.
func OrphansOfSet(list []hubv1.Orphan, deliveries []hubv1.AddonDelivery) (out []hubv1.Orphan, omitted int32) {
	return update(list, deliveries, nil, false)
}

func update(list []hubv1.Orphan, deliveries []hubv1.AddonDelivery, scope func(namespace string) string,
	takenOver bool) (out []hubv1.Orphan, omitted int32) {
	var waiting []hubv1.Orphan
	old := slices.Clone(list)
	for i := range deliveries {
		for _, a := range deliveries[i].Status.Addons {
			switch {
			case a.State == hubv1.AddonOrphaned && a.TakenOverBy != nil && !takenOver: // the registration's list has it
			case a.State == hubv1.AddonOrphaned:
				o := OrphanOf(&deliveries[i], a)
				old = slices.DeleteFunc(old, func(old hubv1.Orphan) bool { return sameOrphan(old, o) })
				waiting = append(waiting, o)
			case len(old) > 0 && a.Version != "" && a.State != hubv1.AddonRemoving:
				o := OrphanOf(&deliveries[i], a)
				by := hubv1.FluxObjectReference{Kind: a.Kind, Namespace: deliveries[i].Namespace, Name: a.Object}
				old = slices.DeleteFunc(old, func(old hubv1.Orphan) bool {
					return sameAddon(old, o, scope) || old.TakenOverBy != nil && *old.TakenOverBy == by
				})
			}
		}
	}
	slices.SortFunc(waiting, newestFirst)
	if late := len(waiting) - maxWaiting; late > 0 {
		waiting = waiting[late:] // the newest wait until the others have been named
	}
	slices.SortFunc(old, newestFirst)
	if keep := max(0, maxOrphans-len(waiting)); len(old) > keep {
		old, omitted = old[:keep], int32(len(old)-keep) //nolint:gosec // at most maxWaiting
	}
	out = append(waiting, old...)
	if len(out) == 0 {
		return nil, omitted
	}
	slices.SortFunc(out, newestFirst)
	return out, omitted
}

func newestFirst(a, b hubv1.Orphan) int {
	return cmp.Or(b.Since.Compare(a.Since.Time), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.AddonSet, b.AddonSet),
		cmp.Compare(a.Addon, b.Addon))
}

// OrphanOf returns what is remembered of an add-on that was orphaned.
func OrphanOf(d *hubv1.AddonDelivery, a hubv1.AddonStatus) hubv1.Orphan {
	o := hubv1.Orphan{
		Cluster:  d.Spec.RegistrationRef.Key().String(),
		AddonSet: d.SetKey().String(),
		Addon:    a.Name, Message: a.Message, TakenOverBy: a.TakenOverBy,
	}
	if a.Since != nil {
		o.Since = metav1.NewTime(a.Since.Truncate(1e9)) // as an API server keeps it
	}
	return o
}

// Recorded returns whether a list holds an orphan.
func Recorded(list []hubv1.Orphan, o hubv1.Orphan) bool {
	for _, there := range list {
		if sameOrphan(there, o) && !there.Since.Time.Before(o.Since.Time) {
			return true
		}
	}
	return false
}

// sameAddon returns whether two orphans are of one add-on, whichever sets have delivered it. Across scopes it is another one: what a
// Team delivers says nothing of what the platform has left.
func sameAddon(a, b hubv1.Orphan, scope func(namespace string) string) bool {
	if a.Cluster != b.Cluster || a.Addon != b.Addon {
		return false
	}
	x, _, _ := strings.Cut(a.AddonSet, "/")
	y, _, _ := strings.Cut(b.AddonSet, "/")
	return x == y || scope == nil || scope(x) == scope(y)
}

func sameOrphan(a, b hubv1.Orphan) bool {
	return a.Cluster == b.Cluster && a.AddonSet == b.AddonSet && a.Addon == b.Addon
}
