// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// FluxTakes is how long Flux may take to remove its finalizer from a suspended object that is orphaned.
const FluxTakes = 10 * time.Second

// unfinalize takes Flux's finalizer off an object that is orphaned, if Flux does not take it off in time. A worker of Flux that was
// reconciling the object when its cluster stopped answering may be blocked by that cluster for minutes, or for ever, and no other
// worker may reconcile the object meanwhile. Flux would take the finalizer off as well, since the object is suspended. The blocked
// worker may still act when the cluster answers again: the orphan's message says so (begun). Flux alone finishes an uninstallation.
//
// A hand-over waits for Flux, however long that takes: its worker may be in the middle of an upgrade with hooks, and the object that
// takes over would begin another one beside it.
func (r *Reconciler) unfinalize(ctx context.Context, c *cluster, s plan.Step) error {
	o, obj := c.Objects[s.Key], observed.NewObject(s.Key)
	if s.Verb != plan.Orphan {
		return nil
	}
	if left := FluxTakes - r.Clock.Since(o.Deleted); left > 0 {
		c.LookAgain(left)
		return nil
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("read %s: %w", o.Key, err))
	}
	if obj.GetUID() != o.UID {
		return nil // another one took its name meanwhile
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, obj, fluxstate.Finalizer); err != nil {
		return fmt.Errorf("take Flux's finalizer off %s: %w", o.Key, err)
	}
	return nil
}
