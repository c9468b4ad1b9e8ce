// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// finish reports on every delivery, and releases the deliveries that are done. It returns after how long to requeue
// the cluster.
func (r *Reconciler) finish(ctx context.Context, c *cluster, steps []plan.Step, outcomes map[plan.Key]outcome) (time.Duration, error) {
	var errs []error
	again := false
	pass := c.snapshot(&r.ledger, steps, outcomes)
	for _, d := range c.Deliveries {
		if d.Busy() {
			continue
		}
		c.report(d, pass)
		if wait := r.waiting.For(client.ObjectKeyFromObject(d), pace.Delivery(d.Before, d.AddonDelivery), pace.Delay(d.Before), c.Now); wait > 0 {
			c.LookAgain(wait)
			continue
		}
		again = again || !d.Status.ReadyTime.Equal(d.Before.Status.ReadyTime) || recordedNow(d) || c.gated() && readyNow(d)
		if err := apply.Status(ctx, r.Client, d.Before, d.AddonDelivery); err != nil {
			errs = append(errs, err)
			continue
		}
		if d.ResourceVersion != d.Before.ResourceVersion {
			r.expectations.Expect(c.Key, observed.DeliveryKind, d, r.Clock.Now())
		}
		r.tell(ctx, c, d.Delivery)
		switch {
		case d.Failed != nil: // what is to become of it is not known
		case d.DeletedByHand():
			errs = append(errs, r.letBe(ctx, c, d))
		case !d.Leaving || !gone(d):
		case c.told(d):
			errs = append(errs, r.release(ctx, c, d))
		default:
			c.LookAgain(time.Second)
		}
	}
	c.change(steps, r.Config)
	if again {
		c.LookAgain(observed.Soon) // what was written now opens the way for something else on this cluster
	}
	return c.Again, errors.Join(errs...)
}

// recordedNow returns whether this pass has recorded which Helm release an add-on goes on with.
func recordedNow(d *delivery) bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		before := d.Addon(a.Name)
		return a.Release != nil && (before == nil || before.Release == nil || *before.Release != *a.Release)
	})
}

// gated returns whether something waits on this cluster for what it depends on.
func (c *cluster) gated() bool {
	return slices.ContainsFunc(c.Deliveries, func(d *delivery) bool {
		return slices.ContainsFunc(d.Wanted, func(w assembly.Wanted) bool { return w.Gate != "" })
	})
}

// readyNow returns whether this pass reports an add-on Ready that was not, or was of an older generation. It may have been all the time: a
// delivery that was made again finds its objects as they are to be, a hub that died may not have said what it had written, and whether the
// generation that Flux has reported on is the hub's is known from the status.
func readyNow(d *delivery) bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		before := d.Addon(a.Name)
		return a.State == hubv1.AddonReady &&
			(before == nil || before.State != hubv1.AddonReady || before.AppliedGeneration != a.AppliedGeneration)
	})
}

// change requeues the cluster for what changes with time alone: a held removal may proceed, an override ends, a
// hand-written object that is taken over has gone, an add-on has been progressing for long on a cluster without nodes, or without its
// source.
func (c *cluster) change(steps []plan.Step, config *hubconfig.Config) {
	for _, s := range steps {
		switch {
		case s.Leaving() && c.Objects[s.Key].Foreign:
			c.LookAgain(time.Second)
		case s.Verb == plan.AwaitDependants && c.Objects[s.Key].NeededBy != "":
			c.LookAgain(max(c.RightsLeft(c.Objects[s.Key], config), time.Second))
		case s.Verb == plan.Hold || s.Verb == plan.Uninstall:
			c.LookAgain(teardown.Wait(c.Removal(c.Objects[s.Key].Observed, config)))
		}
	}
	for _, d := range c.Deliveries {
		if d.Result != nil && !d.Result.Until.IsZero() {
			c.LookAgain(max(d.Result.Until.Sub(c.Now), time.Millisecond))
		}
		for i := range d.Status.Addons {
			if a := &d.Status.Addons[i]; a.State == hubv1.AddonProgressing && a.Since != nil && (c.Nodeless() || c.unfetched(d, a)) {
				c.LookAgain(nextLook(c.Now.Sub(a.Since.Time)))
			}
		}
	}
}

// unfetched returns whether Flux waits for the source or chart of an add-on. No event says that one of others could not be fetched.
func (c *cluster) unfetched(d *delivery, a *hubv1.AddonStatus) bool {
	o := c.Objects[plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}]
	return o != nil && !o.Suspended && fluxstate.Waits(o.State)
}

// nextLook returns after how long to look again at an add-on that has been progressing for some time: when its grace is over, and from then
// on as often.
func nextLook(progressing time.Duration) time.Duration {
	if left := fluxstate.NodesGrace - progressing; left > 0 {
		return max(left, time.Second)
	}
	return fluxstate.NodesGrace
}

// release removes the finalizer of a delivery that has nothing on the cluster any more. With the last delivery of its
// namespace, it deletes the kubeconfig copy. It reads live, because an object that is not in the cache yet would be left
// behind.
func (r *Reconciler) release(ctx context.Context, c *cluster, d *delivery) error {
	others, err := r.reader().ObjectsLeft(ctx, c.Observed(), d.Namespace)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(o metav1.PartialObjectMetadata) bool { return o.Annotations[hubv1.DeliveryAnnotation] == d.Name }) {
		return nil // its deletion wakes us
	}
	switch {
	case !c.lastOut(d):
	case slices.ContainsFunc(others, c.allButGone):
		return nil // its deletion wakes us, and the kubeconfig copy goes then
	case len(others) == 0:
		if err := r.keeper().DropKubeconfigs(ctx, c.Cluster, d.Namespace); err != nil {
			return err
		}
	}
	r.memory.Drop(c.Key, client.ObjectKeyFromObject(d))
	r.waiting.Forget(client.ObjectKeyFromObject(d))
	return apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.Finalizer)
}

// lastOut returns whether no other delivery of the namespace needs the kubeconfig copy. A delivery that has nothing on the
// cluster any more does not need it: it may end in this very reconcile, or have ended and still be in the cache, and
// then nothing would delete the kubeconfig copy later. A delivery that is not served, because another registration of the
// cluster is, does not need it either: its set may withdraw it at the same moment.
func (c *cluster) lastOut(d *delivery) bool {
	return !slices.ContainsFunc(c.Deliveries, func(other *delivery) bool {
		return other != d && other.Namespace == d.Namespace && (other.Serves() && !c.Duplicate() || other.Leaving && !gone(other))
	})
}

// allButGone returns whether the hub has orphaned an object that was made for the cluster that was registered before.
// Such an object may belong to no delivery.
func (c *cluster) allButGone(obj metav1.PartialObjectMetadata) bool {
	for _, o := range c.Objects {
		if o.UID == obj.UID {
			return o.Replaced != "" && obj.DeletionTimestamp != nil
		}
	}
	return false
}

// tell sends an event for each add-on that failed, recovered or was orphaned, and one event when all add-ons of a
// revision are Ready. An event for each add-on that becomes Ready would cost as many writes as the whole rollout.
func (r *Reconciler) tell(ctx context.Context, c *cluster, d *observed.Delivery) {
	if d.Status.ReadyRevision != d.Before.Status.ReadyRevision && !d.Leaving {
		r.Recorder.Eventf(d.AddonDelivery, nil, corev1.EventTypeNormal, hubv1.DeliveredEvent, "Deliver", "all add-ons are Ready")
	}
	for _, a := range d.Status.Addons {
		last := d.Was(a.Name)
		before, forGood := last.State, last.TakenOverBy != nil && a.TakenOverBy == nil
		if before == a.State && !forGood {
			continue
		}
		var object runtime.Object
		if a.Object != "" {
			object = observed.NewObject(plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object})
		}
		switch a.State {
		case hubv1.AddonFailed, hubv1.AddonNotOwned:
			r.Recorder.Eventf(d.AddonDelivery, object, corev1.EventTypeWarning, hubv1.AddonFailedEvent, "Deliver", "add-on %q: %s",
				a.Name, a.Message)
		case hubv1.AddonOrphaned:
			if a.TakenOverBy == nil { // else it is told when the object goes
				r.tellOrphan(ctx, c, d, a)
			}
		case hubv1.AddonReady:
			if before == hubv1.AddonFailed {
				r.Recorder.Eventf(d.AddonDelivery, object, corev1.EventTypeNormal, hubv1.AddonRecoveredEvent, "Deliver",
					"add-on %q is Ready again", a.Name)
			}
		}
	}
}

func (r *Reconciler) tellOrphan(ctx context.Context, c *cluster, d *observed.Delivery, a hubv1.AddonStatus) {
	var object runtime.Object
	if a.Object != "" {
		object = observed.NewObject(plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object})
	}
	r.Recorder.Eventf(r.about(ctx, c, d.AddonDelivery, d.Namespace), object, corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
		"add-on %q (%s %q) is left on cluster %s: %s", a.Name, a.Kind, a.Object, c.Key, a.Message)
}
