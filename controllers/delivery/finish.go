// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
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
	for _, d := range c.deliveries {
		if d.busy() {
			continue
		}
		c.report(d, pass)
		if wait := r.waiting.For(client.ObjectKeyFromObject(d), pace.Delivery(d.before, d.AddonDelivery), pace.Delay(d.before), c.now); wait > 0 {
			c.lookAgain(wait)
			continue
		}
		again = again || !d.Status.ReadyTime.Equal(d.before.Status.ReadyTime) || d.recordedNow() || c.gated() && d.readyNow()
		if err := apply.Status(ctx, r.Client, d.before, d.AddonDelivery); err != nil {
			errs = append(errs, err)
			continue
		}
		if d.ResourceVersion != d.before.ResourceVersion {
			r.expectations.Expect(c.key, deliveryKind, d, r.Clock.Now())
		}
		r.tell(ctx, c, d)
		switch {
		case d.failed != nil: // what is to become of it is not known
		case d.UID != d.before.UID: // another one has taken its name, as the API server's answer says
		case d.deletedByHand():
			errs = append(errs, r.letBe(ctx, c, d))
		case !d.leaving || !d.gone():
		case c.told(d):
			errs = append(errs, r.release(ctx, c, d))
		default:
			c.lookAgain(time.Second)
		}
	}
	c.change(steps, r.Config)
	if again {
		c.lookAgain(soon) // what was written now opens the way for something else on this cluster
	}
	return c.again, errors.Join(errs...)
}

// lookAgain requeues the cluster after a time, if it is not requeued sooner.
func (c *cluster) lookAgain(after time.Duration) {
	c.again = pace.Sooner(c.again, after)
}

// soon is after how long to requeue the cluster for a change that no event reports.
const soon = 100 * time.Millisecond

// recordedNow returns whether this pass has recorded which Helm release an add-on goes on with.
func (d *delivery) recordedNow() bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		before := d.addon(a.Name)
		return a.Release != nil && (before == nil || before.Release == nil || *before.Release != *a.Release)
	})
}

// gated returns whether something waits on this cluster for what it depends on.
func (c *cluster) gated() bool {
	return slices.ContainsFunc(c.deliveries, func(d *delivery) bool {
		return slices.ContainsFunc(d.Wanted, func(w assembly.Wanted) bool { return w.Gate != "" })
	})
}

// readyNow returns whether this pass reports an add-on Ready that was not, or was of an older generation. It may have been all the time: a
// delivery that was made again finds its objects as they are to be, a hub that died may not have said what it had written, and whether the
// generation that Flux has reported on is the hub's is known from the status.
func (d *delivery) readyNow() bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		before := d.addon(a.Name)
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
		case s.Leaving() && c.objects[s.Key].Foreign:
			c.lookAgain(time.Second)
		case s.Verb == plan.AwaitDependants && c.objects[s.Key].NeededBy != "":
			c.lookAgain(max(c.rightsLeft(c.objects[s.Key], config), time.Second))
		case s.Verb == plan.Hold || s.Verb == plan.Uninstall:
			c.lookAgain(teardown.Wait(c.removal(c.objects[s.Key].Observed, config)))
		}
	}
	for _, d := range c.deliveries {
		if d.result != nil && !d.result.Until.IsZero() {
			c.lookAgain(max(d.result.Until.Sub(c.now), time.Millisecond))
		}
		for i := range d.Status.Addons {
			if a := &d.Status.Addons[i]; a.State == hubv1.AddonProgressing && a.Since != nil && (c.nodeless() || c.unfetched(d, a)) {
				c.lookAgain(nextLook(c.now.Sub(a.Since.Time)))
			}
		}
	}
}

// nodeless returns whether the cluster is known to have no node.
func (c *cluster) nodeless() bool {
	return c.registration != nil && c.registration.Status.Nodes != nil && *c.registration.Status.Nodes == 0
}

// unfetched returns whether Flux waits for the source or chart of an add-on. No event says that one of others could not be fetched.
func (c *cluster) unfetched(d *delivery, a *hubv1.AddonStatus) bool {
	o := c.objects[plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}]
	return o != nil && !o.Suspended && fluxstate.Waits(o.state)
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
// namespace, it deletes the mirror. It reads live, because an object that is not in the cache yet would be left
// behind.
func (r *Reconciler) release(ctx context.Context, c *cluster, d *delivery) error {
	others, err := r.objectsLeft(ctx, c, d.Namespace)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(o metav1.PartialObjectMetadata) bool { return o.Annotations[hubv1.DeliveryAnnotation] == d.Name }) {
		return nil // its deletion wakes us
	}
	switch {
	case !c.lastOut(d):
	case slices.ContainsFunc(others, c.allButGone):
		return nil // its deletion wakes us, and the mirror goes then
	case len(others) == 0:
		err := errors.Join(r.dropMirror(ctx, c, secretKind, d.Namespace), r.dropMirror(ctx, c, configMapKind, d.Namespace))
		if err != nil {
			return err
		}
	}
	r.memory.drop(client.ObjectKeyFromObject(d))
	r.waiting.Forget(client.ObjectKeyFromObject(d))
	return apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.DeliveryFinalizer)
}

// lastOut returns whether no other delivery of the namespace needs the mirror. A delivery that has nothing on the
// cluster any more does not need it: it may end in this very reconcile, or have ended and still be in the cache, and
// then nothing would delete the mirror later. A delivery that is not served, because another registration of the
// cluster is, does not need it either: its set may withdraw it at the same moment.
func (c *cluster) lastOut(d *delivery) bool {
	return !slices.ContainsFunc(c.deliveries, func(other *delivery) bool {
		return other != d && other.Namespace == d.Namespace && (other.serves() && !c.duplicate() || other.leaving && !other.gone())
	})
}

// allButGone returns whether the hub has orphaned an object that was made for the cluster that was registered before.
// Such an object may belong to no delivery.
func (c *cluster) allButGone(obj metav1.PartialObjectMetadata) bool {
	for _, o := range c.objects {
		if o.uid == obj.UID {
			return o.Replaced != "" && obj.DeletionTimestamp != nil
		}
	}
	return false
}

// objectsLeft returns a cluster's Flux objects in a namespace.
func (r *Reconciler) objectsLeft(ctx context.Context, c *cluster, namespace string) ([]metav1.PartialObjectMetadata, error) {
	if _, err := r.reachOf(ctx, c, namespace); err != nil {
		return nil, err
	}
	var left []metav1.PartialObjectMetadata
	for kind, gv := range map[string]string{
		fluxspec.HelmReleaseKind: helmv2.GroupVersion.String(), fluxspec.KustomizationKind: kustomizev1.GroupVersion.String(),
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: kind + "List"}}
		err := r.Live.List(ctx, list, client.InNamespace(namespace),
			client.MatchingLabels{hubv1.ClusterKeyLabel: identity.ClusterKey(r.Config.HubID, c.key)})
		if err != nil {
			return nil, fmt.Errorf("look for what is left: %w", err)
		}
		left = append(left, slices.DeleteFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
			return !c.made(&o)
		})...)
	}
	return left, nil
}

// tell sends an event for each add-on that failed, recovered or was orphaned, and one event when all add-ons of a
// revision are Ready. An event for each add-on that becomes Ready would cost as many writes as the whole rollout.
func (r *Reconciler) tell(ctx context.Context, c *cluster, d *delivery) {
	if d.Status.ReadyRevision != d.before.Status.ReadyRevision && !d.leaving {
		r.Recorder.Eventf(d.AddonDelivery, nil, corev1.EventTypeNormal, hubv1.DeliveredEvent, "Deliver", "all add-ons are Ready")
	}
	for _, a := range d.Status.Addons {
		last := was(d, a.Name)
		before, forGood := last.State, last.TakenOverBy != nil && a.TakenOverBy == nil
		if before == a.State && !forGood {
			continue
		}
		var object runtime.Object
		if a.Object != "" {
			object = newObject(plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object})
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

func (r *Reconciler) tellOrphan(ctx context.Context, c *cluster, d *delivery, a hubv1.AddonStatus) {
	var object runtime.Object
	if a.Object != "" {
		object = newObject(plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object})
	}
	r.Recorder.Eventf(r.about(ctx, c, d, d.Namespace), object, corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
		"add-on %q (%s %q) is left on cluster %s: %s", a.Name, a.Kind, a.Object, c.key, a.Message)
}
