// SPDX-License-Identifier: Apache-2.0

package doctorreader

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// TestSourcesInUse: the hub keeps a chart for a while after its last use, and what was wrong with it is mended then.
func TestSourcesInUse(t *testing.T) {
	chart := func(name, label string) *sourcev1.HelmChart {
		o := &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, Labels: map[string]string{}}}
		if label != "" {
			o.Labels[label] = "hub"
		}
		o.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "InvalidChartReference", Message: "no such version"}}
		return o
	}
	release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "web"}}
	release.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.HelmChartKind, Name: "used"}
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(chart("used", hubv1.ChartLabel), chart("mended", hubv1.ChartLabel),
		chart("somebodys", ""), release).Build()
	e := &examiner{ctx: t.Context(), client: api, facts: &doctor.Facts{}, namespaces: map[string]bool{"flux-system": true}}
	if err := e.sources(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range e.facts.Sources {
		names = append(names, s.Name)
	}
	if len(names) != 2 || names[0] != "HelmChart flux-system/somebodys" || names[1] != "HelmChart flux-system/used" || e.facts.SourcesRead != 3 {
		t.Errorf("%d read, and these fail: %v", e.facts.SourcesRead, names)
	}
}
