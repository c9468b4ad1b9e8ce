// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"maps"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
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
			k := &Keeper{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}}, Clock: clocktesting.NewFakePassiveClock(time.Now())}
			key := id{sourcev1.HelmChartKind, client.ObjectKeyFromObject(chart)}
			if !k.deletions(key.kind).Delete(event.DeleteEvent{Object: chart}) {
				t.Fatal("nobody looks")
			}
			if tc.made {
				rec, release := k.record(key)
				rec.hash, rec.at = "abc", k.Clock.Now()
				release()
			}
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
			if _, err := k.reconcile(t.Context(), key); err != nil || len(k.lost) > 0 && !tc.made {
				t.Errorf("it remembers %v, %v", k.lost, err)
			}
		})
	}
}
