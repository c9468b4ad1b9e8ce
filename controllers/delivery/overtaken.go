// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// warnLeft sends an event that an add-on has left something on a cluster. k is its Flux object, and action is what
// the hub was doing.
func (r *Reconciler) warnLeft(ctx context.Context, c *cluster, d *delivery, k plan.Key, action, format string, args ...any) {
	var of *hubv1.AddonDelivery
	if d != nil {
		of = d.AddonDelivery
	}
	about := r.about(ctx, c, of, k.Namespace)
	r.Recorder.Eventf(about, observed.NewObject(k), corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, action, format, args...)
}

// tellOvertaken sends an event about a Kustomization that is about to get another folder or place before Flux has
// succeeded with the present one. Flux may have applied some of it, and has recorded nothing of it. It reads live,
// because Flux may have succeeded since.
func (r *Reconciler) tellOvertaken(ctx context.Context, c *cluster, d *delivery, w *assembly.Wanted, o *observed.Object) error {
	if want := planned.Desired(w); !want.Moves(&o.Observed) || o.AppliedAs == "" && o.State.Version != "" {
		return nil
	}
	k := &kustomizev1.Kustomization{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: o.Key.Namespace, Name: o.Key.Name}, k); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("look what Flux has applied of %s: %w", o.Key, err))
	}
	if r.triedAnew(o, k) || fluxstate.Unnoted(k) != "" || fluxstate.FirstTry(k) {
		r.tellTried(ctx, c, d, o, k, "Deliver", "it gets another folder or namespace")
	}
	return nil
}

// triedAnew returns whether Flux may have tried the new folder or namespace of a Kustomization, and has not succeeded with it: what it says
// last is of a later generation than its last success. The mark does not tell, since each suspension raises its generation.
func (r *Reconciler) triedAnew(o *observed.Object, k *kustomizev1.Kustomization) bool {
	succeeded := r.sightings.Succeeded(k)
	return plan.ReadMark(o.Mark, succeeded) != "" && fluxstate.Of(k).ReadyGeneration > succeeded
}

// tellTried sends an event about what Flux may have applied of a Kustomization and has not recorded. happens is what happens to it now.
func (r *Reconciler) tellTried(ctx context.Context, c *cluster, d *delivery, o *observed.Object, k *kustomizev1.Kustomization,
	action, happens string) {
	r.warnLeft(ctx, c, d, o.Key, action, "add-on %q (%s %q) may leave something on cluster %s: %s, and Flux has not succeeded with the "+
		"folder or namespace that it had last. It has noted nothing of what it tried there; its last message: %s", o.Addon, o.Key.Kind,
		o.Key.Name, c.Key, happens, lastWords(fluxstate.Of(k)))
}
