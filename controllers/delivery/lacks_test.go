// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestLacks: somebody has deleted what clusters share, and the one that was woken by that had no use for it. Whose Flux misses it makes it again.
func TestLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		gone  client.Object
		flux  func(*helmv2.HelmRelease)
		again bool
	}{
		"the chart of a set":             {&sourcev1.HelmChart{}, func(*helmv2.HelmRelease) {}, true},
		"the hub's chart":                {&sourcev1.OCIRepository{}, func(*helmv2.HelmRelease) {}, true},
		"and Flux leaves it alone":       {&sourcev1.OCIRepository{}, func(o *helmv2.HelmRelease) { o.Spec.Suspend = true }, false},
		"and Flux has not looked for it": {&sourcev1.OCIRepository{}, func(o *helmv2.HelmRelease) { o.Status.Conditions = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			addon, list := manifestsAddon(), client.ObjectList(&sourcev1.OCIRepositoryList{})
			if _, ok := tc.gone.(*sourcev1.HelmChart); ok {
				addon, list = chartAddon("app", nil), &sourcev1.HelmChartList{}
			}
			m := newServedFixture(t, addonsOf(testSet, "1", addon)...)
			m.settle()
			m.must(m.api.DeleteAllOf(t.Context(), tc.gone, client.InNamespace("flux-system")))
			o := m.object(testCluster, "app").(*helmv2.HelmRelease)
			apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
				Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ArtifactFailed", Message: "could not get Source object", ObservedGeneration: o.Generation})
			tc.flux(o)
			m.must(m.api.Update(t.Context(), o))
			m.must(m.reconcile(testCluster))
			m.must(m.api.List(t.Context(), list))
			if got := apimeta.LenList(list) == 1; got != tc.again {
				t.Errorf("there are %d", apimeta.LenList(list))
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
		"the hub's":       {chartAddon("app", nil), "HelmChart", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", tc.addon)...)
			m.settle()
			m.must(m.api.DeleteAllOf(t.Context(), &sourcev1.HelmChart{}, client.InNamespace("flux-system")))
			o := m.object(testCluster, "app").(*helmv2.HelmRelease)
			apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
				Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ArtifactFailed", ObservedGeneration: o.Generation,
				Message: fmt.Sprintf("could not get Source object: %s.source.toolkit.fluxcd.io %q not found", tc.source, o.Spec.ChartRef.Name)})
			m.must(m.api.Update(t.Context(), o))
			m.must(m.reconcile(testCluster))
			d := m.delivery(testCluster, testSet)
			if got := status.Reason(d, hubv1.ReadyCondition) == hubv1.SourceNotFoundReason; got != tc.missing {
				t.Errorf("%+v", d.Status.Conditions)
			}
		})
	}
}

// TestRefused: a chart that Flux could not fetch is a failure after a while, in Flux's words, and of a source of others too, of which no event
// tells.
func TestRefused(t *testing.T) {
	refused := func(o metav1.Object) []metav1.Condition {
		return []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "InvalidChartReference",
			Message: "no 'app' chart with version matching '9.9.9' found", ObservedGeneration: o.GetGeneration()}}
	}
	for name, tc := range map[string]struct {
		addon map[string]any
		make  func(m *fixture)
	}{
		"a set's chart": {chartAddon("app", nil), func(m *fixture) {
			charts := &sourcev1.HelmChartList{}
			m.must(m.api.List(t.Context(), charts))
			charts.Items[0].Status.Conditions = refused(&charts.Items[0])
			m.must(m.api.Update(t.Context(), &charts.Items[0]))
		}},
		"somebody else's": {releaseAddon("app"), func(m *fixture) {
			ref := m.object(testCluster, "app").(*helmv2.HelmRelease).Spec.ChartRef
			source := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: ref.Name}}
			source.Status.Conditions = refused(source)
			m.must(m.api.Create(t.Context(), source))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", tc.addon)...)
			m.settle()
			tc.make(m)
			o := m.object(testCluster, "app").(*helmv2.HelmRelease)
			apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse,
				Reason: "SourceNotReady", Message: "it is not ready", ObservedGeneration: o.Generation})
			m.must(m.api.Update(t.Context(), o))
			m.must(m.reconcile(testCluster))
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonProgressing {
				t.Errorf("at once: %+v", a)
			}
			m.clock.SetTime(m.clock.Now().Add(fluxstate.SourceGrace))
			m.must(m.reconcile(testCluster))
			a := m.delivery(testCluster, testSet).Status.Addons[0]
			if a.State != hubv1.AddonFailed || a.Reason != "InvalidChartReference" || !strings.Contains(a.Message, "9.9.9") {
				t.Errorf("after a while: %+v", a)
			}
		})
	}
}
