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
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/apply"
)

// letBe releases a delivery that a user has deleted and that its set has not withdrawn, for example by kubectl
// delete --all. The Flux objects and the kubeconfig stay as they are, and the set's controller makes the delivery again. If
// the set does not want the delivery any more, it stays until the set withdraws it: without a delivery nothing would
// remove what it delivered.
func (r *Reconciler) letBe(ctx context.Context, c *cluster, d *delivery) error {
	if d.WantedAgain {
		if still, err := r.makesAgain(ctx, d); err != nil || !still {
			c.LookAgain(observed.Soon)
			return err
		}
	}
	if !c.Abandoned(d.Delivery) && !d.WantedAgain {
		left, err := r.reader().ObjectsLeft(ctx, c.Observed(), d.Namespace)
		if err != nil || slices.ContainsFunc(left, func(o metav1.PartialObjectMetadata) bool {
			return o.Annotations[hubv1.DeliveryAnnotation] == d.Name
		}) {
			return err
		}
		if c.told(d) {
			return r.release(ctx, c, d) // nothing of it is left, and so it takes the kubeconfig copy along
		}
	}
	if !c.told(d) {
		c.LookAgain(observed.Soon)
		return nil
	}
	switch {
	case d.WantedAgain:
		r.warn(d, "deleted by hand: nothing is uninstalled, Flux goes on with what it has, and the delivery is made again. "+
			"To remove its add-ons from cluster %s, change the labels of ClusterRegistration %s or the clusterSelector of AddonSet "+
			"%s, or delete the AddonSet", c.Key, c.Key, d.SetKey())
	case d.Set == nil:
		r.warn(d, "deleted by hand, and AddonSet %s does not exist: nothing is uninstalled, and Flux goes on with what it has. "+
			"To remove it from cluster %s, apply the AddonSet again, and then delete it", d.SetKey(), c.Key)
	case c.Registration == nil:
		r.warn(d, "deleted by hand, and ClusterRegistration %s does not exist: nothing is uninstalled, and Flux goes on with what it has. "+
			"The delivery is made again when the cluster is registered again", c.Key)
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
	r.memory.Drop(c.Key, client.ObjectKeyFromObject(d))
	r.waiting.Forget(client.ObjectKeyFromObject(d))
	r.expectations.Forget(c.Key) // what was written there does not come into the cache any more
	return apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.Finalizer)
}

func (r *Reconciler) warn(d *delivery, format string, args ...any) {
	r.Recorder.Eventf(d.AddonDelivery, nil, corev1.EventTypeWarning, hubv1.DeliveryMadeAgainEvent, "Deliver", format, args...)
}
