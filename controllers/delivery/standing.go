// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
)

// leaves returns whether a delivery is being withdrawn: its set has decided that, or its namespace is being deleted.
func (r *Reconciler) leaves(ctx context.Context, d *delivery) (bool, error) {
	if !d.Known() || d.DeletionTimestamp == nil || d.Withdrawn() {
		return d.Withdrawn(), nil
	}
	return demise.Namespace(ctx, r.Live, d.Namespace)
}

// reaches returns whether sets of a namespace may deliver to the cluster. Other namespaces get no kubeconfig.
func (c *cluster) reaches(namespace string) bool {
	reg := c.registration
	if reg == nil {
		reg = match.Missing(c.key)
	}
	return c.reach[namespace].To(reg)
}

// reachOf reads how far the sets of a namespace reach, once in a reconcile.
func (r *Reconciler) reachOf(ctx context.Context, c *cluster, namespace string) (match.Reach, error) {
	if from, known := c.reach[namespace]; known {
		return from, nil
	}
	from, err := reach.Of(ctx, r.Client, r.Config, namespace)
	if err == nil {
		c.reach[namespace] = from
	}
	return from, err
}

// ours returns whether the hub looks after a Flux object that has the cluster's label, which only the hub may put on one (config/policies).
// In a namespace out of reach it does only if the object belongs to a delivery that exists, or its Team still has its rights on the
// cluster, and Flux needs them for the object.
func (r *Reconciler) ours(ctx context.Context, c *cluster, obj metav1.Object) (bool, error) {
	if _, err := r.reachOf(ctx, c, obj.GetNamespace()); err != nil {
		return false, err
	}
	return c.made(obj), nil
}

// made is ours for an object of a namespace whose reach has been read.
func (c *cluster) made(obj metav1.Object) bool {
	if c.reaches(obj.GetNamespace()) || c.delivery(obj.GetNamespace(), obj.GetAnnotations()[hubv1.DeliveryAnnotation]) != nil {
		return true
	}
	return c.rights(obj.GetNamespace()) != nil
}

// selects returns whether the set of a delivery selects the cluster now. Parsing a selector costs something, so
// delivery.selected keeps the answer.
func (c *cluster) selects(d *delivery) bool {
	if c.registration == nil || d.set == nil {
		return false
	}
	selector, err := match.New(c.reach[d.Namespace], &d.set.Spec)
	return err == nil && selector.Matches(c.registration)
}

// refusal says why nothing is made for a delivery, with a reason; empty if it is served.
func (c *cluster) refusal(d *delivery) (reason, message string) {
	switch {
	case d.Standing == provenance.Held:
		return d.Reason, d.Message
	case c.duplicate():
		return hubv1.DuplicateReason, c.otherHas() + ": nothing is delivered through this one"
	case c.registration != nil && status.Unregistered(c.registration) && !c.has(d):
		return hubv1.NotSelectedReason, fmt.Sprintf("ClusterRegistration %s is being unregistered, and nothing has been made here", c.key)
	case c.registration == nil || d.selected:
		return "", "" // one that is not claimed is about to be: there is no other of that name
	case d.Standing == provenance.Unclaimed:
		return d.Reason, d.Message
	case c.has(d):
		return "", "" // until the set withdraws it, as far as its removal guard lets it
	}
	return hubv1.NotSelectedReason, fmt.Sprintf("AddonSet %s does not select the cluster, and nothing has been made here", d.SetKey())
}

// serves returns whether something is made for a delivery, or may be.
func (d *delivery) serves() bool {
	switch d.reason {
	case hubv1.NotFromAddonSetReason, hubv1.AddonSetNotFoundReason, hubv1.OutOfReachReason, hubv1.NotSelectedReason:
		return false
	}
	return !d.leaving
}

// has returns whether a delivery has a Flux object.
func (c *cluster) has(d *delivery) bool {
	for k, o := range c.objects {
		if k.Namespace == d.Namespace && o.delivery == d.Name {
			return true
		}
	}
	return false
}

// deletedByHand returns whether a user had deleted a delivery when it was read, and its set had not withdrawn it.
// The API server's answer to a write is newer than what was decided on.
func (d *delivery) deletedByHand() bool { return d.before.DeletionTimestamp != nil && !d.leaving }

// abandoned returns whether a user deletes a delivery that nothing is left to withdraw: its set or its
// registration does not exist.
func (c *cluster) abandoned(d *delivery) bool {
	return d.DeletionTimestamp != nil && !d.leaving && d.failed == nil && (d.set == nil || c.registration == nil)
}

// wantsAgain returns whether the set's controller makes a delivery again after it is gone.
func (c *cluster) wantsAgain(d *delivery) bool {
	return d.selected && d.set.DeletionTimestamp == nil && !status.IsTrue(d.set, hubv1.StalledCondition) && !status.Goes(c.registration)
}

// letBe releases a delivery that a user has deleted and that its set has not withdrawn, for example by kubectl
// delete --all. The Flux objects and the kubeconfig stay as they are, and the set's controller makes the delivery again. If
// the set does not want the delivery any more, it stays until the set withdraws it: without a delivery nothing would
// remove what it delivered.
func (r *Reconciler) letBe(ctx context.Context, c *cluster, d *delivery) error {
	if d.Withdrawn() {
		return nil // since it was read, as the answer to its status says: that wakes us
	}
	if d.wantedAgain {
		if still, err := r.makesAgain(ctx, d); err != nil || !still {
			c.lookAgain(soon)
			return err
		}
	}
	if !c.abandoned(d) && !d.wantedAgain {
		left, err := r.objectsLeft(ctx, c, d.Namespace)
		if err != nil || slices.ContainsFunc(left, func(o metav1.PartialObjectMetadata) bool {
			return o.Annotations[hubv1.DeliveryAnnotation] == d.Name
		}) {
			return err
		}
		if c.told(d) {
			return r.release(ctx, c, d) // nothing of it is left, and so it takes the mirror along
		}
	}
	if !c.told(d) {
		c.lookAgain(soon)
		return nil
	}
	switch {
	case d.wantedAgain:
		r.warn(d, "deleted by hand: nothing is uninstalled, Flux goes on with what it has, and the delivery is made again. "+
			"To remove its add-ons from cluster %s, change the labels of ClusterRegistration %s or the clusterSelector of AddonSet "+
			"%s, or delete the AddonSet", c.key, c.key, d.SetKey())
	case d.set == nil:
		r.warn(d, "deleted by hand, and AddonSet %s does not exist: nothing is uninstalled, and Flux goes on with what it has. "+
			"To remove it from cluster %s, apply the AddonSet again, and then delete it", d.SetKey(), c.key)
	case c.registration == nil:
		r.warn(d, "deleted by hand, and ClusterRegistration %s does not exist: nothing is uninstalled, and Flux goes on with what it has. "+
			"The delivery is made again when the cluster is registered again", c.key)
	}
	return r.forgo(ctx, c, d)
}

// makesAgain returns whether the set of a delivery makes it again after it is gone. It reads live: a set that is being
// deleted does not, and would not find it to withdraw it.
func (r *Reconciler) makesAgain(ctx context.Context, d *delivery) (bool, error) {
	set := &hubv1.AddonSet{}
	if err := r.Live.Get(ctx, d.SetKey(), set); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read AddonSet %s: %w", d.SetKey(), err)
	} else if err != nil {
		return false, nil
	}
	return set.DeletionTimestamp == nil, nil
}

// forgo lets a delivery go, and leaves what it has.
func (r *Reconciler) forgo(ctx context.Context, c *cluster, d *delivery) error {
	r.memory.drop(client.ObjectKeyFromObject(d))
	r.waiting.Forget(client.ObjectKeyFromObject(d))
	r.expectations.Forget(c.key) // what was written there does not come into the cache any more
	return apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.DeliveryFinalizer)
}

func (r *Reconciler) warn(d *delivery, format string, args ...any) {
	r.Recorder.Eventf(d.AddonDelivery, nil, corev1.EventTypeWarning, hubv1.DeliveryMadeAgainEvent, "Deliver", format, args...)
}
