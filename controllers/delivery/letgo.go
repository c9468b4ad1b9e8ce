// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/plan"
)

// FluxTakes is how long Flux may take to let an object go that it is to leave alone: it has nothing to do but to take off its
// finalizer.
const FluxTakes = 10 * time.Second

// fluxFinalizer is helm-controller's as well.
const fluxFinalizer = kustomizev1.KustomizationFinalizer

// isLetGo returns whether an object is on its way out, and leaves behind what it has applied. One that Flux was to uninstall is so only once it is
// suspended.
func (o *object) isLetGo() bool { return o.Deleting && o.Suspended }

// unfinalize takes Flux's finalizer off an object that is let go, if Flux does not: a worker that was at work on it when its cluster
// fell silent may be held by that cluster for minutes, or for as long as it lives, and nobody else may look at the object then.
// Flux would do just the same, since the object is suspended. An object that is being uninstalled is left to Flux.
func (r *Reconciler) unfinalize(ctx context.Context, c *cluster, s plan.Step) error {
	if s.Verb != plan.LetGo {
		return nil
	}
	if left := FluxTakes - r.Clock.Since(c.objects[s.Key].deleted); left > 0 {
		c.lookAgain(left)
		return nil
	}
	obj := newObject(s.Key)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("read %s %s: %w", s.Key.Kind, s.Key.Name, err))
	}
	if obj.GetUID() != c.objects[s.Key].uid {
		return nil // another one took its name meanwhile
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, obj, fluxFinalizer); err != nil {
		return fmt.Errorf("take Flux's finalizer off %s %s: %w", s.Key.Kind, s.Key.Name, err)
	}
	return nil
}
