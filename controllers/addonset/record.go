// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// rolled returns the state of a set's rollout. If its status is lost, that is what was kept in its annotation.
func rolled(set *hubv1.AddonSet) *hubv1.RolloutStatus {
	return rollout.Recall(client.ObjectKeyFromObject(set).String(), set.Status.Rollout, set.Annotations[hubv1.RolloutAnnotation])
}

// keepRecord keeps what must not be lost with the status of a set: a backup has the set, and not what the hub makes of it. All at
// once there are no waves to remember, but for what has failed.
func (r *Reconciler) keepRecord(ctx context.Context, set *hubv1.AddonSet) error {
	want, is := "", set.Status.Rollout
	if is != nil && (len(is.Waves) > 0 || len(is.FailedRevisions) > 0) {
		want = rollout.Record(client.ObjectKeyFromObject(set).String(), is)
	}
	if set.Annotations[hubv1.RolloutAnnotation] == want {
		return nil
	}
	var value any // null removes it
	if want != "" {
		value = want
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{hubv1.RolloutAnnotation: value}}})
	if err != nil {
		return err
	}
	to := &hubv1.AddonSet{}
	to.Namespace, to.Name = set.Namespace, set.Name
	if err := r.Client.Patch(ctx, to, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write annotation %s: %w", hubv1.RolloutAnnotation, err))
	}
	return nil
}
