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

// A Flux object has a finalizer of the hub. So whoever deletes it, and however it stands then, it does not go before
// the hub has seen what Flux has left of it on the cluster: when Flux is done with an object, it is finished, and
// says so itself. It then goes at once, or when another object has taken over what it has left, or when that has been
// told.

// look notes what a finished object has left. It reads live: the cache keeps no inventories.
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

// inherited is what an object was made on top of, as InheritedAnnotation says it.
func inherited(a map[string]string) []string {
	var out []string
	if json.Unmarshal([]byte(a[hubv1.InheritedAnnotation]), &out) != nil {
		return nil // somebody has edited it
	}
	return out
}

// inherit notes on an object what is there already that it is to go on with, and tells of what it does not go on with.
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

// FluxTakes is how long Flux may take to let an object go that it is to leave alone: it has nothing to do but to take off its
// finalizer.
const FluxTakes = 10 * time.Second

// unfinalize takes finalizers off an object that is being deleted: the hub's, when Flux is done with it; and Flux's,
// if it is let go, and Flux does not take that off: a worker that was at work on it when its cluster fell silent may
// be held by that cluster for minutes, or for as long as it lives, and nobody else may look at the object then. Flux
// would do just the same, since the object is suspended. An object that is being uninstalled is left to Flux.
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

// last returns whether an object that is let go is not seen again after this: Flux is done with it, or an older hub
// has made it, without a finalizer.
func (o *object) last() bool {
	return o.Finished || !o.Deleting && !slices.Contains(o.finalizers, hubv1.FluxObjectFinalizer)
}

// takeOff takes finalizers off an object, and returns whether it is gone by that.
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

// bequeath notes on a finished object who is to go on with what it has left.
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

// tellLeft sends an event about what a deleted object has left, which its next one may not go on with.
func (r *Reconciler) tellLeft(ctx context.Context, c *cluster, d *delivery, o *object, left []string, next string) {
	r.warnLeft(ctx, c, d, o.Key, "Remove", "add-on %q (%s %q) has left %s on cluster %s, with its namespaces and CRDs: its "+
		"Flux object was deleted, and Flux has not removed that; %s",
		o.Addon, o.Key.Kind, o.Key.Name, nameLeft(left), c.key, next)
}

// nameLeft names what an object has left.
func nameLeft(left []string) string {
	releases := slices.DeleteFunc(slices.Clone(left), func(t string) bool { return !strings.HasPrefix(t, plan.ReleasePrefix) })
	return cmp.Or(strings.Join(releases, ", "), "what it applied")
}

// owed says what of the cluster an object is to go on with, if Flux has noted nothing of it yet: then Flux would
// leave it behind; "" for nothing.
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
func (c *cluster) between(heir func(plan.Key) bool) bool {
	for _, o := range c.objects {
		if o.Finished && len(o.Left) > 0 && heir(o.Heir) {
			return true
		}
	}
	return false
}
