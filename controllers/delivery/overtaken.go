// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// warnLeft sends an event that an add-on has left something on a cluster. k is its Flux object, and action is what
// the hub was doing.
func (r *Reconciler) warnLeft(ctx context.Context, c *cluster, d *delivery, k plan.Key, action, format string, args ...any) {
	about := r.about(ctx, c, d, k.Namespace)
	r.Recorder.Eventf(about, newObject(k), corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, action, format, args...)
}

// tellOvertaken sends an event about a Kustomization that is about to get another folder or place before Flux has
// succeeded with the present one. Flux may have applied some of it, and has recorded nothing of it. It reads live,
// because Flux may have succeeded since.
func (r *Reconciler) tellOvertaken(ctx context.Context, c *cluster, d *delivery, w *assembly.Wanted, o *object) error {
	if want := desired(w); !want.Moves(&o.Observed) || o.AppliedAs == "" && o.state.Version != "" {
		return nil
	}
	k := &kustomizev1.Kustomization{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: o.Key.Namespace, Name: o.Key.Name}, k); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("look what Flux has applied of %s: %w", o.Key, err))
	}
	s := fluxstate.Of(k)
	tried := plan.ReadMark(o.Mark, s.ReadyGeneration) == "" && plan.ReadMark(o.Mark, r.sightings.succeeded(k)) != ""
	if tried || fluxstate.Unnoted(k) != "" || fluxstate.FirstTry(k) {
		r.warnLeft(ctx, c, d, o.Key, "Deliver",
			"add-on %q (%s %q) may leave something on cluster %s: it gets another folder or namespace, and Flux has not succeeded "+
				"with the one before. It has noted nothing of what it "+
				"tried there; its last message: %s", o.Addon, o.Key.Kind, o.Key.Name, c.key, lastWords(s))
	}
	return nil
}
