// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/plan"
)

// takeBack resumes a hand-written object that was suspended to be handed over, and could not be deleted. If its AddonSet does not adopt it
// any more before the next try, nothing else would.
func (r *Reconciler) takeBack(ctx context.Context, c *cluster, s plan.Step) error {
	o, obj := c.Objects[s.Key], observed.NewObject(s.Key)
	if !o.Foreign {
		return nil
	}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err == nil && obj.GetUID() == o.UID && obj.GetDeletionTimestamp() == nil {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q,"annotations":{%q:null}},"spec":{"suspend":false}}`, o.UID,
			obj.GetResourceVersion(), hubv1.SuspendedAnnotation)
		err = r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(hubv1.SwitchFieldManager))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("resume %s %s, which is not taken over yet: %w", s.Key.Kind, s.Key.Name, err)
	}
	return nil
}

// dropChart removes the HelmChart of a hand-written HelmRelease that is handed over: helm-controller leaves it behind when the
// release was suspended (helmrelease_controller.go, reconcileDelete).
func (r *Reconciler) dropChart(ctx context.Context, o *observed.Object) error {
	chart := &sourcev1.HelmChart{}
	name, ok := index.Registration(o.HelmChart)
	if !ok {
		return nil
	}
	if err := r.Live.Get(ctx, name, chart); err != nil {
		return client.IgnoreNotFound(err)
	}
	l := chart.Labels
	if l["helm.toolkit.fluxcd.io/name"] != o.Key.Name || l["helm.toolkit.fluxcd.io/namespace"] != o.Key.Namespace {
		return nil
	}
	return apply.Delete(ctx, r.Client, chart)
}
