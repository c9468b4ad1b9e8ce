// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/report"
)

// announce writes into the deliveries' status which add-ons are orphaned or handed over, before the hub deletes any of their objects. If
// the hub dies in between, the status names an orphan that is none yet, and the hub orphans the add-on after its restart (see removal). In
// the other order, an orphan could stay without a report. If the status cannot be written, the object is not deleted.
func (r *Reconciler) announce(ctx context.Context, c *cluster, steps []plan.Step) {
	c.announced = map[plan.Key]outcome{}
	for _, s := range steps {
		if s.Verb.Orphans() {
			left, err := r.left(ctx, c, s)
			c.announced[s.Key] = outcome{left: left, err: err}
		}
	}
	if len(c.announced) == 0 {
		return
	}
	pass := c.snapshot(&r.ledger, steps, c.announced)
	for _, d := range c.Deliveries {
		if err := r.announceOf(ctx, c, d, pass); err != nil {
			for k := range c.announced {
				if k.Namespace == d.Namespace && c.Objects[k].Delivery == d.Name {
					c.announced[k] = outcome{err: err}
				}
			}
		}
	}
	for _, s := range steps {
		if o := c.Objects[s.Key]; s.Verb == plan.Orphan && !(o.Deleting && o.Suspended) && c.announced[s.Key].err == nil &&
			c.Delivery(s.Key.Namespace, o.Delivery) == nil {
			r.warnLeft(ctx, c, nil, s.Key, "Remove", "add-on %q (%s), of which no AddonDelivery is there any more, is left on cluster %s: %s",
				s.Addon, s.Key, c.Key, c.announced[s.Key].left)
		}
	}
}

// announceOf writes what one delivery orphans, unless the delivery has changed since: a process that stood still orphans nothing. The rest
// of its status is written after everything has been tried.
func (r *Reconciler) announceOf(ctx context.Context, c *cluster, d *delivery, pass *report.Cluster) error {
	after, reported := d.Before.DeepCopy(), c.reported(d)
	for _, s := range pass.Steps {
		if !s.Verb.Orphans() || s.Err != nil {
			continue
		}
		if d.Announced(s.Key, s.Addon) && (s.Verb == plan.Orphan) == d.ForGood(s.Key, s.Addon) {
			r.announceAgain(ctx, c, d, s.Step)
			continue
		}
		a, mine := report.Addon(pass, reported, s)
		if !mine {
			continue
		}
		a.Since = new(metav1.NewTime(c.Now))
		after.Status.Addons = append(slices.DeleteFunc(after.Status.Addons, func(was hubv1.AddonStatus) bool { return was.Name == a.Name }), a)
	}
	if err := apply.Status(ctx, r.Client, d.Before, after); err != nil || after.ResourceVersion == d.Before.ResourceVersion {
		return err
	}
	r.expectations.Expect(c.Key, observed.DeliveryKind, after, r.Clock.Now())
	r.tell(ctx, c, &observed.Delivery{AddonDelivery: after, Before: d.Before})
	d.Before = d.Before.DeepCopy()
	d.Before.Status, d.Before.ResourceVersion = *after.Status.DeepCopy(), after.ResourceVersion
	d.ResourceVersion = after.ResourceVersion
	return nil
}

// announceAgain sends the event about an add-on that the status already reports as orphaned, if the hub has not begun
// to orphan it. An earlier hub may have died before it sent the event. The status forgets the add-on as soon as it is
// delivered again, or when its delivery goes.
func (r *Reconciler) announceAgain(ctx context.Context, c *cluster, d *delivery, s plan.Step) {
	o := c.Objects[s.Key]
	if left, _ := r.ledger.WasRemoved(s.Key); left != "" || s.Verb == plan.HandOver || o.Delivery != d.Name || s.Key.Namespace != d.Namespace {
		return
	}
	r.tellOrphan(ctx, c, d.Delivery, *d.Addon(s.Addon))
}
