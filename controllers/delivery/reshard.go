// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/shard"
)

// reshard gives the cluster's shard to those of its objects that have another one and that no step writes: they stay as
// they are, or wait, or go. Nothing but the label changes. The former shard's controllers may be gone, and then Flux
// would never look at them again, and never finish one that is being deleted.
func (r *Reconciler) reshard(ctx context.Context, c *cluster, steps []plan.Step) error {
	writes := map[plan.Key]bool{}
	for _, s := range steps {
		writes[s.Key] = writes[s.Key] || s.Verb.Writes()
	}
	want := shard.Of(identity.ClusterKey(r.Config.HubID, c.Key), r.Config.ShardsFor(c.Key.Namespace))
	var errs []error
	for k, o := range c.Objects {
		if o.Foreign || writes[k] || o.Labels[shard.Label] == want {
			continue
		}
		errs = append(errs, r.label(ctx, c, o, want))
	}
	return errors.Join(errs...)
}

// label gives an object a shard, or none.
func (r *Reconciler) label(ctx context.Context, c *cluster, o *observed.Object, shardName string) error {
	var value any // a null takes the label off
	if shardName != "" {
		value = shardName
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "labels": map[string]any{shard.Label: value}}})
	if err != nil {
		return err
	}
	obj := observed.NewObject(o.Key)
	if err := r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("give %s its shard: %w", o.Key, err))
	}
	r.expectations.Expect(c.Key, o.Key.Kind, obj, r.Clock.Now())
	return nil
}
