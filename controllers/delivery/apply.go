// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// outcome is what came of one step.
type outcome struct {
	// applied is the generation that the hub's last write led to.
	applied int64
	err     error
}

// apply carries out the steps. One failure stops no other step; all of them are returned, to be tried again.
func (r *Reconciler) apply(ctx context.Context, c *cluster, steps []plan.Step) (map[plan.Key]outcome, error) {
	wanted := map[plan.Key]*render.Object{}
	for _, d := range c.deliveries {
		for i := range d.wanted {
			wanted[keyOf(d.wanted[i])] = &d.wanted[i]
		}
	}
	outcomes := make(map[plan.Key]outcome, len(steps))
	var errs []error
	for _, s := range steps {
		var out outcome
		switch s.Verb {
		case plan.Create, plan.Update:
			out = r.write(ctx, c, s, wanted[s.Key])
		case plan.Uninstall, plan.Release:
			out.err = r.remove(ctx, c, s)
		case plan.Keep:
			out.applied = c.objects[s.Key].Applied
		}
		outcomes[s.Key] = out
		if out.err != nil && !errors.Is(out.err, apply.ErrNotOwned) && !errors.Is(out.err, errNoMirror) {
			errs = append(errs, out.err)
		}
	}
	return outcomes, errors.Join(errs...)
}

var errNoMirror = errors.New("the kubeconfig mirror is not in place yet")

// write creates or updates one object, and before that the chart that it refers to.
func (r *Reconciler) write(ctx context.Context, c *cluster, s plan.Step, o *render.Object) outcome {
	if !c.mirrored[s.Key.Namespace] && s.Verb == plan.Create {
		return outcome{err: errNoMirror}
	}
	if o.Chart != nil {
		if err := r.Charts.Ensure(ctx, o.Chart); err != nil {
			return outcome{err: err}
		}
	}
	key := identity.ClusterKey(r.Config.HubID, c.key)
	write := func() (client.Object, error) {
		if s.Verb == plan.Update {
			return apply.Update(ctx, r.Client, o.Object, hubv1.FieldManager)
		}
		return apply.Create(ctx, r.Client, r.Live, o.Object, hubv1.FieldManager, func(there client.Object) bool {
			return there.GetLabels()[hubv1.ClusterKeyLabel] == key
		})
	}
	obj, err := write()
	if err != nil {
		return outcome{err: err}
	}
	r.ledger.note(s.Key, obj)
	return outcome{applied: obj.GetGeneration()}
}

// remove deletes one object so that Flux uninstalls, or does not. Flux reads spec.suspend when it finalizes: a suspended
// object is let go without a trace on the cluster (kustomize-controller, finalize; helm-controller, reconcileDelete). So
// suspend is set to what the step means before the deletion, in a patch of its own.
func (r *Reconciler) remove(ctx context.Context, c *cluster, s plan.Step) error {
	o := c.objects[s.Key]
	suspend := s.Verb == plan.Release
	obj := newObject(s.Key)
	if o.Suspended != suspend {
		patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
		err := r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.SuspendFieldManager))
		if err != nil {
			return client.IgnoreNotFound(fmt.Errorf("suspend %s %s: %w", s.Key.Kind, s.Key.Name, err))
		}
	}
	if o.Deleting {
		return nil
	}
	if err := r.Client.Delete(ctx, obj); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("delete %s %s: %w", s.Key.Kind, s.Key.Name, err))
	}
	r.ledger.drop(s.Key)
	r.tellRemoval(c, s, o)
	return nil
}

// tellRemoval sends an event for each object that goes. The object is in it as the related one: events about one delivery that
// differ only in their text are taken for the same, and the first text would stand for all (client-go/tools/events).
func (r *Reconciler) tellRemoval(c *cluster, s plan.Step, o *object) {
	d := c.delivery(s.Key.Namespace, o.delivery)
	if d == nil {
		return
	}
	if s.Verb == plan.Uninstall {
		r.Recorder.Eventf(d.AddonDelivery, newObject(s.Key), corev1.EventTypeNormal, hubv1.AddonRemovedEvent, "Remove",
			"uninstalling add-on %q from cluster %s", o.Addon, c.key)
		return
	}
	r.Recorder.Eventf(d.AddonDelivery, newObject(s.Key), corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
		"add-on %q (%s %q) is left on cluster %s: %s", o.Addon, s.Key.Kind, s.Key.Name, c.key, s.Reason)
}

func newObject(k plan.Key) client.Object {
	if k.Kind == fluxspec.HelmReleaseKind {
		o := &helmv2.HelmRelease{}
		o.Namespace, o.Name = k.Namespace, k.Name
		return o
	}
	o := &kustomizev1.Kustomization{}
	o.Namespace, o.Name = k.Namespace, k.Name
	return o
}
