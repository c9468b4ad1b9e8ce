// SPDX-License-Identifier: Apache-2.0

// Package deliverywriter writes what the addonset controller has decided about a delivery that is there: when it is withdrawn, that it is,
// and what it may remove. Each function writes to the delivery that was seen, and never to another one of its name.
package deliverywriter

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
)

// Withdraw removes a delivery, with what it has on its cluster. Its finalizer keeps it until the cluster is clean.
// The delivery is marked before it is deleted. By the mark the delivery controller knows that the set has decided this, and
// not a user's kubectl. If the hub dies in between, it finds the mark afterwards, and finishes the withdrawal or
// takes it back. A delivery that was not counted because its add-ons stay on the cluster is marked with that as well:
// a later policy of Delete removes nothing that the guard has not granted.
func Withdraw(ctx context.Context, c client.Client, d *hubv1.AddonDelivery, orphan bool) error {
	if d.Spec.Withdrawal != d.UID || orphan != d.Orphaned() {
		if _, err := mark(ctx, c, d, d.UID, orphan); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return Remove(ctx, c, d)
}

// Remove is the only function that deletes a delivery. An unmarked delivery takes nothing along, as if a user had
// deleted it by hand. That is how a delivery goes that has nothing on its cluster. If the delivery controller is making an
// object for it at this moment, the delivery stays until it is counted and marked.
func Remove(ctx context.Context, c client.Client, d *hubv1.AddonDelivery) error {
	if d.DeletionTimestamp != nil {
		return nil
	}
	if err := apply.Delete(ctx, c, d); err != nil {
		return fmt.Errorf("withdraw delivery %s: %w", d.Name, err)
	}
	return nil
}

// CallOff takes the mark off a delivery that stays after all, and the time after which it was to be withdrawn. It never
// does so with one that has been deleted since: a withdrawal that has begun goes on. CallOff returns the delivery as the API server has it.
func CallOff(ctx context.Context, c client.Client, d *hubv1.AddonDelivery) (*hubv1.AddonDelivery, error) {
	return mark(ctx, c, d, "", false)
}

// mark sets or removes spec.withdrawal, and notes whether the add-ons stay on the cluster. It returns the delivery as the API server has
// it, or NotFound.
func mark(ctx context.Context, c client.Client, d *hubv1.AddonDelivery, withdrawal types.UID, orphan bool) (*hubv1.AddonDelivery, error) {
	metadata, spec := map[string]any{}, map[string]any{"withdrawal": withdrawal}
	if orphan != d.Orphaned() {
		policy := any(nil)
		if orphan {
			policy = hubv1.DeletionPolicyOrphan
		}
		metadata["annotations"] = map[string]any{hubv1.DeletionPolicyAnnotation: policy}
	}
	if withdrawal == "" {
		metadata["resourceVersion"] = d.ResourceVersion
		spec["withdrawal"], spec["withdrawAfter"] = nil, nil
	}
	there, err := patch(ctx, c, d, metadata, spec)
	if err != nil {
		return nil, fmt.Errorf("mark delivery %s: %w", d.Name, err)
	}
	return there, nil
}

// Note writes after which time a delivery is withdrawn; the API has no fractions of a second. The cache that was decided by may lag, so
// Note writes exactly to what was seen.
func Note(ctx context.Context, c client.Client, d *hubv1.AddonDelivery, after time.Time) error {
	_, err := patch(ctx, c, d, map[string]any{"resourceVersion": d.ResourceVersion}, map[string]any{"withdrawAfter": metav1.NewTime(after)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("note when delivery %s is withdrawn: %w", d.Name, err)
	}
	return nil
}

// Grant writes what a delivery may remove or reinstall.
func Grant(ctx context.Context, c client.Client, d *hubv1.AddonDelivery, grants []string) error {
	grants = slices.Sorted(slices.Values(grants))
	_, err := patch(ctx, c, d, map[string]any{}, map[string]any{"removals": slices.Compact(grants)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the grants of delivery %s: %w", d.Name, err)
	}
	return nil
}

// patch merges metadata and spec into the delivery that was seen, and returns it as the API server has it.
func patch(ctx context.Context, c client.Client, d *hubv1.AddonDelivery, metadata, spec map[string]any) (*hubv1.AddonDelivery, error) {
	metadata["uid"] = d.UID // never another one of that name
	raw, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return nil, err
	}
	there := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	return there, c.Patch(ctx, there, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(hubv1.SwitchFieldManager))
}
