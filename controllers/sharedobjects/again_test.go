// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/render"
)

// TestAgain: a chart that somebody deletes is made again as it was while a HelmRelease refers to it, whether or not anybody renders it.
func TestAgain(t *testing.T) {
	ours := map[string]string{hubv1.ChartLabel: "hub", "team": "a"}
	for name, tc := range map[string]struct {
		labels map[string]string
		ref    string
		made   bool // by somebody else meanwhile
		again  bool
	}{
		"it is used":                       {ours, "chart", false, true},
		"nobody uses it":                   {ours, "other", false, false},
		"it is not the hub's":              {map[string]string{hubv1.ChartLabel: "other"}, "chart", false, false},
		"it was made, and is not yet seen": {ours, "chart", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			chart := &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "chart", Labels: tc.labels, UID: "1", ResourceVersion: "7",
				Annotations: map[string]string{hubv1.HashAnnotation: "abc"}, Finalizers: []string{"finalizers.fluxcd.io"}}}
			chart.Spec.Chart, chart.Spec.Version = "hello", "1.x"
			release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "app"}}
			release.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.HelmChartKind, Name: tc.ref}
			api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(release).Build()
			clock := clocktesting.NewFakePassiveClock(time.Now())
			k := &Keeper{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}, ChartRetention: time.Minute}, Clock: clock}
			key := id{sourcev1.HelmChartKind, client.ObjectKeyFromObject(chart)}
			if !k.deletions(key.kind).Delete(event.DeleteEvent{Object: chart}) {
				t.Fatal("nobody looks")
			}
			if tc.made {
				rec, release := k.record(key)
				rec.hash, rec.at = "abc", k.Clock.Now()
				release()
			}
			if got, err := k.reconcile(t.Context(), key); err != nil || tc.again && got.RequeueAfter <= 0 {
				t.Fatalf("it does not look again: %v, %v", got, err)
			}
			if err := api.Get(t.Context(), key.NamespacedName, &sourcev1.HelmChart{}); !apierrors.IsNotFound(err) {
				t.Fatalf("whoever renders it does not come first: %v", err)
			}
			clock.SetTime(clock.Now().Add(Unseen - time.Millisecond*time.Duration(map[bool]int{true: 1}[tc.made])))
			if _, err := k.reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			there := &sourcev1.HelmChart{}
			if err := api.Get(t.Context(), key.NamespacedName, there); (err == nil) != tc.again || client.IgnoreNotFound(err) != nil {
				t.Fatalf("it is made again: %t, %v", err == nil, err)
			}
			if tc.again && (!equality.Semantic.DeepEqual(there.Spec, chart.Spec) || !maps.Equal(there.Labels, ours) || !maps.Equal(there.Annotations, chart.Annotations) || len(there.Finalizers) > 0) {
				t.Errorf("it is %+v", there)
			}
			clock.SetTime(clock.Now().Add(time.Minute))
			if _, err := k.reconcile(t.Context(), key); err != nil || len(k.lost.objects) > 0 {
				t.Errorf("it remembers %v, %v", k.lost, err)
			}
		})
	}
}

// TestAgainWithItsSource: somebody deletes a chart and then its source, which nothing seems to refer to any more. Both are made again.
func TestAgainWithItsSource(t *testing.T) {
	source := &sourcev1.HelmRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "charts", Labels: map[string]string{hubv1.SourceLabel: "hub"}}}
	source.Spec.URL = "https://charts.example.org"
	chart := &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "chart", Labels: map[string]string{hubv1.ChartLabel: "hub"}}}
	chart.Spec.SourceRef = sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: "charts"}
	release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "app"}}
	release.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.HelmChartKind, Name: "chart"}
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(release).Build()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := &Keeper{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}, ChartRetention: time.Minute}, Clock: clock}
	k.deletions(sourcev1.HelmChartKind).Delete(event.DeleteEvent{Object: chart})
	k.deletions(sourcev1.HelmRepositoryKind).Delete(event.DeleteEvent{Object: source})
	clock.SetTime(clock.Now().Add(Unseen))
	for _, key := range []id{{sourcev1.HelmRepositoryKind, client.ObjectKeyFromObject(source)}, {sourcev1.HelmChartKind, client.ObjectKeyFromObject(chart)}} {
		if _, err := k.reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	there := &sourcev1.HelmRepository{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(source), there); err != nil || there.Spec.URL != source.Spec.URL {
		t.Errorf("%+v, %v", there.Spec, err)
	}
}

// TestRetentionBeginsWithTheLastUse: what was asked for long ago, and used ever since, is kept for its time when its last user goes.
func TestRetentionBeginsWithTheLastUse(t *testing.T) {
	source := &sourcev1.HelmRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "charts", Labels: map[string]string{hubv1.SourceLabel: "hub"}}}
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(source).Build()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := &Keeper{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}, ChartRetention: time.Minute}, Clock: clock}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(source)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: whole}
	u.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.HelmRepositoryKind))
	if _, err := k.Ensure(t.Context(), &render.Shared{Object: u}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	got, err := k.reconcile(t.Context(), id{sourcev1.HelmRepositoryKind, client.ObjectKeyFromObject(source)})
	if err != nil || got.RequeueAfter < time.Minute {
		t.Errorf("looks again after %s, %v", got.RequeueAfter, err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(source), &sourcev1.HelmRepository{}); err != nil {
		t.Error(err)
	}
}

// TestLostIsBounded: somebody makes and deletes objects with the hub's label in his namespace, one at a time. What other namespaces have lost
// is still made again.
func TestLostIsBounded(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := &Keeper{Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}, ChartRetention: 10 * time.Minute}, Clock: clock}
	deleted := func(namespace, name string, size int) id {
		o := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{hubv1.SourceLabel: "hub"}}}
		o.Spec.Ignore = new(strings.Repeat("#", size))
		k.deletions(sourcev1.GitRepositoryKind).Delete(event.DeleteEvent{Object: o})
		clock.SetTime(clock.Now().Add(time.Millisecond))
		return id{sourcev1.GitRepositoryKind, client.ObjectKeyFromObject(o)}
	}
	theirs, first := deleted("flux-system", "source", 100), deleted("tenant", "first", 100)
	var last id
	for i := range 50 {
		last = deleted("tenant", fmt.Sprint(i), 1<<20)
	}
	deleted("tenant", "large", maxLost)
	if entries, bytes := k.Kept(); bytes > maxLost+1024 || entries != 4 {
		t.Errorf("%d objects with %d bytes are remembered", entries, bytes)
	}
	for key, want := range map[id]bool{theirs: true, last: true, first: false} {
		if _, ok := k.lost.objects[key]; ok != want {
			t.Errorf("%s is remembered: %t", key, ok)
		}
	}
	for key := range k.lost.objects {
		k.found(key)
	}
	if entries, bytes := k.Kept(); entries != 0 || bytes != 0 || len(k.lost.bytes) > 0 {
		t.Errorf("%d objects with %d bytes are remembered for nobody", entries, bytes)
	}
}
