// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/copies"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// outcome is the outcome of one step.
type outcome struct {
	// applied is the object's generation after the hub's last write.
	applied int64
	// left says what an object that was orphaned leaves on the cluster, and why.
	left string
	err  error
}

// apply carries out the steps. One failure stops no other step; all of them are returned, to be tried again.
func (r *Reconciler) apply(ctx context.Context, c *cluster, steps []plan.Step) (map[plan.Key]outcome, error) {
	outcomes := make(map[plan.Key]outcome, len(steps))
	errs := []error{r.keepStays(ctx, c)}
	for len(steps) > 0 {
		beside := steps[:together(steps, r.Config.WritesOfCluster)]
		steps = steps[len(beside):]
		for i, out := range r.carryOut(ctx, c, beside) {
			s := beside[i]
			if _, goes := outcomes[s.Key]; !goes || s.Verb != plan.AwaitRemoval { // the object of another set may go by the same name before
				outcomes[s.Key] = out
			}
			if out.err != nil && !errors.Is(out.err, apply.ErrNotOwned) && !errors.Is(out.err, copies.ErrNoCopy) &&
				!apierrors.HasStatusCause(out.err, corev1.NamespaceTerminatingCause) {
				errs = append(errs, out.err)
				if !apply.Lagged(out.err) {
					c.log(ctx, s).Error(out.err, "an add-on was not brought in line")
				}
			}
		}
	}
	return outcomes, errors.Join(errs...)
}

// carryOut carries out one step, or several writes beside each other, and returns the outcome of each.
func (r *Reconciler) carryOut(ctx context.Context, c *cluster, steps []plan.Step) []outcome {
	if steps[0].Verb.Writes() {
		return r.write(ctx, c, steps)
	}
	return []outcome{r.step(ctx, c, steps[0])}
}

// step carries out a step that is no write.
func (r *Reconciler) step(ctx context.Context, c *cluster, s plan.Step) (out outcome) {
	switch s.Verb {
	case plan.Orphan, plan.HandOver:
		if out = c.announced[s.Key]; out.err == nil {
			out.err = r.remove(ctx, c, s, out.left)
		}
	case plan.Uninstall:
		out.err = r.remove(ctx, c, s, "")
	case plan.Suspend:
		out = r.suspend(ctx, c, s)
	case plan.Resume:
		out = r.resume(ctx, c, s)
	case plan.AwaitResume, plan.AwaitCluster:
		if o := c.Objects[s.Key]; o != nil {
			out.applied = o.Applied
		}
	case plan.Hold, plan.Ask, plan.AwaitDependants:
		out.applied = c.Objects[s.Key].Applied
		switch s.Meanwhile {
		case plan.Suspend:
			out = r.suspend(ctx, c, s)
		case plan.Resume:
			out = r.resume(ctx, c, s)
		}
	case plan.Keep:
		out.applied = c.Objects[s.Key].Applied
		out.err = r.keep(ctx, c, s)
	}
	return out
}

// log returns a logger that names the object of a step, and its set.
func (c *cluster) log(ctx context.Context, s plan.Step) logr.Logger {
	log := ctrl.LoggerFrom(ctx).WithValues(logkey.Addon, s.Addon, logkey.Object,
		fmt.Sprintf("%s %s/%s", s.Key.Kind, s.Key.Namespace, s.Key.Name))
	d, _ := c.Wanted(s.Key)
	if o := c.Objects[s.Key]; d == nil && o != nil {
		d = c.Delivery(s.Key.Namespace, o.Delivery)
	}
	if d == nil {
		return log // no delivery says whose it was
	}
	return log.WithValues(logkey.Set, d.SetKey().String())
}

// keep makes sure that the shared objects exist that an unchanged object refers to.
func (r *Reconciler) keep(ctx context.Context, c *cluster, s plan.Step) error {
	_, w := c.Wanted(s.Key)
	return r.ensure(ctx, c, w.Shared)
}

// need does the same for an object that is about to be written or resumed. It renders the object again if memory
// holds only its outline.
func (r *Reconciler) need(ctx context.Context, c *cluster, d *delivery, w *assembly.Wanted) error {
	if err := c.Complete(d, w); err != nil {
		r.memory.Drop(c.Key, client.ObjectKeyFromObject(d))
		return err
	}
	if err := c.MayRead(d.Namespace, w.Copies); err != nil {
		return err
	}
	return r.ensure(ctx, c, w.Shared)
}

// keepStays does the same for objects that stay as they are although something else is wanted, if both refer to the
// same shared objects. Another version of the hub made them, the removal guard holds them, or they wait to go on
// under another name.
func (r *Reconciler) keepStays(ctx context.Context, c *cluster) error {
	var errs []error
	for _, d := range c.Deliveries {
		if d.Result == nil {
			continue
		}
		var uses []string
		for k, o := range c.Objects {
			if k.Namespace == d.Namespace && o.Delivery == d.Name && !o.Deleting {
				uses = append(uses, o.Uses...)
			}
		}
		for i := range d.Result.Objects {
			used := func(s flux.Shared) bool { return slices.Contains(uses, sourceOf(s)) }
			if of := d.Result.Objects[i].Shared; slices.ContainsFunc(of, used) {
				errs = append(errs, r.ensure(ctx, c, of))
			}
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) ensure(ctx context.Context, c *cluster, of []flux.Shared) error {
	for i := range of {
		seen, err := r.Shared.Ensure(ctx, &of[i])
		if err != nil {
			return err
		}
		if !seen {
			r.memory.Forget(c.Key) // which does not keep what it refers to
			c.LookAgain(sharedobjects.Unseen)
		}
	}
	return nil
}

// remove deletes one object. Flux reads spec.suspend when it finalizes: if the object is suspended, Flux removes
// nothing from the cluster (kustomize-controller, finalize; helm-controller, reconcileDelete). So the hub first sets
// spec.suspend to what the step means, in a patch of its own, and then deletes the object.
func (r *Reconciler) remove(ctx context.Context, c *cluster, s plan.Step, left string) error {
	o, obj := c.Objects[s.Key], observed.NewObject(s.Key)
	if err := r.prepare(ctx, c, obj, s); err != nil {
		return client.IgnoreNotFound(err)
	}
	if o.Foreign {
		if err := r.dropChart(ctx, o); err != nil { // afterwards nothing would name the chart any more
			return errors.Join(fmt.Errorf("remove the HelmChart of %s %s: %w", s.Key.Kind, s.Key.Name, err), r.takeBack(ctx, c, s))
		}
	}
	r.ledger.Remove(s.Key, left, r.Clock.Now())
	r.expectations.Forget(c.Key)
	if o.Deleting {
		return r.unfinalize(ctx, c, s)
	}
	if err := r.delete(ctx, o, obj, s); err != nil {
		err = fmt.Errorf("delete %s %s: %w", s.Key.Kind, s.Key.Name, err)
		return client.IgnoreNotFound(errors.Join(err, r.takeBack(ctx, c, s)))
	}
	c.log(ctx, s).Info("deleted the Flux object of an add-on", "verb", string(s.Verb), "why", s.Reason)
	r.tellRemoval(ctx, c, s, o)
	return nil
}

// delete deletes an object as it was seen, or as prepare has left it. If its generation is still the same after a conflict, nothing but
// its status or its metadata has changed, and delete tries again: Flux answers a suspension with a write to the status, which often comes
// in between (kustomize-controller, finalizeStatus).
func (r *Reconciler) delete(ctx context.Context, o *observed.Object, obj client.Object, s plan.Step) error {
	generation := cmp.Or(obj.GetGeneration(), o.Generation)
	asPrepared := func(err error) bool {
		return apierrors.IsConflict(err) && r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj) == nil &&
			obj.GetUID() == o.UID && obj.GetGeneration() == generation
	}
	return retry.OnError(retry.DefaultRetry, asPrepared, func() error { return r.Client.Delete(ctx, obj, itself(o, obj, s)) })
}

// itself has a deletion be of the very object that was seen, which the removal guard grants, and not of one that took its name meanwhile.
// What is orphaned is deleted only as it was seen, or as prepare has left it: if a user has resumed it since, Flux would uninstall it.
func itself(o *observed.Object, prepared client.Object, s plan.Step) client.DeleteOption {
	var seen client.Preconditions
	if o.UID != "" {
		seen.UID = &o.UID
	}
	if version := cmp.Or(prepared.GetResourceVersion(), o.Version); version != "" && s.Verb != plan.Uninstall {
		seen.ResourceVersion = &version
	}
	return seen
}

// prepare suspends or resumes an object before it is deleted. An annotation says that the hub has suspended the object. Without that, an
// object that is to stay after all, because the hub died in between, would count as suspended by a user.
func (r *Reconciler) prepare(ctx context.Context, c *cluster, obj client.Object, s plan.Step) error {
	o, suspend := c.Objects[s.Key], s.Verb != plan.Uninstall
	if o.Suspended == suspend {
		return nil
	}
	if suspend && !o.Foreign {
		var answer *unstructured.Unstructured
		out := r.writeSuspend(ctx, c, s, func(u *unstructured.Unstructured) {
			answer = u
			suspended(o, u, hubv1.TakenOverSuspension)
		})
		obj.SetResourceVersion(answer.GetResourceVersion())
		obj.SetGeneration(answer.GetGeneration())
		return out.err
	}
	change := map[string]any{"spec": map[string]any{"suspend": suspend}}
	meta := map[string]any{}
	if o.UID != "" {
		meta["uid"] = o.UID
	}
	if o.Foreign {
		meta["annotations"] = map[string]any{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
	}
	if o.Deleting && !suspend {
		meta["resourceVersion"] = o.Version // if Flux is done with it, it has left that
	}
	change["metadata"] = meta
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(hubv1.SwitchFieldManager)); err != nil {
		return fmt.Errorf("suspend %s %s: %w", s.Key.Kind, s.Key.Name, err)
	}
	return nil
}

// tellRemoval sends an event for each object that goes, except for orphans, which tell reports. The event names the
// object as the related one. Events about one delivery that differ only in their text count as the same event, and
// keep the first text (client-go/tools/events).
func (r *Reconciler) tellRemoval(ctx context.Context, c *cluster, s plan.Step, o *observed.Object) {
	d := c.Delivery(s.Key.Namespace, o.Delivery)
	if s.Verb == plan.HandOver {
		d = c.deliveryOfAddon(s)
	}
	if d == nil {
		return
	}
	if s.Verb == plan.HandOver {
		r.Recorder.Eventf(d.AddonDelivery, observed.NewObject(s.Key), corev1.EventTypeNormal, hubv1.AddonTakenOverEvent, "Deliver",
			"%s %s/%s on cluster %s goes, and its workload stays: %s", s.Key.Kind, s.Key.Namespace, s.Key.Name, c.Key, s.Reason)
		return
	}
	if s.Verb == plan.Uninstall {
		about := r.about(ctx, c, d.AddonDelivery, s.Key.Namespace)
		r.Recorder.Eventf(about, observed.NewObject(s.Key), corev1.EventTypeNormal, hubv1.AddonRemovedEvent, "Remove",
			"uninstalling add-on %q from cluster %s", o.Addon, c.Key)
	}
}

// deliveryOfAddon returns the delivery that takes over what a step hands over.
func (c *cluster) deliveryOfAddon(s plan.Step) *delivery {
	d, _ := c.Wanted(s.To)
	return d
}
