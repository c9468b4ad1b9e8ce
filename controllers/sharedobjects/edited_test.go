// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// TestEditsAreUndone: somebody has a source of the hub's fetch from elsewhere, with a Secret of his own. What was edited comes back, what
// was added goes, and a source that somebody suspends stays so.
func TestEditsAreUndone(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{sourcev1.AddToScheme, corev1.AddToScheme} {
		must.Do(t, add(scheme))
	}
	there := &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "charts-1", Generation: 2, Labels: map[string]string{hubv1.SourceLabel: "hub"}},
		Spec: sourcev1.HelmRepositorySpec{URL: "https://evil.example.com/x", Suspend: true, PassCredentials: true,
			SecretRef: &fluxmeta.LocalObjectReference{Name: "s"}},
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build()
	k := &Keeper{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}}, Clock: clocktesting.NewFakePassiveClock(time.Now())}
	want := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": "https://charts.example.org/shop", "interval": "10m"}}}
	want.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.HelmRepositoryKind))
	want.SetNamespace("shop")
	want.SetName("charts-1")
	shared := &flux.Shared{Object: want, Hash: "1"}
	if seen, err := k.Ensure(t.Context(), shared); err != nil || !seen {
		t.Fatal(seen, err)
	}
	got := &sourcev1.HelmRepository{}
	must.Do(t, api.Get(t.Context(), client.ObjectKeyFromObject(there), got))
	if s := got.Spec; s.URL != "https://charts.example.org/shop" || s.SecretRef != nil || s.PassCredentials || !s.Suspend {
		t.Errorf("the source is %+v", s)
	}
	must.Get(k.Ensure(t.Context(), shared)).Or(t)
	again := &sourcev1.HelmRepository{}
	must.Do(t, api.Get(t.Context(), client.ObjectKeyFromObject(there), again))
	if again.ResourceVersion != got.ResourceVersion {
		t.Error("it is written again, and nothing has changed")
	}
}
