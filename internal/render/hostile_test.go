// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// An expression that would run for minutes, in every add-on, costs a bounded time and a clear error. The deadline is far above
// what it takes.
func TestHostileExpressions(t *testing.T) {
	loop := "[1,2,3,4,5,6,7,8,9,10]"
	costly := loop
	for range 9 {
		costly = fmt.Sprintf("%s.map(x%d, %s)", loop, strings.Count(costly, "map"), costly)
	}
	cases := map[string]struct{ value, want string }{
		"OneOfThem":         {"<< size(" + costly + ") >>", "costs more than the limit"},
		"JustBelowTheBound": {"<< lists.range(9000).map(x, lists.range(50)).size() >>", "cost too much together"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("selectAll: true\naddons:\n")
			for i := range 100 {
				fmt.Fprintf(&b, "- {name: a%d, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, values: {x: %q}}}\n", i, tc.value)
			}
			spec := &hubv1.AddonSetSpec{}
			must.Do(t, yaml.UnmarshalStrict([]byte(b.String()), spec))
			done := make(chan *render.Result, 1)
			go func() {
				p, err := compile.Compile(spec, compile.Author{Namespace: "flux-system", Platform: true})
				if err != nil {
					t.Error(err)
					done <- &render.Result{}
					return
				}
				to, in := fleetInput(1)
				r, err := render.Render(p, to, in)
				if err != nil {
					t.Error(err)
				}
				done <- r
			}()
			select {
			case r := <-done:
				if len(r.Failed) == 0 {
					t.Fatal("nothing is wrong")
				}
				if got := r.Failed["a99"].Error(); !strings.Contains(got, tc.want) && !strings.Contains(got, "cost too much together") {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it takes longer than 30 s")
			}
		})
	}
}

// TestHostileReferences: a set that refers to as many documents as fit into it costs the hub neither the time to look for each among all
// others, nor the memory to note each for every cluster.
func TestHostileReferences(t *testing.T) {
	var b strings.Builder
	b.WriteString("selectAll: true\naddons:\n- name: a\n  manifests:\n    manifestsFrom:\n")
	const many = 30_000
	for i := range many {
		fmt.Fprintf(&b, "    - {kind: ConfigMap, name: a%d, optional: true}\n", i)
	}
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte(b.String()), spec))
	p := must.Get(compile.Compile(spec, compile.Author{Namespace: "team-a"})).Or(t)
	to, in := fleetInput(1)
	to.Chart = render.ManifestChart{URL: "http://chandler", Name: "manifests", Digest: "sha256:0"}
	begin := time.Now()
	r, err := render.Render(p, to, in)
	if err != nil || len(r.Refs) > 1000 || len(r.Missing) > 1000 {
		t.Fatalf("%v, %d documents, %d missing", err, len(r.Refs), len(r.Missing))
	}
	in.Documents = map[document.Ref]document.Document{}
	for _, ref := range r.Missing {
		in.Documents[ref] = document.Document{}
	}
	if r, err = render.Render(p, to, in); err != nil || !strings.Contains(r.Failed["a"].Error(), "more than 1000 ConfigMaps and Secrets") {
		t.Fatalf("%v, %v", err, r.Failed)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it takes %s", took)
	}
}

// What the expressions of one document give is bounded before anybody writes it down as JSON: a set of a few kilobytes could else have the hub
// make gigabytes of one large variable. A variable that others make larger and larger is bounded as well.
func TestHostileSizes(t *testing.T) {
	text, list := `"`+strings.Repeat("x", 200<<10)+`"`, "["+strings.Repeat("1,", 15000)+"1]"
	many := "[" + strings.Repeat("<< vars.b >>,", 1000) + "]"
	for name, tc := range map[string]struct {
		variables, value string
		addons           int
		want             string
	}{
		"Text":       {"{b: " + text + "}", many, 1, "together larger than"},
		"List":       {"{b: " + list + "}", many, 1, "together larger than"},
		"Variables":  {"{b: " + text + ", c: " + many + "}", "<< vars.c >>", 1, "together larger than"},
		"ManyAddons": {"{b: " + list + "}", "[" + strings.Repeat("<< vars.b >>,", 30) + "]", 100, "cost too much together"},
	} {
		t.Run(name, func(t *testing.T) {
			in := "selectAll: true\nvariables: " + tc.variables + "\naddons:\n"
			for i := range tc.addons {
				in += fmt.Sprintf("- {name: a%d, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, values: {x: %s}}}\n", i, tc.value)
			}
			p := programOfSpec(t, in)
			to, input := fleetInput(1)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := render.Render(p, to, input)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r.Failed[fmt.Sprintf("a%d", tc.addons-1)]); !strings.Contains(got, tc.want) || len(got) > 2000 {
				t.Errorf("got %.500s", got)
			}
			if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 500 {
				t.Errorf("%d MiB are made of it", made)
			}
		})
	}
}

// Patches that copy again and again make no document that takes minutes to go through, and many of them do not either.
func TestHostilePatches(t *testing.T) {
	copies := func(i int) string {
		return fmt.Sprintf("{op: copy, from: /values/x, path: /values/y%d}, {op: copy, from: /values/x, path: /values/z%d}", i, i)
	}
	for name, tc := range map[string]struct {
		size, addons int
		patch        func(int) string
		want         string
	}{
		"Copies": {500 << 10, 1, copies, "they make a document of"},
		"Many":   {15 << 10, 60, func(int) string { return "{op: add, path: /values/y, value: 1}" }, "too many of them"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("selectAll: true\naddons:\n")
			for i := range tc.addons {
				fmt.Fprintf(&b, "- {name: a%d, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, values: {x: %s}}}\n", i, strings.Repeat("x", tc.size))
			}
			b.WriteString("overlays:\n")
			for i := range 100 {
				fmt.Fprintf(&b, "- {name: o%d, when: \"<< true >>\", addons: [", i)
				for a := range tc.addons {
					fmt.Fprintf(&b, "{name: a%d, patches: [%s]},", a, tc.patch(i))
				}
				b.WriteString("]}\n")
			}
			p := programOfSpec(t, b.String())
			to, in := fleetInput(1)
			began := time.Now()
			r := renders(t, p, to, in)
			if got := fmt.Sprint(r.Failed[fmt.Sprintf("a%d", tc.addons-1)]); !strings.Contains(got, tc.want) || len(got) > 500 {
				t.Errorf("got %.500s", got)
			}
			if took := time.Since(began); took > 60*time.Second {
				t.Errorf("it takes %s", took)
			}
		})
	}
}

// A cluster's owner who has so many overrides that their patches take too long gets the add-on without them. He keeps nothing of the set off.
func TestHostileOverridesAreNoVeto(t *testing.T) {
	var b strings.Builder
	b.WriteString("selectAll: true\naddons:\n")
	for i := range 3 {
		fmt.Fprintf(&b, "- {name: a%d, overridable: [values.y], helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, values: {x: %s}}}\n",
			i, strings.Repeat("x", 300<<10))
	}
	b.WriteString("overlays: [{name: o, when: \"<< true >>\", addons: [{name: a2, patches: [{op: add, path: /values/z, value: 1}]}]}]\n")
	p := programOfSpec(t, b.String())
	to, in := fleetInput(1)
	for i := range 3 {
		for range 80 {
			in.Overrides = append(in.Overrides, hubv1.Override{Name: fmt.Sprintf("a%d", i), Patches: []hubv1.PatchOperation{
				{Op: "add", Path: "/values/y", Value: &apiextensionsv1.JSON{Raw: []byte("1")}},
			}})
		}
	}
	r, err := render.Render(p, to, in)
	if err != nil || len(r.Failed) > 0 || len(r.Objects) != 3 {
		t.Fatalf("%d objects, failed %v, %v", len(r.Objects), r.Failed, err)
	}
	if len(r.Refused) == 0 {
		t.Error("nothing is refused")
	}
}

// TestHostileVariables: a cluster's owner who has as many variables as fit into a registration, and an override that fails, costs the hub no
// look at each variable for each other one.
func TestHostileVariables(t *testing.T) {
	p := programOfSpec(t, "selectAll: true\naddons:\n- {name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, values: {x: 1}}}\n")
	to, in := fleetInput(1)
	values := map[string]any{}
	for i := range 100_000 {
		values[fmt.Sprintf("v%d", i)] = int64(1)
	}
	in.Variables = []variables.Layer{{Name: "owner", Values: values}}
	in.Overrides = []hubv1.Override{{Name: "a", Patches: []hubv1.PatchOperation{{Op: "test", Path: "/values/x", Value: &apiextensionsv1.JSON{Raw: []byte("2")}}}}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := render.Render(p, to, in)
		if err != nil || len(r.Failed) > 0 || len(r.Objects) != 1 || len(r.Refused) == 0 {
			t.Errorf("%d objects, failed %v, %v", len(r.Objects), r.Failed, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it takes longer than 10 s")
	}
}

// TestManyVariablesAreRefusedInShort: the hub remembers what it has refused for each add-on of each cluster, and not all names of a registration
// that has a hundred thousand.
func TestManyVariablesAreRefusedInShort(t *testing.T) {
	p := programOfSpec(t, "selectAll: true\nvariables: {w: '1'}\naddons:\n- name: a\n  helmRelease:\n    chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}\n"+
		"    values: {x: << size(vars) + int(vars.w) >>}\n")
	values := map[string]any{"w": "no number"}
	for i := range 1000 {
		values[fmt.Sprintf("v%d", i)] = int64(1)
	}
	to, in := fleetInput(1)
	in.Variables = []variables.Layer{{Name: "owner", Values: values}}
	r, err := render.Render(p, to, in)
	if err != nil || len(r.Objects) != 1 || len(r.Refused) == 0 {
		t.Fatalf("%d objects, failed %v, %v", len(r.Objects), r.Failed, err)
	}
	names := 0
	for _, refused := range r.Refused {
		names += len(refused.Variables)
		if text := refused.String(); len(text) > 1000 || !strings.Contains(text, " and 981 more are ignored here") {
			t.Errorf("it says %.300s", text)
		}
	}
	if names > 100 {
		t.Errorf("%d names", names)
	}
}

// TestManyMistakesAreToldInShort: the hub remembers why an add-on is not rendered, for each cluster, and a short expression makes thousands of
// objects of which each lacks everything.
func TestManyMistakesAreToldInShort(t *testing.T) {
	p := programOfSpec(t, "selectAll: true\naddons:\n- {name: a, manifests: {objects: \"<< lists.range(9999).map(x, {}) >>\"}}\n")
	to, in := fleetInput(1)
	to.Chart = render.ManifestChart{URL: "http://chandler", Name: "manifests", Digest: "sha256:0"}
	r, err := render.Render(p, to, in)
	if err != nil || len(r.Failed["a"]) == 0 {
		t.Fatalf("%v, %v", r.Failed, err)
	}
	if n := len(r.Failed["a"]); n > 200 {
		t.Errorf("%d mistakes are remembered", n)
	}
}
