// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/status"
)

// dismissedAtOnce is how many deliveries, and how many objects, a pass dismisses. The cache lists them in no order, so that each has its
// turn.
const dismissedAtOnce = 20

// dismiss reports that the hub ignores the deliveries that it did not make, and takes the hub's finalizer off those
// of them, and of their objects, that somebody deletes. It returns after how long to look at them again, 0 for not at
// all. Anybody may write them, in any number, and edit them all the time: the cluster that they name is served first,
// and does not fail with them.
func (r *Reconciler) dismiss(ctx context.Context, c *cluster) time.Duration {
	more, err := r.dismissStrays(ctx, c)
	ignored, ignoredErr := r.dismissIgnored(ctx, c)
	switch err := errors.Join(err, ignoredErr); {
	case err != nil:
		if !apply.Lagged(err) {
			ctrl.LoggerFrom(ctx).Error(err, "what the hub has not made could not be dismissed")
		}
		return time.Second
	case more || ignored:
		return soon
	}
	return 0
}

// dismissStrays takes the hub's finalizer off finished objects that are not the hub's. It returns whether there are more of them.
func (r *Reconciler) dismissStrays(ctx context.Context, c *cluster) (more bool, err error) {
	var errs []error
	tried := 0
	for _, obj := range c.strays {
		if !controllerutil.ContainsFinalizer(obj, hubv1.FluxObjectFinalizer) {
			continue
		}
		if tried++; tried > dismissedAtOnce {
			return true, errors.Join(errs...)
		}
		errs = append(errs, r.dismissStray(ctx, c, obj))
	}
	return false, errors.Join(errs...)
}

func (r *Reconciler) dismissStray(ctx context.Context, c *cluster, obj client.Object) error {
	if err := r.tellStray(ctx, c, obj); err != nil {
		return err
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, obj, hubv1.FluxObjectFinalizer); err != nil {
		return fmt.Errorf("take the hub's finalizer off %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

// dismissIgnored dismisses deliveries that the hub did not make. It returns whether there may be more of them.
func (r *Reconciler) dismissIgnored(ctx context.Context, c *cluster) (more bool, err error) {
	var errs []error
	tried := 0
	for _, d := range c.ignored {
		if tried == dismissedAtOnce {
			return true, errors.Join(errs...)
		}
		wrote, err := r.dismissDelivery(ctx, c, d)
		if errs = append(errs, err); wrote || err != nil {
			tried++
		}
	}
	return false, errors.Join(errs...)
}

func (r *Reconciler) dismissDelivery(ctx context.Context, c *cluster, d *delivery) (wrote bool, err error) {
	if d.DeletionTimestamp == nil {
		status.Summarize(d.AddonDelivery, status.Summary{Phase: status.Broken, Reason: d.Reason, Message: d.Message}, c.now)
		err := apply.Status(ctx, r.Client, d.before, d.AddonDelivery)
		return d.ResourceVersion != d.before.ResourceVersion, err
	}
	if !controllerutil.ContainsFinalizer(d, hubv1.DeliveryFinalizer) {
		return false, nil
	}
	if d.Reason == hubv1.OutOfReachReason && len(d.Status.Addons) > 0 {
		r.Recorder.Eventf(d.AddonDelivery, nil, corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
			"deleted, and what it may have delivered to cluster %s stays there: %s", c.key, d.Message)
	}
	return true, apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.DeliveryFinalizer)
}
