// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
)

// recallTime is how long a forced deletion waits for a delivery to be made again, and any deletion for one that may not be
// the hub's to be withdrawn. The matcher tries several times within it.
const recallTime = time.Minute

// recalled returns the Flux objects whose deliveries are about to be made again, to be withdrawn: somebody has
// deleted the deliveries, and the objects still exist. The matcher makes them again, or the set's room if the set is being deleted, and
// can do so while the registration exists.
func (r *Reconciler) recalled(ctx context.Context, reg *hubv1.ClusterRegistration) ([]string, error) {
	key := client.ObjectKeyFromObject(reg)
	look := recallLook{r: r, reg: reg, key: key, sets: map[string][]hubv1.AddonSet{}, taken: map[types.NamespacedName]bool{}}
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, key))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, o := range objects {
		is, err := look.recalled(ctx, o)
		if err != nil {
			return nil, err
		}
		if is {
			out = append(out, fmt.Sprintf("%s %s/%s", kindOfObject(o), o.GetNamespace(), o.GetName()))
		}
	}
	return out, nil
}

// kindOfObject returns the kind of a Flux object.
func kindOfObject(o client.Object) string {
	if _, ok := o.(*helmv2.HelmRelease); ok {
		return helmv2.HelmReleaseKind
	}
	return kustomizev1.KustomizationKind
}

// recallLook is one call of recalled for a registration. It remembers what it has read.
type recallLook struct {
	r   *Reconciler
	reg *hubv1.ClusterRegistration
	key types.NamespacedName
	// sets are those that make deliveries again, by namespace. taken are names of deliveries that another cluster has.
	sets  map[string][]hubv1.AddonSet
	taken map[types.NamespacedName]bool
}

// recalled returns whether the delivery of a Flux object is about to be made again.
func (l *recallLook) recalled(ctx context.Context, o client.Object) (bool, error) {
	uninstalling := o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), fluxstate.Finalizer)
	if o.GetDeletionTimestamp() != nil && !uninstalling {
		return false, nil // Flux has finished with it, whoever keeps it: no delivery is made again for that
	}
	from, err := reach.Of(ctx, l.r.Client, l.r.Config, o.GetNamespace())
	if err != nil {
		return false, err
	}
	if acts, err := reach.Acts(ctx, l.r.Live, l.r.Config, from, l.reg); err != nil || !acts {
		return false, err
	}
	if _, known := l.sets[o.GetNamespace()]; !known {
		sets, err := l.r.withdrawing(ctx, o.GetNamespace())
		if err != nil {
			return false, err
		}
		l.sets[o.GetNamespace()] = sets
	}
	// A set that is being deleted searches at once for what it has left. But while Flux is at work, it only looks from time to time, and
	// would be too late. Members of a team can write such a set and such an object, so those have a minute.
	searches := uninstalling && (!from.ByTeam() || l.r.settling(l.reg) > 0)
	made := func(set hubv1.AddonSet) bool {
		return (set.DeletionTimestamp == nil || searches) && provenance.Claims(o, l.r.Config.HubID, set.Name, l.key)
	}
	if !slices.ContainsFunc(l.sets[o.GetNamespace()], made) {
		return false, nil
	}
	delivery := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetAnnotations()[hubv1.DeliveryAnnotation]}
	if _, known := l.taken[delivery]; !known {
		taken, err := l.r.taken(ctx, l.key, delivery)
		if err != nil {
			return false, err
		}
		l.taken[delivery] = taken
	}
	return !l.taken[delivery], nil
}

// givesUp returns whether a registration that goes waits no longer for deliveries to be made again: somebody forces
// it, and the matcher has had its time.
func (r *Reconciler) givesUp(reg *hubv1.ClusterRegistration) bool {
	c := status.Find(reg, hubv1.UnregisteringCondition)
	return c != nil && c.Reason == hubv1.ForcedReason && r.worked(c) >= recallTime
}

// worked returns for how long the hub has been at work since a condition began: before this process there may have been none.
func (r *Reconciler) worked(c *metav1.Condition) time.Duration {
	return r.Tenure.Worked(c.LastTransitionTime.Time, r.Clock.Now())
}

// tellGivenUp reports what stays as it is. Nobody lets it go, so nobody else reports it.
func (r *Reconciler) tellGivenUp(reg *hubv1.ClusterRegistration, objects []string) {
	if len(objects) > 0 {
		r.Recorder.Eventf(reg, nil, corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
			"somebody forces it to go, and the deliveries of %s could not be made again, by which they would be let go. "+
				"They stay, and Flux goes on with what they deliver: suspend them, and delete them", status.List(objects, 20))
	}
}

// leftText says what a registration that goes still waits for.
func leftText(deliveries int, recalled []string) string {
	if len(recalled) > 0 {
		return fmt.Sprintf("%s of deliveries that somebody has deleted: they are to be made again first", status.List(recalled, 3))
	}
	return status.Count(deliveries, "delivery") + " left"
}

// taken returns whether a delivery to another cluster has that name. Then the one that belongs there cannot be made.
func (r *Reconciler) taken(ctx context.Context, reg, delivery types.NamespacedName) (bool, error) {
	d := &hubv1.AddonDelivery{}
	if err := r.Live.Get(ctx, delivery, d); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return true, fmt.Errorf("read AddonDelivery %s: %w", delivery, err)
	}
	return d.Spec.RegistrationRef.Key() != reg, nil
}

// withdrawing returns the sets of a namespace whose deliveries are made again. A set that does not compile is not one of them, unless it
// is being deleted.
func (r *Reconciler) withdrawing(ctx context.Context, namespace string) ([]hubv1.AddonSet, error) {
	sets := &hubv1.AddonSetList{}
	if err := r.Live.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the AddonSets of namespace %s: %w", namespace, err)
	}
	return slices.DeleteFunc(sets.Items, func(set hubv1.AddonSet) bool {
		if set.DeletionTimestamp != nil {
			return !controllerutil.ContainsFinalizer(&set, hubv1.AddonSetFinalizer)
		}
		return status.IsTrue(&set, hubv1.StalledCondition)
	}), nil
}
