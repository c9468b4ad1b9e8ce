// SPDX-License-Identifier: Apache-2.0

package clusterreader

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/origin"
)

// origin reads the origin. If it cannot be read, that is noted and is not a failure: the hub goes on without it too.
func (g *gatherer) origin() error {
	ref := g.in.Registration.Spec.OriginRef
	if ref == nil {
		return nil
	}
	kind, err := origin.KindOf(*ref)
	if err != nil {
		g.in.NoOrigin = "which the hub does not know: " + err.Error()
		return nil //nolint:nilerr // told in the report
	}
	g.in.Origin, err = g.Origin(g.ctx, kind, types.NamespacedName{Namespace: g.in.Registration.Namespace, Name: ref.Name})
	switch {
	case err == nil:
	case meta.IsNoMatchError(err):
		g.in.NoOrigin = "whose kind is not installed"
	case apierrors.IsNotFound(err):
		g.in.NoOrigin = "which does not exist"
	case apierrors.IsForbidden(err):
		g.in.NoOrigin = "which you may not read: what expressions make of it may be otherwise on the hub"
	default:
		return fmt.Errorf("read the origin, %s %s/%s: %w", ref.Kind, g.in.Registration.Namespace, ref.Name, err)
	}
	return nil
}
