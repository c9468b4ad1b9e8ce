// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// The hub puts a finalizer on each Flux object. So whoever deletes the object, it does not go before the hub has seen
// what Flux has left of it on the cluster. When Flux has taken its own finalizer off, the object is finished, and its
// status says what is left. The object then goes at once if nothing is left. Otherwise it goes when another object
// has taken over what is left, or when the hub has reported that.

// look notes what a finished object has left. It reads live, because the cache keeps no inventories.
func (r *Reconciler) look(ctx context.Context, o *object) error {
	if !o.Finished {
		return nil
	}
	obj := newObject(o.Key)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read what %s leaves on the cluster: %w", o.Key, err)
	} else if err != nil || obj.GetUID() != o.uid {
		return nil
	}
	noted, tried, never := fluxstate.Remains(obj)
	o.Left = o.Leaves(noted, tried, never, o.inherited)
	return nil
}

// inherited returns what was on the cluster when an object was made, as InheritedAnnotation says it.
func inherited(a map[string]string) []string {
	var out []string
	if json.Unmarshal([]byte(a[hubv1.InheritedAnnotation]), &out) != nil {
		return nil // somebody has edited it
	}
	return out
}

// inherit notes on an object what is already on the cluster and it is to go on with, and reports what it does not go
// on with.
func (r *Reconciler) inherit(ctx context.Context, c *cluster, d *delivery, w *assembly.Wanted, o *unstructured.Unstructured,
	there *object, left []string) (goesOn []string) {
	want := desired(w)
	for _, what := range left {
		if slices.Contains(want.Has(), what) {
			goesOn = append(goesOn, what)
		}
	}
	other := there.Finished && there.Key.Kind == fluxspec.KustomizationKind && there.Hash != w.Hash // its source may be another one
	if len(goesOn) < len(left) || len(left) > 0 && other {
		r.tellLeft(ctx, c, d, there, left,
			"it is made as its AddonSet wants it now, and goes on with what has the same Helm release, or is the same object")
	}
	if raw, err := json.Marshal(goesOn); err == nil && len(goesOn) > 0 {
		a := o.GetAnnotations()
		a[hubv1.InheritedAnnotation] = string(raw)
		o.SetAnnotations(a)
	}
	return goesOn
}

// FluxTakes is how long Flux may take to remove its finalizer from a suspended object. It has nothing else to do
// then.
const FluxTakes = 10 * time.Second

// unfinalize takes finalizers off an object that is being deleted: the hub's, when Flux has finished; and Flux's, if
// the object is let go and Flux does not take its finalizer off. A worker that was reconciling the object when its
// cluster stopped answering may be blocked by that cluster for minutes, or for ever, and no other worker may
// reconcile the object meanwhile. Flux would do the same, since the object is suspended. What that worker does when
// the cluster answers again nobody can prevent, so it is said (begun). An object that is being uninstalled is left to
// Flux.
func (r *Reconciler) unfinalize(ctx context.Context, c *cluster, s plan.Step) error {
	o := c.objects[s.Key]
	var off []string
	switch {
	case o.Finished && s.Verb != plan.HandOver:
		off = []string{hubv1.FluxObjectFinalizer}
	case o.Finished || s.Verb != plan.LetGo && s.Verb != plan.HandOver:
		return nil
	case r.Clock.Since(o.deleted) < FluxTakes:
		c.lookAgain(FluxTakes - r.Clock.Since(o.deleted))
		return nil
	default:
		off = []string{fluxstate.Finalizer} // which makes it finished, and that is looked at
	}
	_, err := r.takeOff(ctx, o, off...)
	return err
}

// last returns whether this is the last that is seen of an object that is let go: Flux has finished with it, or an
// older hub made it, without a finalizer.
func (o *object) last() bool {
	return o.Finished || !o.Deleting && !slices.Contains(o.finalizers, hubv1.FluxObjectFinalizer)
}

// takeOff takes finalizers off an object, and returns whether the object is gone then.
func (r *Reconciler) takeOff(ctx context.Context, o *object, finalizers ...string) (gone bool, err error) {
	obj := newObject(o.Key)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return true, client.IgnoreNotFound(fmt.Errorf("read %s: %w", o.Key, err))
	}
	if obj.GetUID() != o.uid {
		return false, nil // another one took its name meanwhile
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, obj, finalizers...); err != nil {
		return false, fmt.Errorf("take finalizers off %s: %w", o.Key, err)
	}
	return len(obj.GetFinalizers()) == 0, nil
}

// bequeath notes on a finished object which object is to go on with what it has left.
func (r *Reconciler) bequeath(ctx context.Context, c *cluster, s plan.Step) error {
	o := c.objects[s.Key]
	if o.Heir == s.To {
		return nil
	}
	obj := newObject(s.Key)
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, o.uid, hubv1.HeirAnnotation, s.To)
	if err := r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(hubv1.SuspendFieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("note who takes over from %s: %w", s.Key, err))
	}
	c.lookAgain(soon) // no event tells of an annotation
	return nil
}

// tellLeft sends an event about what a deleted object has left, if the object that is made in its place may not go on
// with it.
func (r *Reconciler) tellLeft(ctx context.Context, c *cluster, d *delivery, o *object, left []string, next string) {
	r.warnLeft(ctx, c, d, o.Key, "Remove", "add-on %q (%s %q) has left %s on cluster %s, with its namespaces and CRDs: its "+
		"Flux object was deleted, and Flux has not removed that; %s",
		o.Addon, o.Key.Kind, o.Key.Name, nameLeft(left), c.key, next)
}

// tellStray says what a finished object has left that may not be the hub's, before it loses the hub's finalizer: the hub may have made it
// in a namespace of a Team, or of the platform, that is none any more. The event is in the object's own namespace: whoever has forged
// the object tells himself.
func (r *Reconciler) tellStray(ctx context.Context, c *cluster, obj client.Object) error {
	there := obj.DeepCopyObject().(client.Object)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), there); err != nil || there.GetUID() != obj.GetUID() {
		return client.IgnoreNotFound(err)
	}
	if noted, tried, _ := fluxstate.Remains(there); noted || tried {
		r.Recorder.Eventf(there, nil, corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
			"add-on %q (%s) stays on cluster %s: its Flux object was deleted, Flux has not removed it, and the hub delivers nothing from "+
				"this namespace to that cluster", obj.GetLabels()[hubv1.AddonLabel], obj.GetName(), c.key)
	}
	return nil
}

// nameLeft names what an object has left.
func nameLeft(left []string) string {
	releases := slices.DeleteFunc(slices.Clone(left), func(t string) bool { return !strings.HasPrefix(t, plan.ReleasePrefix) })
	return cmp.Or(strings.Join(releases, ", "), "what it applied")
}

// owed says what an object is to go on with that Flux has not noted yet; "" for nothing. If the object were deleted
// now, Flux would leave that behind.
func (c *cluster) owed(o *object) string {
	if o.Noted {
		return ""
	}
	for k, p := range c.objects {
		if p.Finished && p.Heir == o.Key && len(p.Left) > 0 {
			return "what " + k.String() + " had left"
		}
	}
	if len(o.inherited) > 0 {
		return "what is there of it already"
	}
	return ""
}

// between returns whether an add-on of a delivery is about to go on with what another object has left.
func (c *cluster) between(from func(*object) bool) bool {
	for _, o := range c.objects {
		if o.Finished && len(o.Left) > 0 && from(o) {
			return true
		}
	}
	return false
}
