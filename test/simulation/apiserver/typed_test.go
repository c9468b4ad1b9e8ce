// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestTyped: after each write an object is, as a Go type, what a converter makes of the whole of it, and what was handed out before stays.
func TestTyped(t *testing.T) {
	s := New(testclock.NewFakeClock(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)))
	set, secret := Key{Group: "chandler.dev", Kind: "AddonSet", Name: "base"}, Key{Kind: "Secret", Name: "w1"}
	patch := func(k Key, patch string, status bool) func() (Object, error) {
		return func() (Object, error) { return s.Patch("somebody", k, []byte(patch), status) }
	}
	var before, copied []runtime.Object
	for i, write := range []func() (Object, error){
		func() (Object, error) {
			return s.Create("somebody", set, Object{"apiVersion": "chandler.dev/v1alpha1", "kind": "AddonSet", "metadata": Object{"name": "base"},
				"spec": Object{"addons": []any{Object{"name": "web", "manifests": Object{"objects": []any{}}}}}})
		},
		patch(set, `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`, true),
		patch(set, `{"metadata":{"labels":{"a":"b"}},"spec":{"selectAll":true}}`, false),
		patch(set, `{"spec":{"selectAll":null},"status":{"observedGeneration":7}}`, false),
		patch(set, `{"status":{"conditions":null}}`, true),
		func() (Object, error) {
			return s.Create("somebody", secret, Object{"apiVersion": "v1", "kind": "Secret", "metadata": Object{"name": "w1"}, "data": Object{"value": "YQ=="}})
		},
		patch(secret, `{"data":{"value":"Yg=="},"type":"Opaque"}`, false),
	} {
		o, err := write()
		if err != nil {
			t.Fatal(err)
		}
		examples := []runtime.Object{&hubv1.AddonSet{}, &metav1.PartialObjectMetadata{}}
		if o["kind"] == "Secret" {
			examples[0] = &corev1.Secret{}
		}
		for _, example := range examples {
			got, err := s.Typed(o, example)
			if err != nil {
				t.Fatal(err)
			}
			before, copied = append(before, got), append(copied, got.DeepCopyObject())
			whole := o
			if example == examples[1] {
				whole = Object{"metadata": o["metadata"]}
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole, example); err != nil || !reflect.DeepEqual(got, example) {
				t.Errorf("write %d: %v, %+v, and it is %+v", i, err, got, example)
			}
		}
	}
	if !reflect.DeepEqual(before, copied) {
		t.Error("what was handed out has changed")
	}
}
