// SPDX-License-Identifier: Apache-2.0

package folding_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/importer/folding"
)

// TestFoldAnything: whatever the objects are, the promise holds, and the order in which they are read changes nothing.
func TestFoldAnything(t *testing.T) {
	folded, left, sets := 0, 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 14))
		in := input(t, anything(r))
		in.CrossNamespace = r.IntN(2) == 0
		out := folding.Fold(in)
		if err := holds(in, out); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text(out))
		}
		accepted(t, out)
		folded, left, sets = folded+len(out.Folded), left+len(out.Left), sets+len(out.Sets)
		shuffled := in
		shuffled.Objects = slices.Clone(in.Objects)
		r.Shuffle(len(shuffled.Objects), func(i, j int) {
			shuffled.Objects[i], shuffled.Objects[j] = shuffled.Objects[j], shuffled.Objects[i]
		})
		if d := cmp.Diff(text(out), text(folding.Fold(shuffled))); d != "" {
			t.Fatalf("seed %d: in another order something else comes out:\n%s", seed, d)
		}
	}
	t.Logf("%d objects are folded into %d sets, and %d are left", folded, sets, left)
	if folded < 4*left || 2*folded < 3*sets {
		t.Errorf("%d objects are folded into %d sets, and %d are left: it gives up too soon", folded, sets, left)
	}
}

// anything returns a fleet in which each object differs from its likes in a few random places.
func anything(r *rand.Rand) string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	namespaces := []string{"tenants", "edge", "flux-system"}
	type cluster struct{ namespace, name, secret string }
	var clusters []cluster
	seen := map[string]bool{}
	for range 1 + r.IntN(5) {
		c := cluster{namespace: pick(namespaces...), name: pick("one", "two", "eu-1", "us-1", "a", "tenants")}
		c.secret = pick(c.name, c.name+"-kubeconfig", "cluster-kubeconfig")
		if !seen[c.namespace+c.secret] {
			seen[c.namespace+c.secret] = true
			clusters = append(clusters, c)
		}
	}
	var b strings.Builder
	write := func(o map[string]any) {
		raw, err := yaml.Marshal(o)
		if err != nil {
			panic(err)
		}
		b.WriteString("---\n" + string(raw))
	}
	shared := map[string]map[string]any{}
	for _, addon := range []string{"ingress", "policies", "db"} {
		shared[addon] = spec(r, addon)
	}
	for _, c := range clusters {
		if r.IntN(2) == 0 {
			write(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
				"name": c.secret, "namespace": c.namespace, "labels": map[string]any{"env": pick("dev", "prod"), "region": pick("eu", "us")}}})
		}
		for _, addon := range []string{"ingress", "policies", "db"} {
			if r.IntN(4) == 0 {
				continue
			}
			s := runtime.DeepCopyJSON(shared[addon])
			for range r.IntN(3) {
				change(r, s, c.name)
			}
			ref := map[string]any{"name": c.secret}
			s["kubeConfig"] = map[string]any{"secretRef": ref}
			kind, version := "HelmRelease", "helm.toolkit.fluxcd.io/v2"
			if addon == "policies" {
				kind, version = "Kustomization", "kustomize.toolkit.fluxcd.io/v1"
			} else if addon == "db" && r.IntN(2) == 0 {
				s["dependsOn"] = []any{map[string]any{"name": c.name + "-ingress"}}
			}
			write(map[string]any{"apiVersion": version, "kind": kind, "spec": s, "metadata": map[string]any{
				"name": c.name + "-" + addon, "namespace": c.namespace}})
		}
	}
	if b.Len() == 0 {
		return anything(r)
	}
	return b.String()
}

func spec(r *rand.Rand, addon string) map[string]any {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	if addon == "policies" {
		return map[string]any{"interval": "10m", "prune": r.IntN(2) == 0, "path": "./policies",
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet", "namespace": "flux-system"}}
	}
	s := map[string]any{"interval": pick("10m", "1h0m0s"), "values": map[string]any{"size": int64(1), "list": []any{"a"}}}
	if r.IntN(2) == 0 {
		s["releaseName"] = addon
	}
	if r.IntN(2) == 0 {
		s["targetNamespace"] = pick(addon, "apps")
	}
	if r.IntN(3) == 0 {
		s["chartRef"] = map[string]any{"kind": "OCIRepository", "name": addon}
	} else {
		s["chart"] = map[string]any{"spec": map[string]any{"chart": addon, "sourceRef": map[string]any{"kind": pick("HelmRepository", "GitRepository"), "name": "charts"}}}
	}
	return s
}

// change changes a spec in one place.
func change(r *rand.Rand, s map[string]any, name string) {
	values := func() map[string]any {
		v, _ := s["values"].(map[string]any)
		if v == nil {
			v = map[string]any{}
			if s["path"] == nil {
				s["values"] = v
			}
		}
		return v
	}
	all := []func(){
		func() { s["interval"] = "5m" },
		func() { s["timeout"] = "3m" },
		func() { values()["host"] = name + ".example.org" },
		func() { values()["host"] = "<<" + name + ">>" },
		func() { values()["size"] = int64(r.IntN(3)) },
		func() { values()["gone"] = nil },
		func() { delete(values(), "size") },
		func() { values()["list"] = []any{name, map[string]any{"x": nil}} },
		func() { values()["list"] = map[string]any{"a/b": "c", "d~e": int64(1)} },
		func() { values()["deep"] = map[string]any{"a": map[string]any{"b": name}} },
		func() { values()["deep"] = map[string]any{"a": "plain"} },
		func() { values()["deep"] = map[string]any{} },
		func() { delete(s, "values") },
		func() { values()[name] = "key" },
		func() { values()["tpl"] = "{{ .x }} ${y} << z" },
	}
	if s["path"] != nil {
		all = append(all,
			func() { s["path"] = "./clusters/" + name },
			func() { s["prune"] = true },
			func() { s["wait"] = true },
			func() { s["targetNamespace"] = name },
			func() { s["postBuild"] = map[string]any{"substitute": map[string]any{"cluster": name, "x": "${y}"}} },
			func() {
				s["postBuild"] = map[string]any{"substituteFrom": []any{map[string]any{"kind": "ConfigMap", "name": "v"}}}
			},
			func() { s["patches"] = []any{map[string]any{"patch": "- op: add\n  path: /a\n  value: " + name}} },
			func() { s["deletionPolicy"] = "Orphan" },
		)
	} else {
		all = append(all,
			func() { s["valuesFrom"] = []any{map[string]any{"kind": "Secret", "name": "v"}} },
			func() { s["releaseName"] = name + "-app" },
			func() {
				s["install"] = map[string]any{"createNamespace": true, "remediation": map[string]any{"retries": int64(3)}}
			},
			func() { s["upgrade"] = map[string]any{"strategy": map[string]any{"name": "RetryOnFailure"}} },
			func() { s["driftDetection"] = map[string]any{"mode": "enabled"} },
			func() { s["serviceAccountName"] = "flux" },
			func() { s["storageNamespace"] = "kube-system" },
			func() {
				if s["chart"] != nil {
					_ = unstructured.SetNestedField(s, "1.x", "chart", "spec", "version")
				}
			},
			func() {
				delete(s, "chartRef")
				s["chart"] = map[string]any{"spec": map[string]any{"chart": "other", "version": "1.x", "interval": "1m", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "o", "namespace": "flux-system"}}}
			},
		)
	}
	all[r.IntN(len(all))]()
}
