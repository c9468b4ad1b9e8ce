// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/status"
)

// dismiss reports that the hub ignores the deliveries that it did not make, and takes the hub's finalizer off those that a user deletes.
// It returns after how long to try again, 0 for not at all: the cluster that they name does not fail with them.
func (r *Reconciler) dismiss(ctx context.Context, c *cluster) time.Duration {
	var errs []error
	for _, d := range c.Ignored {
		errs = append(errs, r.dismissDelivery(ctx, c, d))
	}
	err := errors.Join(errs...)
	if err == nil {
		return 0
	}
	if !apply.Lagged(err) {
		ctrl.LoggerFrom(ctx).Error(err, "what the hub has not made could not be dismissed")
	}
	return time.Second
}

// dismissDelivery dismisses a delivery that the hub did not make.
func (r *Reconciler) dismissDelivery(ctx context.Context, c *cluster, d *observed.Delivery) error {
	if d.DeletionTimestamp == nil {
		status.Summarize(d.AddonDelivery, status.Summary{Phase: status.Broken, Reason: d.Reason, Message: d.Message}, c.Now)
		return apply.Status(ctx, r.Client, d.Before, d.AddonDelivery)
	}
	if !controllerutil.ContainsFinalizer(d, hubv1.Finalizer) {
		return nil
	}
	if d.Reason == hubv1.OutOfReachReason && len(d.Status.Addons) > 0 {
		r.Recorder.Eventf(d.AddonDelivery, nil, corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
			"deleted, and what it may have delivered to cluster %s stays there: %s", c.Key, d.Message)
	}
	return apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.Finalizer)
}
