// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
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
	for _, d := range c.deliveries {
		if err := r.announceOf(ctx, c, d, pass); err != nil {
			for k := range c.announced {
				if k.Namespace == d.Namespace && c.objects[k].delivery == d.Name {
					c.announced[k] = outcome{err: err}
				}
			}
		}
	}
	for _, s := range steps {
		if o := c.objects[s.Key]; s.Verb == plan.Orphan && !(o.Deleting && o.Suspended) && c.announced[s.Key].err == nil &&
			c.delivery(s.Key.Namespace, o.delivery) == nil {
			r.warnLeft(ctx, c, nil, s.Key, "Remove", "add-on %q (%s), of which no AddonDelivery is there any more, is left on cluster %s: %s",
				s.Addon, s.Key, c.key, c.announced[s.Key].left)
		}
	}
}

// announceOf writes what one delivery orphans, unless the delivery has changed since: a process that stood still orphans nothing. The rest
// of its status is written after everything has been tried.
func (r *Reconciler) announceOf(ctx context.Context, c *cluster, d *delivery, pass *report.Cluster) error {
	after, reported := d.before.DeepCopy(), c.reported(d)
	for _, s := range pass.Steps {
		if !s.Verb.Orphans() || s.Err != nil {
			continue
		}
		if d.announced(s.Key, s.Addon) && (s.Verb == plan.Orphan) == d.forGood(s.Key, s.Addon) {
			r.announceAgain(ctx, c, d, s.Step)
			continue
		}
		a, mine := report.Addon(pass, reported, s)
		if !mine {
			continue
		}
		a.Since = new(metav1.NewTime(c.now))
		after.Status.Addons = append(slices.DeleteFunc(after.Status.Addons, func(was hubv1.AddonStatus) bool { return was.Name == a.Name }), a)
	}
	if err := apply.StatusUnchanged(ctx, r.Client, d.before, after); err != nil || after.ResourceVersion == d.before.ResourceVersion {
		return err
	}
	r.expectations.Expect(c.key, deliveryKind, after, r.Clock.Now())
	r.tell(ctx, c, &delivery{AddonDelivery: after, before: d.before})
	d.before = d.before.DeepCopy()
	d.before.Status, d.before.ResourceVersion = *after.Status.DeepCopy(), after.ResourceVersion
	d.ResourceVersion = after.ResourceVersion
	return nil
}

// announceAgain sends the event about an add-on that the status already reports as orphaned, if the hub has not begun
// to orphan it. An earlier hub may have died before it sent the event. The status forgets the add-on as soon as it is
// delivered again, or when its delivery goes.
func (r *Reconciler) announceAgain(ctx context.Context, c *cluster, d *delivery, s plan.Step) {
	o := c.objects[s.Key]
	if left, _ := r.ledger.wasRemoved(s.Key); left != "" || s.Verb == plan.HandOver || o.delivery != d.Name || s.Key.Namespace != d.Namespace {
		return
	}
	r.tellOrphan(ctx, c, d, *d.addon(s.Addon))
}

// announced returns whether the status says already that an object is orphaned.
func (d *delivery) announced(k plan.Key, addon string) bool {
	s := d.addon(addon)
	return s != nil && s.State == hubv1.AddonOrphaned && s.Kind == k.Kind && s.Object == k.Name
}

// forGood returns whether the status says that an object is orphaned, and names no other object that takes over its workload.
func (d *delivery) forGood(k plan.Key, addon string) bool {
	return d.announced(k, addon) && d.addon(addon).TakenOverBy == nil
}
