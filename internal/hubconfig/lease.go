// SPDX-License-Identifier: Apache-2.0

package hubconfig

import "time"

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
