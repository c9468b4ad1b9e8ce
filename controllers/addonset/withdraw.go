// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// withdraw takes a delivery away, with what it has on its cluster. Its finalizer keeps it until the cluster is clean.
// The delivery is marked before it is deleted: by that mark the delivery room knows that the set has decided it, and
// not somebody's kubectl. A hub that is killed in between finds the mark, and does the rest or takes it back. What
// goes without being counted, since it stays on the cluster, is marked so as well: a policy of Delete that comes
// later takes nothing away that the guard has not let go.
func withdraw(ctx context.Context, c client.Client, d *hubv1.AddonDelivery, orphan bool) error {
	if d.Spec.Withdrawal != d.UID || orphan != d.Orphaned() {
		if err := mark(ctx, c, d, d.UID, orphan); err != nil {
			return err
		}
	}
	return remove(ctx, c, d)
}

// remove is the one place that deletes a delivery. One that is not marked takes nothing along, as if somebody had
// deleted it by hand: so goes what has nothing on its cluster. If the delivery room is making an object for it at
// this moment, the delivery waits, and is counted and marked then.
func remove(ctx context.Context, c client.Client, d *hubv1.AddonDelivery) error {
	if d.DeletionTimestamp != nil {
		return nil
	}
	if err := c.Delete(ctx, d, client.Preconditions{UID: &d.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("withdraw delivery %s: %w", d.Name, err)
	}
	return nil
}

// callOff takes the mark off a delivery that stays after all. Never off one that has been deleted meanwhile: what has begun goes on.
func callOff(ctx context.Context, c client.Client, d *hubv1.AddonDelivery) error {
	return mark(ctx, c, d, "", false)
}

// mark writes spec.withdrawal, or takes it off, and that what is delivered stays on the cluster.
func mark(ctx context.Context, c client.Client, d *hubv1.AddonDelivery, withdrawal types.UID, orphan bool) error {
	metadata, value := map[string]any{"uid": d.UID}, any(withdrawal) // never another one of that name
	if orphan != d.Orphaned() {
		policy := any(nil)
		if orphan {
			policy = hubv1.DeletionPolicyOrphan
		}
		metadata["annotations"] = map[string]any{hubv1.DeletionPolicyAnnotation: policy}
	}
	if withdrawal == "" {
		metadata["resourceVersion"], value = d.ResourceVersion, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"withdrawal": value}})
	if err != nil {
		return fmt.Errorf("mark delivery %s: %w", d.Name, err)
	}
	there := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	if err := c.Patch(ctx, there, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.GuardFieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("mark delivery %s: %w", d.Name, err))
	}
	return nil
}
