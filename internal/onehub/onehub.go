// SPDX-License-Identifier: Apache-2.0

// Package onehub decides which hub of a management cluster works if several are installed: the one that was there first. It is pure.
package onehub

import (
	"cmp"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// Silent is how long the Lease of an installation may stay as it is before that hub counts as removed: longer than a hub is down for an
// upgrade or a lost node. A hub that is uninstalled takes its Lease along.
const Silent = time.Hour

// maxHolder is how much is told of a holder's name, which anybody may have written.
const maxHolder = 80

// First returns the Lease of a hub that was on this management cluster before the one in namespace own; nil if that one is the first. What
// counts is when the API server made each Lease. Nobody else can write that, so whoever may write a Lease somewhere cannot come before a
// hub that is there.
func First(own string, leases []coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	order := func(a, b *coordinationv1.Lease) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	}
	var mine, first *coordinationv1.Lease
	for i := range leases {
		l := &leases[i]
		switch {
		case l.Namespace == own:
			mine = l
		case !installed(l, now):
		case first == nil || order(l, first) < 0:
			first = l
		}
	}
	if first == nil || mine != nil && order(mine, first) < 0 {
		return nil
	}
	return first
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
