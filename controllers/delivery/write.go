// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
)

// together returns how many of the first steps are carried out at the same time: one, or as many writes as come in a row, at the most so
// many. Most of what it takes to write an object is the API server's answer, and an add-on's objects do not depend on each other there:
// what does, the plan lets wait.
func together(steps []plan.Step, most int) int {
	n := 0
	for n < len(steps) && n < most && steps[n].Verb.Writes() {
		n++
	}
	return max(n, 1)
}

// written is an object that is to be written.
type written struct {
	step plan.Step
	d    *delivery
	w    *assembly.Wanted
	// there is the object as it is, nil if there is none.
	there *observed.Object
	obj   *unstructured.Unstructured
}

// write creates or updates objects, beside each other, after the shared objects that they refer to.
func (r *Reconciler) write(ctx context.Context, c *cluster, steps []plan.Step) []outcome {
	outcomes, objects := make([]outcome, len(steps)), make([]*written, len(steps))
	for i, s := range steps {
		objects[i], outcomes[i] = r.draw(ctx, c, s)
	}
	var sends errgroup.Group
	for i, o := range objects {
		if o != nil {
			sends.Go(func() error {
				outcomes[i] = r.send(ctx, c, o)
				return nil // each has an outcome of its own
			})
		}
	}
	_ = sends.Wait()
	for i, o := range objects {
		if o == nil || outcomes[i].err != nil {
			continue
		}
		if o.there != nil && o.there.Held && c.Suspended() == nil {
			c.LookAgain(observed.Soon) // it is resumed next, and no event tells of a write that changed nothing
		}
		c.log(ctx, o.step).Info("wrote the Flux object of an add-on", "verb", string(o.step.Verb))
	}
	return outcomes
}

// draw makes all ready to write an object. It returns nil with the outcome if the object is not to be written now.
func (r *Reconciler) draw(ctx context.Context, c *cluster, s plan.Step) (*written, outcome) {
	if !c.MayWrite(s) {
		return nil, outcome{err: c.NoCopy(s.Key.Namespace)}
	}
	d, w := c.Wanted(s.Key)
	if err := r.need(ctx, c, d, w); err != nil {
		return nil, outcome{err: err}
	}
	o := &written{step: s, d: d, w: w, there: c.Objects[s.Key], obj: w.Manifest()}
	if there := o.there; there != nil && !there.Foreign {
		if err := r.tellOvertaken(ctx, c, d, w, there); err != nil {
			return nil, outcome{err: err, applied: there.Applied}
		}
		mark(o.obj, w, &there.Observed)
	}
	return o, outcome{}
}

// send writes an object, and notes that it did. Several run at the same time.
func (r *Reconciler) send(ctx context.Context, c *cluster, o *written) outcome {
	obj, err := r.put(ctx, c, o)
	if err != nil {
		return outcome{err: err}
	}
	r.ledger.Note(o.step.Key, obj)
	r.expectations.Expect(c.Key, o.step.Key.Kind, obj, r.Clock.Now())
	return outcome{applied: obj.GetGeneration()}
}

func (r *Reconciler) put(ctx context.Context, c *cluster, o *written) (client.Object, error) {
	if o.step.Verb == plan.Update && o.there.Foreign {
		return r.takeIn(ctx, o)
	}
	if o.step.Verb == plan.Update {
		o.obj.SetUID(o.there.UID) // never make one that has gone meanwhile
		return apply.Update(ctx, r.Client, o.obj, hubv1.FieldManager)
	}
	key := identity.ClusterKey(r.Config.HubID, c.Key)
	if err := apply.FreeFor(ctx, r.Client, client.ObjectKeyFromObject(o.obj), observed.NewObject(o.step.Key), key); err != nil {
		return nil, fmt.Errorf("%s %w", o.step.Key.Kind, err)
	}
	return apply.Create(ctx, r.Client, r.Live, o.obj, hubv1.FieldManager, func(there client.Object) bool {
		return there.GetLabels()[hubv1.ClusterKeyLabel] == key
	})
}

// mark notes on a Kustomization what it has applied, if it is to apply something else from now on.
func mark(o *unstructured.Unstructured, w *assembly.Wanted, there *plan.Observed) {
	want := planned.Desired(w)
	if m := want.Mark(there); m != "" {
		a := o.GetAnnotations()
		a[hubv1.AppliedAsAnnotation] = m
		o.SetAnnotations(a)
	}
}
