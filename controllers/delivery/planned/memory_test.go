// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// What was rendered is remembered until something that goes into it changes, or its time is over.
func TestMemory(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	of := types.NamespacedName{Namespace: "flux-system", Name: "base-one"}
	cluster := types.NamespacedName{Namespace: "tenants", Name: "one"}
	var m Memory
	if m.get(cluster, of, "a", now) != nil {
		t.Fatal("it remembers what never was")
	}
	result := &render.Result{Objects: []flux.Object{{Addon: "x", Trace: nil}}, Until: now.Add(time.Minute)}
	m.put(cluster, of, "a", result, []string{"7"})
	got := m.get(cluster, of, "a", now)
	if got == nil || got.Objects[0].Addon != "x" || got.versions[0] != "7" {
		t.Fatalf("it has forgotten: %+v", got)
	}
	if m.get(cluster, of, "b", now) != nil {
		t.Error("another input gives the old result")
	}
	if m.get(cluster, of, "a", now.Add(time.Minute)) != nil {
		t.Error("a result outlives its time")
	}
	m.Forget(types.NamespacedName{Namespace: "tenants", Name: "two"})
	if m.get(cluster, of, "a", now) == nil {
		t.Error("another cluster's was forgotten")
	}
	m.ForgetFrom("other", cluster)
	if m.get(cluster, of, "a", now) == nil {
		t.Error("what another namespace delivers was forgotten")
	}
	for name, forget := range map[string]func(){
		"all of the cluster":          func() { m.Forget(cluster) },
		"what the namespace delivers": func() { m.ForgetFrom(of.Namespace, cluster) },
		"the delivery":                func() { m.Drop(cluster, of) },
	} {
		m.put(cluster, of, "a", result, nil)
		if forget(); m.get(cluster, of, "a", now) != nil || m.Kept() != 0 {
			t.Errorf("%s was to be forgotten", name)
		}
	}
	if m.put(cluster, of, "a", result, nil); m.Kept() != 1 {
		t.Errorf("%d results are remembered", m.Kept())
	}
}

// TestMemoryKnowsWhatGoes: a delivery that is looked at no more is told once, whether it was rendered or is to be rendered again.
func TestMemoryKnowsWhatGoes(t *testing.T) {
	cluster, a, b := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	var m Memory
	for i, step := range []struct{ now, gone []types.NamespacedName }{
		{nil, nil}, {[]types.NamespacedName{a, b}, nil}, {[]types.NamespacedName{b}, []types.NamespacedName{a}},
		{[]types.NamespacedName{b}, nil}, {nil, []types.NamespacedName{b}}, {nil, nil},
	} {
		if gone := m.Look(cluster, step.now); !slices.Equal(gone, step.gone) {
			t.Errorf("%d: gone are %v, want %v", i, gone, step.gone)
		}
		if len(step.now) > 0 {
			m.put(cluster, b, "b", &render.Result{}, nil)
		}
		m.Forget(cluster)
	}
	if n := m.of.Len(); n != 0 {
		t.Errorf("%d clusters are remembered of none", n)
	}
}

// Whatever a rendering depends on is in its fingerprint, but for time and documents, which are looked at beside it.
func TestFingerprint(t *testing.T) {
	base := func() (*Delivery, *render.Input) {
		d := &Delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{Spec: hubv1.AddonDeliverySpec{RevisionName: "r"}}, Program: &compile.Program{}},
			target: render.Target{HubID: "h", Set: "s"}}
		return d, &render.Input{Cluster: &expression.Cluster{Name: "one", Nodes: 1}}
	}
	print := func(change func(*Delivery, *render.Input)) string {
		d, in := base()
		change(d, in)
		out, err := fingerprint(d, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	same := print(func(*Delivery, *render.Input) {})
	if again := print(func(_ *Delivery, in *render.Input) { in.Now = time.Now() }); again != same {
		t.Error("the time alone makes another input")
	}
	for name, change := range map[string]func(*Delivery, *render.Input){
		"Revision": func(d *Delivery, _ *render.Input) { d.Spec.RevisionName = "r2" },
		"ChartURL": func(d *Delivery, _ *render.Input) { d.target.Chart.URL = "http://x" },
		"Team": func(d *Delivery, _ *render.Input) {
			d.Program = &compile.Program{Team: &fluxspec.TeamRules{Name: "dev-team"}}
		},
		"Nodes":     func(_ *Delivery, in *render.Input) { in.Cluster.Nodes = 2 },
		"Labels":    func(_ *Delivery, in *render.Input) { in.Cluster.Labels = map[string]string{"a": "b"} },
		"Origin":    func(_ *Delivery, in *render.Input) { in.Origin = map[string]any{"spec": 1} },
		"Variables": func(_ *Delivery, in *render.Input) { in.Variables = []variables.Layer{{Name: "x"}} },
		"Overrides": func(_ *Delivery, in *render.Input) { in.Overrides = []hubv1.Override{{Name: "x"}} },
		"KeptRelease": func(_ *Delivery, in *render.Input) {
			in.Releases = map[string]render.Kept{"x": {HelmReleaseIdentity: hubv1.HelmReleaseIdentity{Name: "y"}}}
		},
	} {
		if print(change) == same {
			t.Errorf("%s is not in it", name)
		}
	}
}
