// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestLacks: somebody has deleted what clusters share, and the one that was woken by that had no use for it. Whose Flux misses it makes it again.
func TestLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		gone  client.Object
		flux  func(*helmv2.HelmRelease)
		again bool
	}{
		"the chart":                      {&sourcev1.HelmChart{}, func(*helmv2.HelmRelease) {}, true},
		"its repository":                 {&sourcev1.HelmRepository{}, func(*helmv2.HelmRelease) {}, true},
		"and Flux leaves it alone":       {&sourcev1.HelmChart{}, func(o *helmv2.HelmRelease) { o.Spec.Suspend = true }, false},
		"and Flux has not looked for it": {&sourcev1.HelmChart{}, func(o *helmv2.HelmRelease) { o.Status.Conditions = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", manifestsAddon())...)
			m.settle()
			m.must(m.api.DeleteAllOf(t.Context(), tc.gone, client.InNamespace("flux-system")))
			o := m.object(roomCluster, "app").(*helmv2.HelmRelease)
			apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
				Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ArtifactFailed", Message: "could not get Source object", ObservedGeneration: o.Generation})
			tc.flux(o)
			m.must(m.api.Update(t.Context(), o))
			m.must(m.reconcile(roomCluster))
			charts, repositories := &sourcev1.HelmChartList{}, &sourcev1.HelmRepositoryList{}
			m.must(m.api.List(t.Context(), charts))
			m.must(m.api.List(t.Context(), repositories))
			if got := len(charts.Items) == 1 && len(repositories.Items) == 1; got != tc.again {
				t.Errorf("%d charts, %d repositories", len(charts.Items), len(repositories.Items))
			}
		})
	}
}

// TestLacksForGood: a source that does not exist and that the hub does not make is what the delivery says, and no progress. One that the hub
// makes again is not.
func TestLacksForGood(t *testing.T) {
	for name, tc := range map[string]struct {
		addon   map[string]any
		source  string
		missing bool
	}{
		"somebody else's": {releaseAddon("app"), "OCIRepository", true},
		"the hub's":       {manifestsAddon(), "HelmChart", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", tc.addon)...)
			m.settle()
			m.must(m.api.DeleteAllOf(t.Context(), &sourcev1.HelmChart{}, client.InNamespace("flux-system")))
			o := m.object(roomCluster, "app").(*helmv2.HelmRelease)
			apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
				Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ArtifactFailed", ObservedGeneration: o.Generation,
				Message: fmt.Sprintf("could not get Source object: %s.source.toolkit.fluxcd.io %q not found", tc.source, o.Spec.ChartRef.Name)})
			m.must(m.api.Update(t.Context(), o))
			m.must(m.reconcile(roomCluster))
			d := m.delivery(roomCluster, roomSet)
			if got := status.Reason(d, hubv1.ReadyCondition) == hubv1.SourceNotFoundReason; got != tc.missing {
				t.Errorf("%+v", d.Status.Conditions)
			}
		})
	}
}
