// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
)

// leaves returns whether a delivery is being withdrawn: its set has decided that, or its namespace is being deleted.
func (r *Reader) leaves(ctx context.Context, d *Delivery) (bool, error) {
	if !d.Known() || d.DeletionTimestamp == nil || d.Withdrawn() {
		return d.Withdrawn(), nil
	}
	return demise.Namespace(ctx, r.Live, d.Namespace)
}

// Reaches returns whether sets of a namespace may deliver to the cluster. Other namespaces get no kubeconfig.
func (c *Cluster) Reaches(namespace string) bool {
	reg := c.Registration
	if reg == nil {
		reg = match.Missing(c.Key)
	}
	return c.Reach[namespace].To(reg)
}

// ReachOf reads how far the sets of a namespace reach, once in a reconcile.
func (r *Reader) ReachOf(ctx context.Context, c *Cluster, namespace string) (match.Reach, error) {
	if from, known := c.Reach[namespace]; known {
		return from, nil
	}
	from, err := reach.Of(ctx, r.Client, r.Config, namespace)
	if err == nil {
		c.Reach[namespace] = from
	}
	return from, err
}

// ours returns whether the hub looks after a Flux object that has the cluster's label, which only the hub may put on one (config/policies).
// In a namespace out of reach it does only if the object belongs to a delivery that exists, or its Team still has its rights on the
// cluster, and Flux needs them for the object.
func (r *Reader) ours(ctx context.Context, c *Cluster, obj metav1.Object) (bool, error) {
	if _, err := r.ReachOf(ctx, c, obj.GetNamespace()); err != nil {
		return false, err
	}
	return c.made(obj), nil
}

// made is ours for an object of a namespace whose reach has been read.
func (c *Cluster) made(obj metav1.Object) bool {
	if c.Reaches(obj.GetNamespace()) || c.delivery(obj.GetNamespace(), obj.GetAnnotations()[hubv1.DeliveryAnnotation]) != nil {
		return true
	}
	return c.Rights(obj.GetNamespace()) != nil
}

// selects returns whether the set of a delivery selects the cluster now. Parsing a selector costs something, so
// delivery.selected keeps the answer.
func (c *Cluster) selects(d *Delivery) bool {
	if c.Registration == nil || d.Set == nil {
		return false
	}
	selector, err := match.New(c.Reach[d.Namespace], &d.Set.Spec)
	return err == nil && selector.Matches(c.Registration)
}

// refusal says why nothing is made for a delivery, with a reason; empty if it is served.
func (c *Cluster) refusal(d *Delivery) (reason, message string) {
	switch {
	case d.Standing == provenance.Held:
		return d.Reason, d.Message
	case c.Duplicate():
		return hubv1.DuplicateReason, c.otherHas() + ": nothing is delivered through this one"
	case c.Registration != nil && status.Unregistered(c.Registration) && !c.has(d):
		return hubv1.NotSelectedReason, fmt.Sprintf("ClusterRegistration %s is being unregistered, and nothing has been made here", c.Key)
	case c.Registration == nil || d.Selected:
		return "", "" // one that is not claimed is about to be: there is no other of that name
	case d.Standing == provenance.Unclaimed:
		return d.Reason, d.Message
	case c.has(d):
		return "", "" // until the set withdraws it, as far as its removal guard lets it
	}
	return hubv1.NotSelectedReason, fmt.Sprintf("AddonSet %s does not select the cluster, and nothing has been made here", d.SetKey())
}

// Serves returns whether something is made for a delivery, or may be.
func (d *Delivery) Serves() bool {
	switch d.UnrenderableReason {
	case hubv1.NotFromAddonSetReason, hubv1.AddonSetNotFoundReason, hubv1.OutOfReachReason, hubv1.NotSelectedReason:
		return false
	}
	return !d.Leaving
}

// has returns whether a delivery has a Flux object.
func (c *Cluster) has(d *Delivery) bool {
	for k, o := range c.Objects {
		if k.Namespace == d.Namespace && o.Delivery == d.Name {
			return true
		}
	}
	return false
}

// Lives returns whether an add-on of a delivery has its own object.
func (c *Cluster) Lives(d *Delivery, addon string) bool {
	for k, o := range c.Objects {
		if o.Delivery == d.Name && k.Namespace == d.Namespace && o.Addon == addon {
			return true
		}
	}
	return false
}

// Unwanted returns whether the set of a delivery does not want to deliver to the cluster any more.
func (c *Cluster) Unwanted(d *Delivery) bool {
	return d.Set != nil && (d.Set.DeletionTimestamp != nil || !status.IsTrue(d.Set, hubv1.StalledCondition) && !d.Selected)
}

// LeavesAfter returns for how long the cluster still keeps what it has of a set that does not select it any more; 0 if it does, or that
// time is over.
func (c *Cluster) LeavesAfter(d *Delivery) time.Duration {
	if d.Spec.WithdrawAfter == nil || d.Leaving {
		return 0
	}
	return max(0, d.Spec.WithdrawAfter.Sub(c.Now))
}

// DeletedByHand returns whether a user had deleted a delivery when it was read, and its set had not withdrawn it.
// The API server's answer to a write is newer than what was decided on.
func (d *Delivery) DeletedByHand() bool {
	return d.Before.DeletionTimestamp != nil && !d.Leaving
}

// Abandoned returns whether a user deletes a delivery that nothing is left to withdraw: its set or its
// registration does not exist.
func (c *Cluster) Abandoned(d *Delivery) bool {
	return d.DeletionTimestamp != nil && !d.Leaving && d.Failed == nil && (d.Set == nil || c.Registration == nil)
}

// WantsAgain returns whether the set's controller makes a delivery again after it is gone.
func (c *Cluster) WantsAgain(d *Delivery) bool {
	return d.Selected && d.Set.DeletionTimestamp == nil && !status.IsTrue(d.Set, hubv1.StalledCondition) && !status.Goes(c.Registration)
}
