// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/origin"
)

// takeIn makes a hand-written object the hub's, where it is. Server-side apply alone would leave fields that another writer has set, and
// the marks by which another tool would prune the object. So the hub first writes what the object is to be in place of all that it has,
// then takes the ownership of its fields from all others, and applies it last. It has the hub's labels only then: if the hub dies in
// between, it begins again.
func (r *Reconciler) takeIn(ctx context.Context, o *written) (*unstructured.Unstructured, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(o.obj.GroupVersionKind())
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o.obj), there); err != nil {
		return nil, fmt.Errorf("read %s, which is to be adopted: %w", o.step.Key, err)
	}
	if there.GetUID() != o.there.UID || there.GetResourceVersion() != o.there.Version {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: o.step.Key.Kind}, o.step.Key.Name,
			errors.New("it has changed since it was looked at"))
	}
	labels, annotations := origin.CopiedLabels(there.GetLabels()), origin.CopiedLabels(there.GetAnnotations())
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	err := r.replace(ctx, there, map[string]any{
		"/spec": o.obj.Object["spec"], "/metadata/labels": labels, "/metadata/annotations": annotations, "/metadata/ownerReferences": []any{}})
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(there.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "" })
	if len(kept) > 0 { // else the API server would take an empty list for none at all
		if err := r.replace(ctx, there, map[string]any{"/metadata/managedFields": kept}); err != nil {
			return nil, err
		}
	}
	o.obj.SetUID(o.there.UID)
	return apply.Update(ctx, r.Client, o.obj, hubv1.FieldManager)
}

// replace writes some fields of an object as it was read, and reads what came of that into it.
func (r *Reconciler) replace(ctx context.Context, there *unstructured.Unstructured, fields map[string]any) error {
	ops := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": there.GetResourceVersion()}}
	for path, value := range fields {
		ops = append(ops, map[string]any{"op": "add", "path": path, "value": value}) // which replaces what is there
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, there, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(hubv1.FieldManager)); err != nil {
		return fmt.Errorf("adopt %s %s/%s: %w", there.GetKind(), there.GetNamespace(), there.GetName(), err)
	}
	return nil
}
