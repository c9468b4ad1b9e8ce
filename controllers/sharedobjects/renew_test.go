// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"maps"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// TestAnotherHash: a source gets the labels that its set gives it now, and loses those that it gives no more, once for each change. One of that
// name that is not the hub's stays as it is.
func TestAnotherHash(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Do(t, sourcev1.AddToScheme(scheme))
	theirs := &sourcev1.HelmRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(theirs).Build()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := &Keeper{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}}, Clock: clock}
	there := func(name string) *sourcev1.HelmRepository {
		t.Helper()
		got := &sourcev1.HelmRepository{}
		must.Do(t, api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, got))
		return got
	}
	ensure := func(name, hash string, own map[string]string) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": "https://charts.example.org/shop"}}}
		u.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.HelmRepositoryKind))
		u.SetNamespace("shop")
		u.SetName(name)
		labels := map[string]string{hubv1.SourceLabel: "hub"}
		maps.Copy(labels, own)
		u.SetLabels(labels)
		u.SetAnnotations(map[string]string{hubv1.HashAnnotation: hash})
		must.Get(k.Ensure(t.Context(), &flux.Shared{Object: u, Hash: hash})).Or(t)
	}
	ensure("charts", "1", nil)
	for _, step := range []struct {
		hash string
		own  map[string]string
	}{{"2", map[string]string{"team": "a"}}, {"3", map[string]string{"cost": "b"}}, {"1", nil}} {
		ensure("charts", step.hash, step.own)
		got := there("charts")
		want := map[string]string{hubv1.SourceLabel: "hub"}
		maps.Copy(want, step.own)
		if !maps.Equal(got.Labels, want) || got.Annotations[hubv1.HashAnnotation] != step.hash {
			t.Errorf("after %s it has %v, %v", step.hash, got.Labels, got.Annotations)
		}
		if ensure("charts", step.hash, step.own); there("charts").ResourceVersion != got.ResourceVersion {
			t.Errorf("%s is written again", step.hash)
		}
	}
	if ensure("theirs", "2", map[string]string{"team": "a"}); len(there("theirs").Labels) > 0 {
		t.Error("what is not the hub's was written")
	}
}
