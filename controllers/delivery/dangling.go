// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
)

// dangling finds the objects of a frozen delivery for which Flux would wait for good: they name an object that does not exist, since the
// add-on that they depend on is another set's by now. It reads live, because the cache does not keep spec.dependsOn.
func (r *Reconciler) dangling(ctx context.Context, c *cluster, d *delivery) error {
	if !d.frozen || d.leaving {
		return nil
	}
	for k, o := range c.objects {
		if o.delivery != d.Name || k.Namespace != d.Namespace || o.state.Reason != fluxmeta.DependencyNotReadyReason {
			continue
		}
		obj := newObject(k)
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read what %s waits for: %w", k, err)
		}
		o.dangles = slices.ContainsFunc(waitsFor(obj), func(of plan.Key) bool { return c.objects[of] == nil })
	}
	return nil
}

// waitsFor returns the objects for which Flux waits by an object's spec.dependsOn.
func waitsFor(obj client.Object) []plan.Key {
	var out []plan.Key
	switch o := obj.(type) {
	case *kustomizev1.Kustomization:
		for _, ref := range o.Spec.DependsOn {
			out = append(out, plan.Key{Kind: fluxspec.KustomizationKind, Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name})
		}
	case *helmv2.HelmRelease:
		for _, ref := range o.Spec.DependsOn {
			out = append(out, plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name})
		}
	}
	return out
}
