// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// left says what an object that is about to be orphaned leaves on the cluster. It reads live, because the cache keeps
// no inventories. If the status reports it already, it is not read again. If it cannot be read, the object is not let
// go yet: afterwards no status could say what stays.
func (r *Reconciler) left(ctx context.Context, c *cluster, s plan.Step) (string, error) {
	o := c.Objects[s.Key]
	if d := c.Delivery(s.Key.Namespace, o.Delivery); d != nil && d.Announced(s.Key, o.Addon) {
		return d.Addon(o.Addon).Message, nil
	}
	if text, _ := r.ledger.WasRemoved(s.Key); text != "" && o.Deleting {
		return text, nil // the answer to the deletion was lost: it was orphaned then, and Flux had not begun by that
	}
	obj := observed.NewObject(s.Key)
	what := "what it applied"
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); {
	case err == nil:
		what = fluxstate.Left(obj)
	case !apierrors.IsNotFound(err):
		return "", fmt.Errorf("read what %s leaves on the cluster: %w", s.Key, err)
	}
	return excerpt.Of(fmt.Sprintf("%s%s; left there: %s", s.Reason, begun(o), what), status.MaxNote), nil
}

// lastWords is the last message of Flux about an object, for a status or an event.
func lastWords(s fluxstate.State) string {
	if s.Message == "" {
		return "none"
	}
	return fluxstate.Words(s.Reason, s.Message)
}

// begun says that what is orphaned may still be uninstalled. A worker of Flux that had begun with that when the cluster stopped answering
// holds a client of the cluster. It does not read its object again, and it cannot be called back: its first request has no deadline
// (fluxcd/pkg/runtime client.KubeConfig asks /livez/ping), and what comes after it is done as soon as the cluster answers.
func begun(o *observed.Object) string {
	if !o.Deleting {
		return ""
	}
	return "; Flux had begun to uninstall it, and may go on with that if the cluster answers again"
}

// gone returns whether the status of a delivery names nothing but orphans.
func gone(d *delivery) bool {
	return !slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.State != hubv1.AddonOrphaned })
}

// tellLimit is how long a delivery that is done waits until its orphans are recorded elsewhere. Nothing waits for a
// report for ever.
const tellLimit = time.Minute

// told returns whether the statuses that outlive a delivery name its orphans: those of the registration and of the
// set.
func (c *cluster) told(d *delivery) bool {
	for _, a := range d.Status.Addons {
		if a.State != hubv1.AddonOrphaned {
			continue
		}
		o := teardown.OrphanOf(d.AddonDelivery, a)
		if c.Now.Sub(o.Since.Time) > tellLimit && c.Now.Sub(c.Began) > tellLimit {
			continue // while no hub was at work, it could not be recorded
		}
		if reg := c.Registration; reg != nil && !status.Goes(reg) && !teardown.Recorded(reg.Status.Orphans, o) {
			return false
		}
		if d.Set != nil && d.Set.DeletionTimestamp == nil && a.TakenOverBy == nil && !teardown.Recorded(d.Set.Status.Orphans, o) {
			return false
		}
	}
	return true
}

// about returns the object that an event about something in a namespace is sent for. It is the delivery, if there is
// one. An event is stored in the namespace of its object, and a namespace that is being deleted accepts none, even
// before the delivery itself is deleted. Then it is the registration, or else a Namespace, whose events are stored in
// namespace default.
func (r *Reconciler) about(ctx context.Context, c *cluster, about *hubv1.AddonDelivery, namespace string) client.Object {
	var candidates []client.Object
	if about != nil {
		candidates = append(candidates, about)
	}
	if c.Registration != nil {
		candidates = append(candidates, c.Registration)
	}
	for _, obj := range candidates {
		going, err := demise.Namespace(ctx, r.Live, obj.GetNamespace())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "look for a namespace that takes events", logkey.Cluster, c.Key.String())
		}
		if !going {
			return obj
		}
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
}

// forsaken returns whether deliveries are being deleted because their CRD is. Then no user has asked for a removal.
// The deliveries go. What they delivered stays, and so do the Flux objects, which the hub finds again when the CRD is
// back.
func (r *Reconciler) forsaken(ctx context.Context, c *cluster) (bool, error) {
	if !slices.ContainsFunc(c.Deliveries, func(d *delivery) bool { return d.DeletionTimestamp != nil }) {
		return false, nil
	}
	return demise.AnyKind(ctx, r.Live, demise.Deliveries)
}

func (r *Reconciler) forsake(ctx context.Context, c *cluster) error {
	var errs []error
	for _, d := range c.Deliveries {
		if d.DeletionTimestamp == nil {
			continue
		}
		r.Recorder.Eventf(d.AddonDelivery, nil, corev1.EventTypeWarning, hubv1.HeldEvent, "Remove",
			"deleted because the CRD of AddonDeliveries is; nothing is uninstalled, and Flux goes on with what it has")
		r.memory.Drop(c.Key, client.ObjectKeyFromObject(d))
		errs = append(errs, apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.Finalizer))
	}
	return errors.Join(errs...)
}
