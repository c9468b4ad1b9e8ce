// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// How fast clusters are resumed, over the whole hub: each one makes Flux reconcile all of its objects at once.
const (
	resumedPerSecond = 5
	resumedAtOnce    = 10
)

// suspend makes Flux leave an object alone, and notes that the hub asked for it. spec.suspend gets a field manager of
// its own. If another writer has set it before, it belongs to both, and stays when the hub gives it up (server-side
// apply's shared ownership).
func (r *Reconciler) suspend(ctx context.Context, c *cluster, s plan.Step) outcome {
	if goes, err := r.goes(ctx, s.Key); err != nil || goes {
		c.LookAgain(observed.Soon)
		return outcome{err: err, applied: c.Objects[s.Key].Applied}
	}
	return r.writeSuspend(ctx, c, s, func(u *unstructured.Unstructured) { suspended(c.Objects[s.Key], u, c.Suspended().Reason) })
}

// suspended fills in what the hub writes to suspend an object.
func suspended(o *observed.Object, u *unstructured.Unstructured, why string) {
	a := map[string]string{hubv1.SuspendedAnnotation: why}
	if m := o.MarkSuspended(); m != "" {
		a[hubv1.AppliedAsAnnotation] = m
	}
	u.SetAnnotations(a)
	u.Object["spec"] = map[string]any{"suspend": true}
}

// goes returns whether the hub has deleted an object already, which the cache may not show yet. If the hub suspended
// it now, Flux would not uninstall it, and no status would report that.
func (r *Reconciler) goes(ctx context.Context, k plan.Key) (bool, error) {
	if _, ours := r.ledger.WasRemoved(k); !ours {
		return false, nil
	}
	obj := observed.NewObject(k)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("look whether %s is being deleted: %w", k, err)
	}
	return obj.GetDeletionTimestamp() != nil, nil
}

// resume takes back what suspend wrote. Before that it makes the shared objects again that Flux will need: nothing did
// while the object was suspended. Over the whole hub, only so many clusters are resumed in a second. The others are
// requeued, and those of one namespace hold up no other (hasTurn). Only a cluster that has been resumed counts: what says that the hub
// keeps it suspended, and stays as it is when the hub gives that up, is not the hub's, and could take the turns of all other clusters.
func (r *Reconciler) resume(ctx context.Context, c *cluster, s plan.Step) outcome {
	if !c.mayResume && !r.hasTurn(c) {
		c.LookAgain(time.Second)
		return outcome{applied: c.Objects[s.Key].Applied}
	}
	if d, w := c.Wanted(s.Key); w != nil {
		if err := r.need(ctx, c, d, w); err != nil {
			return outcome{err: err}
		}
	}
	// Only as it was seen: if a user has deleted it while it was suspended, Flux has orphaned what it had applied, and spec.suspend is all
	// that tells.
	var answer *unstructured.Unstructured
	out := r.writeSuspend(ctx, c, s, func(u *unstructured.Unstructured) {
		o := c.Objects[s.Key]
		answer = u
		u.SetResourceVersion(o.Version)
		if m := o.MarkResumed(); m != "" {
			u.SetAnnotations(map[string]string{hubv1.AppliedAsAnnotation: m})
		}
	})
	if apierrors.IsConflict(out.err) {
		c.LookAgain(observed.Soon)
		out.err = nil
		return out
	}
	if _, held := answer.GetAnnotations()[hubv1.SuspendedAnnotation]; out.err == nil && !held && !c.mayResume {
		c.mayResume = true
		r.resumes.ReserveN(c.Now, 1) // others may have had theirs at this very moment: the next ones wait longer then
		r.shares.Take(c.Key.Namespace, c.Now)
	}
	return out
}

// hasTurn returns whether a cluster may be resumed now. A user who pauses and resumes clusters all the time takes turns of the whole
// hub: while clusters of other namespaces wait, those of one get their share and no more.
func (r *Reconciler) hasTurn(c *cluster) bool {
	if r.resumes.TokensAt(c.Now) >= 1 && r.shares.May(c.Key.Namespace, resumedPerSecond, c.Now) {
		return true
	}
	r.shares.Wait(c.Key.Namespace, c.Now)
	return false
}

// writeSuspend applies what fill says of spec.suspend. The object that fill got is then as the API server has it.
func (r *Reconciler) writeSuspend(ctx context.Context, c *cluster, s plan.Step, fill func(*unstructured.Unstructured)) outcome {
	o := c.Objects[s.Key]
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(flux.GroupVersionKind(s.Key.Kind))
	u.SetNamespace(s.Key.Namespace)
	u.SetName(s.Key.Name)
	u.SetUID(o.UID) // never make one that has gone meanwhile
	fill(u)
	verb := cmp.Or(s.Meanwhile, s.Verb)
	err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(hubv1.SwitchFieldManager),
		client.ForceOwnership)
	if err != nil {
		return outcome{err: client.IgnoreNotFound(fmt.Errorf("%s %s %s/%s: %w", verb, s.Key.Kind, s.Key.Namespace, s.Key.Name, err)),
			applied: o.Applied}
	}
	r.expectations.Expect(c.Key, s.Key.Kind, u, r.Clock.Now())
	c.log(ctx, s).Info("suspended or resumed the Flux object of an add-on", "verb", string(verb))
	// The generation after this write is the hub's own, but only if no other writer had edited the object before.
	if o.Generation <= o.Applied {
		r.ledger.Note(s.Key, u)
		return outcome{applied: u.GetGeneration()}
	}
	return outcome{applied: o.Applied}
}
