// SPDX-License-Identifier: Apache-2.0

// Package onehub decides which hub of a management cluster works if several are installed: the one that was there first. It is pure.
package onehub

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// Silent is how long the Lease of an installation may stay as it is before that hub counts as removed: longer than a hub is down for an
// upgrade or a lost node. A hub that is uninstalled takes its Lease along.
const Silent = time.Hour

// maxHolder is how much is told of a holder's name, which anybody may have written.
const maxHolder = 80

// Ask says whether the account that a review is about may do a hub's work.
type Ask func(*authorizationv1.SubjectAccessReview) (bool, error)

// Once answers as ask does, and asks about each account only once, also if that is an error: somebody may have made many objects with one
// account.
func Once(ask Ask) Ask {
	type answer struct {
		is  bool
		err error
	}
	known := map[string]answer{}
	return func(r *authorizationv1.SubjectAccessReview) (bool, error) {
		a, asked := known[r.Spec.User]
		if !asked {
			a.is, a.err = ask(r)
			known[r.Spec.User] = a
		}
		return a.is, a.err
	}
}

// First returns the Lease of a hub that was on this management cluster before the one in namespace own; nil if that one is the first. What
// counts is when the API server made each Lease, and that may says of a review that its owner may do a hub's work: anybody may write a
// Lease in his namespace, early, and let it sleep until a hub is there that he wants to stop.
func First(own string, leases []coordinationv1.Lease, now time.Time, may Ask) (*coordinationv1.Lease, error) {
	for _, l := range before(own, leases, now) {
		review := ReviewOwner(l)
		if review == nil {
			continue
		}
		if is, err := may(review); err != nil || is {
			return l, err
		}
	}
	return nil, nil
}

// before returns the Leases that are older than the one in namespace own, the oldest first.
func before(own string, leases []coordinationv1.Lease, now time.Time) (out []*coordinationv1.Lease) {
	order := func(a, b *coordinationv1.Lease) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	}
	var mine *coordinationv1.Lease
	for i := range leases {
		l := &leases[i]
		if l.Namespace == own {
			mine = l
		} else if installed(l, now) {
			out = append(out, l)
		}
	}
	out = slices.DeleteFunc(out, func(l *coordinationv1.Lease) bool { return mine != nil && order(mine, l) < 0 })
	slices.SortFunc(out, order)
	return out
}

// ReviewOwner asks whether the owner of a Lease, a ServiceAccount beside it, may do a hub's work; nil if it has no such owner. The API
// server takes a Lease away whose owner is not there.
func ReviewOwner(l *coordinationv1.Lease) *authorizationv1.SubjectAccessReview {
	if len(l.OwnerReferences) != 1 || l.OwnerReferences[0].Kind != "ServiceAccount" || l.OwnerReferences[0].APIVersion != "v1" {
		return nil
	}
	return Review(l.Namespace, l.OwnerReferences[0].Name)
}

// Review asks whether a ServiceAccount may deliver everywhere, as every hub may and nobody else needs to.
func Review(namespace, account string) *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   serviceaccount.MakeUsername(namespace, account),
		Groups: append(serviceaccount.MakeGroupNames(namespace), "system:authenticated"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: hubv1.GroupVersion.Group,
			Version: hubv1.GroupVersion.Version, Resource: "addondeliveries"},
	}}
}

// installed returns whether a Lease is that of a hub that is there, be it that it is down for now.
func installed(l *coordinationv1.Lease, now time.Time) bool {
	return l.Name == hubconfig.LeaseName && l.DeletionTimestamp.IsZero() && l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) <= Silent
}

// Refused says why the hub in namespace own does nothing, and what to do. It names no time, so that it is the same until something changes.
func Refused(own string, first *coordinationv1.Lease) string {
	holder := ""
	if first.Spec.HolderIdentity != nil && *first.Spec.HolderIdentity != "" {
		holder = ", held by " + excerpt.Of(*first.Spec.HolderIdentity, maxHolder)
	}
	return fmt.Sprintf("the hub in namespace %[1]s does nothing: another one is installed on this management cluster, in namespace %[2]s "+
		"(Lease %[2]s/%[3]s%[4]s), and was there first. Two undo each other's work: uninstall one of them (docs/uninstall.md). If there is "+
		"no hub in %[2]s any more, delete that Lease", own, first.Namespace, first.Name, holder)
}
