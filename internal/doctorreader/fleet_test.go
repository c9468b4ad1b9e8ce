// SPDX-License-Identifier: Apache-2.0

package doctorreader

import (
	"strings"
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
	release.Labels = map[string]string{hubv1.AddonLabel: "web", hubv1.AddonSetLabel: "base"}
	other := release.DeepCopy() // on another cluster
	other.Name = "web2"
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(chart("used", hubv1.ChartLabel), chart("mended", hubv1.ChartLabel),
		chart("somebodys", ""), release, other).Build()
	e := &examiner{ctx: t.Context(), client: api, facts: &doctor.Facts{}, namespaces: map[string]bool{"flux-system": true}}
	if err := e.sources(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range e.facts.Sources {
		names = append(names, s.Name)
		if used := strings.Join(s.Users, ", "); (used == "add-on web of set flux-system/base") != (s.Name == "HelmChart flux-system/used") {
			t.Errorf("%s is used by %q", s.Name, used)
		}
	}
	repository := uses{}
	used := chart("used", hubv1.ChartLabel)
	used.Spec.SourceRef = sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: "charts"}
	repository.add(used)
	repository.add(release)
	if got := repository.of("HelmRepository flux-system/charts"); len(got) != 1 || got[0] != "add-on web of set flux-system/base" {
		t.Errorf("a repository is used by %q", got)
	}
	if len(names) != 2 || names[0] != "HelmChart flux-system/somebodys" || names[1] != "HelmChart flux-system/used" || e.facts.SourcesRead != 3 {
		t.Errorf("%d read, and these fail: %v", e.facts.SourcesRead, names)
	}
}
