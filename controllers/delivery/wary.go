// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// wary checks what is about to be uninstalled for what Flux would leave behind silently, and changes the steps: what
// can be repaired is, and anything else the hub orphans, and reports it.
func (r *Reconciler) wary(ctx context.Context, c *cluster, steps []plan.Step) error {
	var errs []error
	for i := range steps {
		s := &steps[i]
		if s.Verb != plan.Uninstall {
			continue
		}
		err := r.keepAccount(ctx, c, s)
		if err == nil && s.Verb == plan.Uninstall && s.Key.Kind == fluxspec.KustomizationKind {
			err = r.unnoted(ctx, c, s)
		}
		if err != nil {
			s.Verb, s.Reason = plan.Hold, err.Error()
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keepAccount makes sure that the ServiceAccount exists on the hub that an object names. One that is not the hub's
// does not have the hub's finalizer, and may go together with the set, or while Flux uninstalls.
func (r *Reconciler) keepAccount(ctx context.Context, c *cluster, s *plan.Step) error {
	o := c.Objects[s.Key]
	if o.Account == "" {
		return nil
	}
	ours, err := r.Shared.EnsurePlaceholder(ctx, s.Key.Namespace, o.Account)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		if s.Key.Kind == fluxspec.KustomizationKind {
			s.Verb, s.Reason = plan.Orphan,
				fmt.Sprintf("ServiceAccount %q is gone with its namespace, and without it Flux removes nothing", o.Account)
		}
		return nil
	case err != nil:
		return fmt.Errorf("make sure of ServiceAccount %q, without which Flux removes nothing: %w", o.Account, err)
	case !ours:
		c.LookAgain(time.Second)
	}
	return nil
}

// unnoted reads a Kustomization live that has never been applied with success, or that has got another folder or namespace since. Flux may
// have applied objects that are not in its inventory, and would not remove these.
func (r *Reconciler) unnoted(ctx context.Context, c *cluster, s *plan.Step) error {
	o := c.Objects[s.Key]
	if o.State.Version != "" && o.AppliedAs == "" || o.Deleting {
		return nil
	}
	k := &kustomizev1.Kustomization{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: s.Key.Name}, k); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch {
	case fluxstate.Unnoted(k) != "":
		s.Verb, s.Reason = plan.Orphan, "Flux has never applied all of it, and would remove nothing"
	case fluxstate.FirstTry(k) && !k.Spec.Suspend:
		s.Verb, s.Reason = plan.Hold, "waits for Flux to end its first try: what that has applied, it would not remove before"
		c.LookAgain(time.Second)
	case r.triedAnew(o, k):
		r.tellTried(ctx, c, c.Delivery(s.Key.Namespace, o.Delivery), o, k, "Remove", "it goes")
	}
	return nil
}
