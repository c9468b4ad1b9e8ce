// SPDX-License-Identifier: Apache-2.0

package hubconfig

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	// LeaseNamespace and LeaseName are those of the one Lease by which the hubs of a management cluster agree who works. In this namespace
	// only administrators write.
	LeaseNamespace, LeaseName = "kube-system", "hub.chandler.dev"
	// InstallationLabel is the label of the Lease with the namespace of the hub that has it.
	InstallationLabel = "chandler.dev/installation"
	// Silence is how long the Lease of an installation may stay as it is before another one may take it: longer than a hub is down for an
	// upgrade or a lost node. Two installations have different flags, so a standby of another one must not step in for each restart.
	Silence = time.Hour
)

// Installation returns the namespace of the hub that has a Lease; "" if the hub has been silent for too long, or is not named.
func Installation(l *coordinationv1.Lease, now time.Time) string {
	if l.Spec.RenewTime == nil || now.Sub(l.Spec.RenewTime.Time) > Silence {
		return ""
	}
	return l.Labels[InstallationLabel]
}

// Alive returns whether a process has a Lease, and renews it.
func Alive(l *coordinationv1.Lease, now time.Time) bool {
	s := l.Spec
	return s.HolderIdentity != nil && *s.HolderIdentity != "" && s.RenewTime != nil && s.LeaseDurationSeconds != nil &&
		now.Sub(s.RenewTime.Time) <= time.Duration(*s.LeaseDurationSeconds)*time.Second
}
