// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/chandler-hub/chandler/internal/hubconfig"
)

const (
	// aloneLasts is for how long a hub without --leader-elect may be silent. No other replica waits for it.
	aloneLasts = 5 * time.Minute
	aloneRenew = 20 * time.Second // doctor counts on it
	// aloneBeats is how often it notes that it has not stood still: replicas with --leader-elect renew their Lease so often.
	aloneBeats = 2 * time.Second
)

// alone has a hub without --leader-elect seen by others: it writes the Lease too, though it does not wait for it.
type alone struct {
	*seniority
	holder string
	since  metav1.MicroTime
}

func (s *seniority) alone() (*alone, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("who holds the Lease: %w", err)
	}
	return &alone{seniority: s, holder: host, since: metav1.NowMicro()}, nil
}

// Start implements manager.Runnable. It ends with an error if another hub turns out to have been here first.
func (a *alone) Start(ctx context.Context) error {
	look, renew, beat := time.NewTicker(lookAgain), time.NewTicker(aloneRenew), time.NewTicker(aloneBeats)
	defer look.Stop()
	defer renew.Stop()
	defer beat.Stop()
	a.led.Renew(time.Now())
	a.write(ctx, a.holder)
	if err := a.own(ctx); err != nil && !apierrors.IsNotFound(err) {
		a.log.Error(err, "other hubs do not know this one, and its Lease stays when it is uninstalled")
	}
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewDeadline/2)
			defer cancel()
			a.write(last, "")
			return nil
		case <-renew.C:
			a.write(ctx, a.holder)
		case <-beat.C:
			a.led.Renew(time.Now())
		case <-look.C:
			if refused, err := a.look(ctx); err == nil && refused != "" {
				return errors.New(refused)
			}
		}
	}
}

// write writes who holds the Lease. A hub that cannot write it works all the same, and others cannot see it.
func (a *alone) write(ctx context.Context, holder string) {
	leases := a.leases.Leases(a.namespace)
	lease, err := leases.Get(ctx, hubconfig.LeaseName, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		a.log.Error(err, "other hubs cannot see this one")
		return
	}
	now := metav1.NowMicro()
	if !missing && elected(lease, now.Time) {
		a.log.Info("a hub with --leader-elect leads in the same namespace: both write", "holder", ptr.Deref(lease.Spec.HolderIdentity, ""))
		return
	}
	lease.Namespace, lease.Name = a.namespace, hubconfig.LeaseName
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(int32(aloneLasts / time.Second)),
		AcquireTime: &a.since, RenewTime: &now, LeaseTransitions: lease.Spec.LeaseTransitions}
	if missing {
		lease.OwnerReferences = a.owner(ctx)
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		a.log.Error(err, "other hubs cannot see this one")
	}
}

// elected returns whether a replica with --leader-elect holds the Lease and lives.
func elected(l *coordinationv1.Lease, now time.Time) bool {
	if ptr.Deref(l.Spec.HolderIdentity, "") == "" || l.Spec.RenewTime == nil {
		return false
	}
	lasts := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	return lasts < aloneLasts && now.Sub(l.Spec.RenewTime.Time) <= lasts
}
