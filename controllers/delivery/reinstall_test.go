// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render"
)

// chartAddon is an add-on of a chart from a Helm repository, as release app in namespace apps.
func chartAddon(chart string, more map[string]any) map[string]any {
	body := map[string]any{
		"chart":           map[string]any{"spec": map[string]any{"chart": chart, "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}},
		"targetNamespace": "apps",
	}
	for k, v := range more {
		body[k] = v
	}
	return map[string]any{"name": "app", "helmRelease": body}
}

// gitAddon is an add-on of a chart in a folder of a Git repository, of which nobody here knows the name.
func gitAddon(path string, more map[string]any) map[string]any {
	out := chartAddon(path, more)
	spec := out["helmRelease"].(map[string]any)["chart"].(map[string]any)["spec"].(map[string]any)
	spec["sourceRef"] = map[string]any{"kind": "GitRepository", "name": "git"}
	return out
}

func refAddon(name string) map[string]any {
	return map[string]any{"name": "app", "helmRelease": map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": name}, "targetNamespace": "apps"}}
}

func manifestsAddon() map[string]any {
	return map[string]any{"name": "app", "manifests": map[string]any{"targetNamespace": "apps", "objects": []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}},
	}}}
}

// TestReinstallIsAsked: an edit that makes Flux take away what runs, to install something else in its place, waits for the removal guard,
// whatever it is an edit of.
func TestReinstallIsAsked(t *testing.T) {
	inPlace := map[string]any{"upgrade": map[string]any{"chartNameChangeStrategy": "InPlaceUpdate"}}
	kustomization := func() map[string]any { return kustomizationAddon("app") }
	named := func(field, value string) map[string]any {
		a := kustomization()
		a["kustomization"].(map[string]any)[field] = value
		return a
	}
	for name, tc := range map[string]struct {
		from, to map[string]any
		reason   string // empty if it is not asked for
		says     string
	}{
		"another chart":                  {chartAddon("old", nil), chartAddon("new", nil), hubv1.ReinstallReason, `release "app" of chart "old"`},
		"another version":                {chartAddon("old", nil), chartAddon("old", map[string]any{"values": map[string]any{"a": "b"}}), "", ""},
		"another chart, in place":        {chartAddon("old", nil), chartAddon("new", inPlace), "", ""},
		"another folder":                 {gitAddon("./charts/old", nil), gitAddon("./charts/new", nil), "", ""},
		"another chartRef":               {refAddon("old"), refAddon("new"), "", ""},
		"a chart to a chartRef":          {chartAddon("old", nil), refAddon("new"), "", ""},
		"a chartRef to another chart":    {refAddon("old"), chartAddon("new", nil), hubv1.ReinstallReason, `release "app" of chart "chart-of-old"`},
		"a chart to manifests":           {chartAddon("old", nil), manifestsAddon(), hubv1.ReinstallReason, `release "app" of chart "ours"`},
		"manifests to a chart":           {manifestsAddon(), chartAddon("new", nil), hubv1.ReinstallReason, `release "app" of chart "ours"`},
		"manifests to a chartRef":        {manifestsAddon(), refAddon("new"), "", ""},
		"a chart to a Kustomization":     {chartAddon("old", nil), kustomization(), hubv1.DroppedReason, ""},
		"a Kustomization to a chart":     {kustomization(), chartAddon("new", nil), hubv1.DroppedReason, ""},
		"manifests to a Kustomization":   {manifestsAddon(), kustomization(), hubv1.DroppedReason, ""},
		"a Kustomization to manifests":   {kustomization(), manifestsAddon(), hubv1.DroppedReason, ""},
		"another folder of manifests":    {kustomization(), named("path", "./other"), "", ""},
		"another targetNamespace":        {kustomization(), named("targetNamespace", "other"), hubv1.ReinstallReason, `into namespace "other"`},
		"another namePrefix":             {kustomization(), named("namePrefix", "x-"), hubv1.ReinstallReason, `with names "x-*"`},
		"another nameSuffix":             {named("nameSuffix", "-a"), named("nameSuffix", "-b"), hubv1.ReinstallReason, `uninstall what it applies into the namespaces that its manifests name, with names "*-a"`},
		"a chart to a chart, and others": {chartAddon("old", nil), chartAddon("new", map[string]any{"releaseName": "other"}), hubv1.ReinstallReason, `install release "other" of chart "new"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", tc.from)...)
			m.r.Config.Chart = render.ManifestChart{URL: "http://hub", Name: "ours", Digest: "sha256:0"}
			m.settle()
			before := m.object(testCluster, "app")
			if before == nil || m.addon("app").State != hubv1.AddonReady {
				t.Fatalf("it does not arrive: %+v", m.delivery(testCluster, testSet).Status)
			}
			m.must(m.api.Create(t.Context(), addonsOf(testSet, "2", tc.to)[1]))
			m.roll("2")
			m.settle()

			a, after := m.addon("app"), m.object(testCluster, "app")
			if tc.reason == "" {
				if a.Removal != "" || a.State != hubv1.AddonReady || after.GetUID() != before.GetUID() {
					t.Errorf("it is upgraded in place, and is %+v", a)
				}
				return
			}
			if a.State != hubv1.AddonHeld || a.Reason != tc.reason || a.Removal == "" || !strings.Contains(a.Message, tc.says) {
				t.Fatalf("it is %+v", a)
			}
			if after.GetUID() != before.GetUID() || after.GetAnnotations()[hubv1.HashAnnotation] != before.GetAnnotations()[hubv1.HashAnnotation] {
				t.Error("its object was written")
			}
			edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.Removals = []string{a.Removal} })
			m.must(m.reconcile(testCluster))
			m.pause(true)
			m.settle()
			if going := m.addon("app"); tc.reason == hubv1.ReinstallReason && (going.Removal != a.Removal || going.State != hubv1.AddonPaused) {
				t.Errorf("granted, and paused before Flux had it, it is %+v", going)
			}
			m.pause(false)
			m.settle()
			if a := m.addon("app"); a.State != hubv1.AddonReady || a.Removal != "" {
				t.Errorf("granted, it is %+v", a)
			}
		})
	}
}

// What is to leave is not reinstalled before, whoever turns the removal guard off: another set may be about to go on with it as it is.
func TestNoReinstallOfWhatLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		leave func(*hubv1.AddonSet)
		want  hubv1.AddonState
	}{
		"ItStays": {func(*hubv1.AddonSet) {}, hubv1.AddonReady},
		"NotSelected": {func(s *hubv1.AddonSet) {
			s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"no": "where"}}
		}, hubv1.AddonHeld},
		"ItsSetIsGoing": {func(s *hubv1.AddonSet) { s.Finalizers = []string{hubv1.AddonSetFinalizer} }, hubv1.AddonHeld},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", chartAddon("old", nil))...)
			m.settle()
			m.must(m.api.Create(t.Context(), addonsOf(testSet, "2", chartAddon("new", nil))[1]))
			m.roll("2")
			m.settle()
			set := &hubv1.AddonSet{}
			edit(m, "flux-system", testSet, set, func(s *hubv1.AddonSet) {
				s.Spec.RemovalGuard = &hubv1.RemovalGuard{Mode: hubv1.RemovalGuardOff}
				tc.leave(s)
			})
			if len(set.Finalizers) > 0 {
				m.quietly(func() { m.must(m.api.Delete(t.Context(), set)) })
			}
			m.settle()
			if a := m.addon("app"); a.State != tc.want {
				t.Errorf("it is %+v", a)
			}
		})
	}
}

// addon is what the delivery says of an add-on.
func (m *fixture) addon(name string) hubv1.AddonStatus {
	for _, a := range m.delivery(testCluster, testSet).Status.Addons {
		if a.Name == name {
			return a
		}
	}
	return hubv1.AddonStatus{}
}

// roll has the cluster get a revision.
func (m *fixture) roll(generation string) {
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, generation) })
}
