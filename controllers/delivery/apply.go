// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/team"
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
			if out.err != nil && !errors.Is(out.err, apply.ErrNotOwned) && !errors.Is(out.err, errNoMirror) &&
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
		if o := c.objects[s.Key]; o != nil {
			out.applied = o.Applied
		}
	case plan.Hold, plan.Ask, plan.AwaitDependants:
		out.applied = c.objects[s.Key].Applied
		switch s.Meanwhile {
		case plan.Suspend:
			out = r.suspend(ctx, c, s)
		case plan.Resume:
			out = r.resume(ctx, c, s)
		}
	case plan.Keep:
		out.applied = c.objects[s.Key].Applied
		out.err = r.keep(ctx, c, s)
	}
	return out
}

var errNoMirror = errors.New("the mirror of the kubeconfig, or of the workload identity, is not in place yet")

// noMirror says why an object cannot be made yet: there is no mirror in its namespace.
func (c *cluster) noMirror(namespace string) error {
	if by := c.unmirrored[namespace]; by != nil {
		return fmt.Errorf("%w: %s. Remove it", errNoMirror, by.Error()) // to be waited for, and no failure of an add-on
	}
	from := c.reach[namespace]
	if !from.ByTeam() {
		return errNoMirror
	}
	return fmt.Errorf("%w: it gets a token of Team %s/%s when AddonSet %q is Ready here", errNoMirror, from.Team.Namespace, from.Team.Name,
		team.SetName(from.Team.Name))
}

// mayWrite returns whether Flux could log in to the cluster for an object. For a Team nothing is made while its rights are
// withdrawn, as after a user has deleted their AddonSet: they may go in this very pass, and would not wait for it.
func (c *cluster) mayWrite(s plan.Step) bool {
	if rights := c.rights(s.Key.Namespace); s.Verb == plan.Create && rights != nil && rights.leaving {
		return false
	}
	return c.mirrored[s.Key.Namespace] || s.Verb != plan.Create && !c.reach[s.Key.Namespace].ByTeam()
}

// log returns a logger that names the object of a step, and its set.
func (c *cluster) log(ctx context.Context, s plan.Step) logr.Logger {
	log := ctrl.LoggerFrom(ctx).WithValues(logkey.Addon, s.Addon, logkey.Object,
		fmt.Sprintf("%s %s/%s", s.Key.Kind, s.Key.Namespace, s.Key.Name))
	d, _ := c.wanted(s.Key)
	if o := c.objects[s.Key]; d == nil && o != nil {
		d = c.delivery(s.Key.Namespace, o.delivery)
	}
	if d == nil {
		return log // no delivery says whose it was
	}
	return log.WithValues(logkey.Set, d.SetKey().String())
}

// keep makes sure that the shared objects exist that an unchanged object refers to.
func (r *Reconciler) keep(ctx context.Context, c *cluster, s plan.Step) error {
	_, w := c.wanted(s.Key)
	return r.ensure(ctx, c, w.Shared)
}

// need does the same for an object that is about to be written or resumed. It renders the object again if memory
// holds only its outline.
func (r *Reconciler) need(ctx context.Context, c *cluster, d *delivery, w *assembly.Wanted) error {
	if err := c.complete(d, w); err != nil {
		r.memory.drop(client.ObjectKeyFromObject(d))
		return err
	}
	if err := d.mayRead(w.Copies); err != nil {
		return err
	}
	return r.ensure(ctx, c, w.Shared)
}

// keepStays does the same for objects that stay as they are although something else is wanted, if both refer to the
// same shared objects. Another version of the hub made them, the removal guard holds them, or they wait to go on
// under another name.
func (r *Reconciler) keepStays(ctx context.Context, c *cluster) error {
	var errs []error
	for _, d := range c.deliveries {
		if d.result == nil {
			continue
		}
		var uses []string
		for k, o := range c.objects {
			if k.Namespace == d.Namespace && o.delivery == d.Name && !o.Deleting {
				uses = append(uses, o.uses...)
			}
		}
		for i := range d.result.Objects {
			used := func(s render.Shared) bool { return slices.Contains(uses, sourceOf(s)) }
			if of := d.result.Objects[i].Shared; slices.ContainsFunc(of, used) {
				errs = append(errs, r.ensure(ctx, c, of))
			}
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) ensure(ctx context.Context, c *cluster, of []render.Shared) error {
	for i := range of {
		seen, err := r.Shared.Ensure(ctx, &of[i])
		if err != nil {
			return err
		}
		if !seen {
			r.memory.forget(c.key) // which does not keep what it refers to
			c.lookAgain(sharedobjects.Unseen)
		}
	}
	return nil
}

// wanted returns the delivery that wants an object, and what it wants.
func (c *cluster) wanted(k plan.Key) (*delivery, *assembly.Wanted) {
	for _, d := range c.deliveries {
		for i := range d.Wanted {
			if assembly.Key(&d.Wanted[i].Object) == k {
				return d, &d.Wanted[i]
			}
		}
	}
	return nil, nil
}

// errOtherwise says that a ConfigMap or Secret has changed since the outline of an object was planned with. What comes of it now is not
// written: the removal guard has not been asked about that, and it would be noted as what was planned. It is a conflict, so it is tried
// again.
func errOtherwise(w *assembly.Wanted) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: w.Kind}, w.Name, errors.New("what it is rendered from has changed meanwhile"))
}

// complete renders an object again if memory holds only its outline.
func (c *cluster) complete(d *delivery, w *assembly.Wanted) error {
	if w.Object.Object != nil {
		return nil
	}
	whole, err := d.whole()
	if err != nil {
		return err
	}
	for i := range whole.Objects {
		if o := &whole.Objects[i]; o.Addon == w.Addon {
			if !w.Complete(o) {
				return errOtherwise(w)
			}
			return nil
		}
	}
	return fmt.Errorf("add-on %q does not render any more", w.Addon)
}

// remove deletes one object. Flux reads spec.suspend when it finalizes: if the object is suspended, Flux removes
// nothing from the cluster (kustomize-controller, finalize; helm-controller, reconcileDelete). So the hub first sets
// spec.suspend to what the step means, in a patch of its own, and then deletes the object.
func (r *Reconciler) remove(ctx context.Context, c *cluster, s plan.Step, left string) error {
	o, obj := c.objects[s.Key], newObject(s.Key)
	if err := r.prepare(ctx, c, obj, s); err != nil {
		return client.IgnoreNotFound(err)
	}
	if o.Foreign {
		if err := r.dropChart(ctx, o); err != nil { // afterwards nothing would name the chart any more
			return errors.Join(fmt.Errorf("remove the HelmChart of %s %s: %w", s.Key.Kind, s.Key.Name, err), r.takeBack(ctx, c, s))
		}
	}
	r.ledger.remove(s.Key, left, r.Clock.Now())
	r.expectations.Forget(c.key)
	if o.Deleting {
		return r.unfinalize(ctx, c, s)
	}
	if err := r.Client.Delete(ctx, obj, o.itself(obj, s)); err != nil {
		err = fmt.Errorf("delete %s %s: %w", s.Key.Kind, s.Key.Name, err)
		return client.IgnoreNotFound(errors.Join(err, r.takeBack(ctx, c, s)))
	}
	c.log(ctx, s).Info("deleted the Flux object of an add-on", "verb", string(s.Verb), "why", s.Reason)
	r.tellRemoval(ctx, c, s, o)
	return nil
}

// itself has a deletion be of the very object that was seen, which the removal guard grants, and not of one that took its name meanwhile.
// What is orphaned is deleted only as it was seen, or as prepare has left it: if a user has resumed it since, Flux would uninstall it.
func (o *object) itself(prepared client.Object, s plan.Step) client.DeleteOption {
	var seen client.Preconditions
	if o.uid != "" {
		seen.UID = &o.uid
	}
	if version := cmp.Or(prepared.GetResourceVersion(), o.version); version != "" && s.Verb != plan.Uninstall {
		seen.ResourceVersion = &version
	}
	return seen
}

// prepare suspends or resumes an object before it is deleted. An annotation says that the hub has suspended the object. Without that, an
// object that is to stay after all, because the hub died in between, would count as suspended by a user.
func (r *Reconciler) prepare(ctx context.Context, c *cluster, obj client.Object, s plan.Step) error {
	o, suspend := c.objects[s.Key], s.Verb != plan.Uninstall
	if o.Suspended == suspend {
		return nil
	}
	if suspend && !o.Foreign {
		var answer *unstructured.Unstructured
		out := r.writeSuspend(ctx, c, s, func(u *unstructured.Unstructured) {
			answer = u
			o.suspended(u, hubv1.TakenOverSuspension)
		})
		obj.SetResourceVersion(answer.GetResourceVersion())
		return out.err
	}
	change := map[string]any{"spec": map[string]any{"suspend": suspend}}
	meta := map[string]any{}
	if o.uid != "" {
		meta["uid"] = o.uid
	}
	if o.Foreign {
		meta["annotations"] = map[string]any{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
	}
	if o.Deleting && !suspend {
		meta["resourceVersion"] = o.version // if Flux is done with it, it has left that
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
func (r *Reconciler) tellRemoval(ctx context.Context, c *cluster, s plan.Step, o *object) {
	d := c.delivery(s.Key.Namespace, o.delivery)
	if s.Verb == plan.HandOver {
		d = c.deliveryOfAddon(s)
	}
	if d == nil {
		return
	}
	if s.Verb == plan.HandOver {
		r.Recorder.Eventf(d.AddonDelivery, newObject(s.Key), corev1.EventTypeNormal, hubv1.AddonTakenOverEvent, "Deliver",
			"%s %s/%s on cluster %s goes, and its workload stays: %s", s.Key.Kind, s.Key.Namespace, s.Key.Name, c.key, s.Reason)
		return
	}
	if s.Verb == plan.Uninstall {
		r.Recorder.Eventf(r.about(ctx, c, d, s.Key.Namespace), newObject(s.Key), corev1.EventTypeNormal, hubv1.AddonRemovedEvent, "Remove",
			"uninstalling add-on %q from cluster %s", o.Addon, c.key)
	}
}

// deliveryOfAddon returns the delivery that takes over what a step hands over.
func (c *cluster) deliveryOfAddon(s plan.Step) *delivery {
	d, _ := c.wanted(s.To)
	return d
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
