// SPDX-License-Identifier: Apache-2.0

// Package precedence decides which of several registrations of one cluster has the cluster. Two that both deliver would
// take from each other what they think is theirs. It is pure: the registrations and the platform namespaces are
// arguments.
package precedence

import (
	"cmp"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Holder returns the registration that has the cluster in place of another one; nil if that one has the cluster itself. All are
// registrations that say that they are of that cluster, the one in question among them or not.
//
// The first one to which the cluster has answered has it until it is gone, whether or not it goes. One in a platform namespace comes before
// the others: a tenant who registers a cluster first keeps nothing from it.
func Holder(
	reg *hubv1.ClusterRegistration, all []hubv1.ClusterRegistration, platform func(namespace string) bool,
) *hubv1.ClusterRegistration {
	first := reg
	for i := range all {
		if o := &all[i]; o.UID != reg.UID && rivals(reg, o, platform) && before(o, first, platform) {
			first = o
		}
	}
	if first == reg {
		return nil
	}
	return first
}

// rivals returns whether of two registrations that say that they are of one cluster only one may be served. What a
// cluster says of itself may be a lie: the administrator of one could so get rid of what is delivered to it, or to
// another one. So both have to prove it by the same CA. And outside of the platform namespaces a namespace is a
// tenant's: who has a way into another tenant's cluster stops nothing that is delivered to it.
func rivals(a, b *hubv1.ClusterRegistration, platform func(namespace string) bool) bool {
	if a.Namespace != b.Namespace && !platform(a.Namespace) && !platform(b.Namespace) {
		return false
	}
	if a.Status.UsesWorkloadIdentity() != b.Status.UsesWorkloadIdentity() {
		return false // what one is named by, a cluster may say of itself
	}
	if a.Status.UsesWorkloadIdentity() {
		return true // both name it alike, and it has not been asked
	}
	x, y := a.Status.Credential, b.Status.Credential
	return x != nil && y != nil && x.AuthorityFingerprint != "" && x.AuthorityFingerprint == y.AuthorityFingerprint
}

// before returns whether a registration came to its cluster before another one, and so goes first.
func before(a, b *hubv1.ClusterRegistration, platform func(namespace string) bool) bool {
	if p, q := platform(a.Namespace), platform(b.Namespace); p != q {
		return p
	}
	return cmp.Or(since(a).Compare(since(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// since is when a registration came to be of its cluster. What an older hub has written does not say.
func since(reg *hubv1.ClusterRegistration) time.Time {
	if t := reg.Status.ClusterSince; t != nil {
		return t.Time
	}
	return reg.CreationTimestamp.Time
}

// Stayers returns the names of the others that may go on with what is on the cluster when one goes, sorted. One
// outside of the platform namespaces may be a stranger's, who has no more than the cluster's name. It counts if it
// has proved that it leads there: by the same CA, or by add-ons that are Ready through it.
func Stayers(reg *hubv1.ClusterRegistration, all []hubv1.ClusterRegistration, platform func(namespace string) bool) []string {
	return names(all, func(o *hubv1.ClusterRegistration) bool {
		switch {
		case o.UID == reg.UID:
			return false
		case o.Namespace == reg.Namespace || platform(o.Namespace), rivals(reg, o, platform) && !o.Status.UsesWorkloadIdentity():
			return true
		}
		return o.Status.AddonCounts != nil && o.Status.AddonCounts.Ready > 0
	})
}

// Beside returns those of the others that are no rivals of one, and are served whether or not it is.
func Beside(reg *hubv1.ClusterRegistration, all []hubv1.ClusterRegistration, platform func(namespace string) bool) []string {
	return names(all, func(o *hubv1.ClusterRegistration) bool { return o.UID != reg.UID && !rivals(reg, o, platform) })
}

func names(all []hubv1.ClusterRegistration, of func(*hubv1.ClusterRegistration) bool) []string {
	var out []string
	for i := range all {
		if o := &all[i]; of(o) && !status.Goes(o) {
			out = append(out, o.Namespace+"/"+o.Name)
		}
	}
	slices.Sort(out)
	return out
}
