// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// vanished returns whether somebody else has deleted the Flux object of an add-on while it was suspended: Flux removes nothing then. a is
// how the add-on was last reported.
func (r *Reconciler) vanished(c *cluster, d *delivery, a hubv1.AddonStatus) bool {
	if a.Object == "" || !teardown.Vanished(a) {
		return false
	}
	k := plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}
	_, ours := r.ledger.wasRemoved(k)
	o := c.objects[k]
	return !ours && (o == nil || o.isLetGo())
}

// tellLeft sends an event that something of an add-on is left on a cluster. k is the Flux object that it is of, and action what the hub was at.
func (r *Reconciler) tellLeft(ctx context.Context, c *cluster, d *delivery, k plan.Key, action, format string, args ...any) {
	r.Recorder.Eventf(r.about(ctx, c, d), newObject(k), corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, action, format, args...)
}

// tellVanished sends an event about an add-on whose object has vanished, and whose next one, if there is one, may not go on with what it has left.
// That is known by its status alone, which is about to forget it.
func (r *Reconciler) tellVanished(ctx context.Context, c *cluster, d *delivery, a hubv1.AddonStatus, next string) {
	r.tellLeft(ctx, c, d, plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}, "Remove",
		"add-on %q (%s %q) has left %s on cluster %s, with its namespaces and CRDs: its Flux object was deleted %s, and Flux removes nothing then; %s",
		a.Name, a.Kind, a.Object, nameLeft(a), c.key, when(a), next)
}

// when says when the object of an add-on was deleted that has vanished.
func when(a hubv1.AddonStatus) string {
	if a.Suspended || len(a.OnCluster) == 0 {
		return "while it was suspended"
	}
	return "before Flux had noted what is there of it"
}

// nameLeft names what an add-on has left whose object has vanished.
func nameLeft(a hubv1.AddonStatus) string {
	releases := slices.DeleteFunc(slices.Clone(a.OnCluster), func(t string) bool { return !strings.HasPrefix(t, plan.ReleasePrefix) })
	return cmp.Or(strings.Join(releases, ", "), "what it applied")
}

// tellHalfMoved sends an event about a Kustomization that is uninstalled after Flux has failed with a new folder or place: it removes what it had
// applied before, and has noted nothing of what it tried since.
func (r *Reconciler) tellHalfMoved(ctx context.Context, c *cluster, s plan.Step, o *object) {
	d := c.delivery(s.Key.Namespace, o.delivery)
	if d == nil || s.Verb != plan.Uninstall || o.AppliedAs == "" {
		return
	}
	r.tellLeft(ctx, c, d, s.Key, "Remove",
		"add-on %q (%s %q) may leave something on cluster %s: it was given another folder or namespace, and Flux has not succeeded with that. Flux removes what it had applied before, "+
			"and has noted nothing of what it tried since; its last message: %s",
		s.Addon, s.Key.Kind, s.Key.Name, c.key, cmp.Or(excerpt.Of(o.state.Message, status.MaxNote), "none"))
}

// tellOvertaken sends an event about a Kustomization that is about to get another folder or place before Flux has succeeded with the one that it has: Flux
// may have applied some of that, and has noted nothing of it. It looks live: what has succeeded meanwhile is noted.
func (r *Reconciler) tellOvertaken(ctx context.Context, c *cluster, d *delivery, w *assembly.Wanted, o *object) error {
	if want := desired(w); !want.Moves(&o.Observed) || o.AppliedAs == "" && o.state.Version != "" {
		return nil
	}
	k := &kustomizev1.Kustomization{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: o.Key.Namespace, Name: o.Key.Name}, k); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("look what Flux has applied of %s: %w", o.Key, err))
	}
	s := fluxstate.Of(k)
	tried := plan.ReadMark(o.Mark, s.ReadyGeneration) == "" && plan.ReadMark(o.Mark, succeeded(k)) != ""
	if tried || fluxstate.Unnoted(k) != "" || fluxstate.FirstTry(k) {
		r.tellLeft(ctx, c, d, o.Key, "Deliver",
			"add-on %q (%s %q) may leave something on cluster %s: it gets another folder or namespace, and Flux has not succeeded with the one before. It has noted nothing of what it "+
				"tried there; its last message: %s", o.Addon, o.Key.Kind, o.Key.Name, c.key, cmp.Or(excerpt.Of(s.Message, status.MaxNote), "none"))
	}
	return nil
}

// onCluster returns what the status is to say of an add-on that is on the cluster, and that no Flux object would remove if it went now. a is the rest of
// what it is to say.
func (c *cluster) onCluster(d *delivery, a hubv1.AddonStatus) []string {
	k := plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}
	o, before := c.objects[k], was(d, a.Name)
	if before.Kind != a.Kind || before.Object != a.Object {
		before.OnCluster = nil
	}
	a.OnCluster = nil
	switch {
	case a.State == hubv1.AddonOrphaned: // it was told of
		return nil
	case o == nil:
		if by, w := c.wanted(k); by == d && a.AppliedGeneration > 0 { // it has just been made
			want := desired(w)
			return common(before.OnCluster, want.Has())
		}
		return before.OnCluster
	case o.state.Version == "" && k.Kind == fluxspec.KustomizationKind && fluxstate.MayHaveApplied(o.state):
		return o.Has()
	case o.state.Version == "":
		return common(before.OnCluster, o.Has())
	case teardown.Vanished(a):
		return o.Has()
	}
	return nil
}

// common returns what is in both lists.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// without returns what is in the first list alone.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// tellLeftBehind tells of an add-on, before its object is made or brought in line, what is on the cluster of it that Flux has not noted of that object, and that the
// object does not go on with. What a Kustomization goes on with is not known if its set has changed since: its source may be another one.
func (r *Reconciler) tellLeftBehind(ctx context.Context, c *cluster, d *delivery, w *assembly.Wanted) {
	a, want := was(d, w.Addon), desired(w)
	left := without(a.OnCluster, want.Has())
	switch o := c.objects[want.Key]; {
	case o == nil:
		unknown := len(a.OnCluster) == 0 || a.Kind == fluxspec.KustomizationKind
		if !r.vanished(c, d, a) || len(left) == 0 && !(unknown && d.before.Status.ObservedRevision != d.Spec.RevisionName) {
			return
		}
	case len(left) == 0 || o.state.Version != "" || a.Kind != want.Key.Kind || a.Object != want.Key.Name:
		return
	}
	a.OnCluster = left
	r.tellVanished(ctx, c, d, a, "it is made again as its AddonSet wants it now, and goes on with what has the same Helm release, or is the same object")
}

// tellReplaced tells of add-ons whose object has vanished, or for which another one was let go that they never took over, and in whose entry the status is
// about to say something else: it has another object now, or none since another set has its name, or since it does not come out.
func (r *Reconciler) tellReplaced(ctx context.Context, c *cluster, d *delivery) {
	for _, now := range d.Status.Addons {
		a := was(d, now.Name)
		if left := c.neverTaken(d, a); len(left) > 0 && now.Object == "" && len(now.TakesOver) == 0 && now.State != hubv1.AddonOrphaned {
			r.tellLeft(ctx, c, d, plan.ParseKey(left[0]), "Remove",
				"add-on %q has left on cluster %s what %s had applied, with its namespaces and CRDs: that was let go for it, and this set does not deliver it there any more",
				a.Name, c.key, strings.Join(left, ", "))
			continue
		}
		if !r.vanished(c, d, a) {
			continue
		}
		if now.Kind == a.Kind && now.Object == a.Object {
			if now.State == hubv1.AddonFailed && c.objects[plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}] == nil && (a.State != now.State || a.AppliedGeneration > 0) {
				r.tellVanished(ctx, c, d, a, "it does not come out here now, and is made again when it does")
			}
			continue
		}
		if k := (plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}); !slices.Contains(now.TakesOver, k.String()) {
			r.tellVanished(ctx, c, d, a, fmt.Sprintf("its AddonSet has %s %s now", now.Kind, now.Object))
		}
	}
}

// neverTaken returns what was let go for an add-on that has never come to take it over, but for what its delivery makes again.
func (c *cluster) neverTaken(d *delivery, a hubv1.AddonStatus) []string {
	return slices.DeleteFunc(slices.Clone(a.TakesOver), func(k string) bool {
		by, _ := c.wanted(plan.ParseKey(k))
		return by == d || !slices.Contains(d.lost, k) && !slices.Contains(d.going, k)
	})
}

// tellForgotten tells of what a delivery's status alone remembers, before the delivery goes, and is perhaps made again without it. It looks live: whoever
// deletes a delivery may have deleted its objects a moment ago.
func (r *Reconciler) tellForgotten(ctx context.Context, c *cluster, d *delivery) error {
	for _, a := range d.Status.Addons {
		k := plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object}
		if b, ok := d.between(a); ok && b.State == hubv1.AddonOrphaned && c.objects[k] == nil {
			r.tellLeft(ctx, c, d, k, "Remove", "add-on %q has left something on cluster %s: %s", a.Name, c.key, b.Message)
			continue
		}
		if _, ours := r.ledger.wasRemoved(k); ours || a.Object == "" || !teardown.Vanished(a) {
			continue
		}
		obj := newObject(k)
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look for %s, which add-on %q has been delivered by: %w", k, a.Name, err)
		}
		if s := fluxstate.Of(obj); err != nil || s.Deleting && s.Suspended || s.Version == "" && len(a.OnCluster) > 0 {
			r.tellVanished(ctx, c, d, a, "its AddonDelivery was deleted as well; if that is made again, it goes on with what its AddonSet still wants there")
		}
	}
	return nil
}
