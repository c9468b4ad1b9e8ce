// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
)

func target(name string) render.Target {
	return render.Target{HubID: "chandler", Namespace: "flux-system", Set: "base", Delivery: "base-" + name, Registration: types.NamespacedName{Namespace: "tenants", Name: name}}
}

func program(t *testing.T, dir string) *compile.Program {
	t.Helper()
	raw := must.Read(t, filepath.Join(dir, "in.yaml"))
	set := &hubv1.AddonSet{}
	must.Do(t, yaml.UnmarshalStrict(raw, set))
	return compiled(t, &set.Spec)
}

// programOfSpec compiles the spec of a platform's set.
func programOfSpec(t *testing.T, text string) *compile.Program {
	t.Helper()
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), spec))
	return compiled(t, spec)
}

func compiled(t *testing.T, spec *hubv1.AddonSetSpec) *compile.Program {
	t.Helper()
	return must.Get(compile.Compile(spec, fluxspec.Author{Namespace: "flux-system", Platform: true})).Or(t)
}

func renders(t *testing.T, p *compile.Program, to render.Target, in *render.Input) *render.Result {
	t.Helper()
	return must.Get(render.Render(p, to, in)).Or(t)
}

func print(t *testing.T, p *compile.Program, to render.Target) string {
	t.Helper()
	result := rendered(t, p, to)
	var b strings.Builder
	for _, o := range result.Objects {
		docs := []any{o.Manifest().Object}
		for _, s := range o.Shared {
			docs = append(docs, s.Object.Object)
		}
		for _, d := range docs {
			raw := must.Get(yaml.Marshal(d)).Or(t)
			b.WriteString("---\n" + string(raw))
		}
	}
	return b.String()
}

// TestGolden renders every set under testdata. When a golden file has to change after a release, so has render.Epoch: a hub
// that renders otherwise must not roll the fleet by being upgraded.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	var all strings.Builder
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			p := program(t, dir)
			got := print(t, p, target("tenant1"))
			if again := print(t, p, target("tenant1")); again != got {
				t.Errorf("rendering changed the program: %s", cmp.Diff(got, again))
			}
			all.WriteString(got)
			golden.Compare(t, filepath.Join(dir, "want.yaml"), got)
		})
	}
	const digest, epoch = "11050c0ce5d89eeb", 4
	if got := identity.Hash(16, all.String()); got != digest || render.Epoch != epoch {
		t.Errorf("the output is %s at epoch %d, and was %s at epoch %d: raise render.Epoch if a release has had the old one, and note both here", got, render.Epoch, digest, epoch)
	}
}

func TestClustersShareCharts(t *testing.T) {
	p := program(t, "testdata/helmrelease")
	a, b := rendered(t, p, target("tenant1")).Objects[0], rendered(t, p, target("tenant2")).Objects[0]
	if a.Shared[0].Hash != b.Shared[0].Hash || a.Shared[0].Object.GetName() != b.Shared[0].Object.GetName() {
		t.Error("two clusters with one template have two charts")
	}
	if a.Name == b.Name || a.Hash == b.Hash {
		t.Error("two clusters share a HelmRelease")
	}
	c := rendered(t, program(t, "testdata/foreign-source"), target("tenant1")).Objects[0]
	if c.Shared[0].Object.GetName() == a.Shared[0].Object.GetName() {
		t.Error("two templates have one chart")
	}
}
