// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// Lease reads the Lease by which the hubs of a management cluster agree who works; nil if there is none.
func Lease(ctx context.Context, c client.Reader) (*doctor.Lease, error) {
	l := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: hubconfig.LeaseNamespace, Name: hubconfig.LeaseName}, l)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Lease %s/%s: %w", hubconfig.LeaseNamespace, hubconfig.LeaseName, err)
	}
	return leaseOf(l), nil
}

// maxHolder is how much is told of a holder's name. It may be anything. A pod's name and a UUID are shorter.
const maxHolder = 120

func leaseOf(l *coordinationv1.Lease) *doctor.Lease {
	out := &doctor.Lease{Installation: l.Labels[hubconfig.InstallationLabel], Lasts: 15 * time.Second}
	if l.Spec.HolderIdentity != nil {
		out.Holder = excerpt.Of(*l.Spec.HolderIdentity, maxHolder)
	}
	if l.Spec.RenewTime != nil {
		out.Renewed = l.Spec.RenewTime.Time
	}
	if l.Spec.LeaseDurationSeconds != nil {
		out.Lasts = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	return out
}
