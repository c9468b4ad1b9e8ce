// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// edited returns whether another writer may have edited the spec of an object. The hub writes most objects once, at their first generation.
// A hub that has just started does not know what it has written later, and writes once more: the API server stores nothing if that is
// there.
func edited(there client.Object, rec *record) bool {
	return there.GetGeneration() > max(1, rec.generation)
}

// restore gives an object the spec that the hub has made it with, and returns its generation then. Fields that another writer has added go.
// That a source is suspended is for people to say.
func (k *Keeper) restore(ctx context.Context, there client.Object, want *unstructured.Unstructured) (int64, error) {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return 0, fmt.Errorf("read %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	is, _, _ := unstructured.NestedMap(live, "spec")
	spec, _, _ := unstructured.NestedMap(want.Object, "spec")
	if suspended, ok := is["suspend"]; ok {
		spec["suspend"] = suspended
	}
	before, err := json.Marshal(map[string]any{"spec": is})
	if err != nil {
		return 0, err
	}
	after, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": there.GetResourceVersion()}, "spec": spec,
	})
	if err != nil {
		return 0, err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return 0, err
	}
	obj := there.DeepCopyObject().(client.Object)
	err = k.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager))
	if err != nil {
		return 0, fmt.Errorf("undo an edit of %s %s/%s: %w", want.GetKind(), want.GetNamespace(), want.GetName(), err)
	}
	return obj.GetGeneration(), nil
}
