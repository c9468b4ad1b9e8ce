// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Apply creates or updates every object of some YAML, with server-side apply, as `kubectl apply --server-side` does.
func Apply(t *testing.T, c client.Client, text string) {
	t.Helper()
	NoError(t, ApplyAll(t.Context(), c, text))
}

// ApplyAll is Apply where an error is the answer.
func ApplyAll(ctx context.Context, c client.Client, text string) error {
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		raw := runtime.RawExtension{}
		if err := d.Decode(&raw); err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return err
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil { // not into a map, which would round large numbers
			return err
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
}

// Namespace makes a namespace, if it is not there yet.
func Namespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
}

// Gone is an error while an object is there.
func Gone(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%T %s is still there", obj, obj.GetName())
	}
	return err
}

// Condition returns an error unless an object's condition has a status; reason may be empty.
func Condition(ctx context.Context, c client.Client, obj client.Object, typ string, status metav1.ConditionStatus, reason string) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	_, generation := conditionsOf(obj)
	cond := ConditionOf(obj, typ)
	if cond.Type == "" {
		return fmt.Errorf("%s has no condition %s", obj.GetName(), typ)
	}
	if cond.Status != status || reason != "" && cond.Reason != reason || generation < obj.GetGeneration() {
		return fmt.Errorf("%s %s is %s (%s: %s) at generation %d of %d, want %s %s",
			obj.GetName(), typ, cond.Status, cond.Reason, cond.Message, generation, obj.GetGeneration(), status, reason)
	}
	return nil
}

// ConditionOf returns a condition of an object as it was read, and an empty one if it has none of that type.
func ConditionOf(obj client.Object, typ string) metav1.Condition {
	conditions, _ := conditionsOf(obj)
	if c := apimeta.FindStatusCondition(conditions, typ); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// conditionsOf returns the conditions of an object, and the generation that they are about.
func conditionsOf(obj client.Object) ([]metav1.Condition, int64) {
	switch o := obj.(type) {
	case *hubv1.ClusterRegistration:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *hubv1.AddonSet:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *hubv1.Team:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *hubv1.AddonDelivery:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *kustomizev1.Kustomization:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *helmv2.HelmRelease:
		return o.Status.Conditions, o.Status.ObservedGeneration
	}
	return nil, 0
}

// Ours lists every object on the hub that the hub made, in all namespaces, as kind namespace/name.
func Ours(ctx context.Context, c client.Client) ([]string, error) {
	var out []string
	for kind, gv := range map[string]string{
		"ClusterRegistration": "chandler.dev/v1alpha1", "AddonDelivery": "chandler.dev/v1alpha1", "ControllerRevision": "apps/v1",
		"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Kustomization": "kustomize.toolkit.fluxcd.io/v1", "HelmChart": "source.toolkit.fluxcd.io/v1",
		"HelmRepository": "source.toolkit.fluxcd.io/v1", "GitRepository": "source.toolkit.fluxcd.io/v1", "Secret": "v1",
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: kind + "List"}}
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if kind == "ClusterRegistration" || o.Labels["app.kubernetes.io/managed-by"] == "chandler" {
				out = append(out, fmt.Sprintf("%s %s/%s", kind, o.Namespace, o.Name))
			}
		}
	}
	return out, nil
}

// NothingOfOurs is an error while the hub has left something on its management cluster.
func NothingOfOurs(ctx context.Context, c client.Client) error {
	left, err := Ours(ctx, c)
	if err == nil && len(left) > 0 {
		err = errors.New("left on the hub: " + strings.Join(left, ", "))
	}
	return err
}
