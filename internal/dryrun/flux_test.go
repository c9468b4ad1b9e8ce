// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/inflate"
)

// TestPartOf: what is applied, as whom, and with which marks.
func TestPartOf(t *testing.T) {
	result := &inflate.Result{Objects: make([]*unstructured.Unstructured, 3), CRDs: make([]*unstructured.Unstructured, 2)}
	for name, tc := range map[string]struct {
		kind, spec  string
		wanted, old *inflate.Result
		want        string
	}{
		"a new release":                {kind: "HelmRelease", spec: "{targetNamespace: shop, install: {createNamespace: true}}", wanted: result, want: "helm-controller in shop makes shop: 3 wanted, 0 old, 0 crds, 2 once"},
		"a release":                    {kind: "HelmRelease", spec: "{install: {createNamespace: true}}", wanted: result, old: result, want: "helm-controller in shop: 3 wanted, 3 old, 0 crds, 0 once"},
		"CRDs of a release":            {kind: "HelmRelease", spec: "{upgrade: {crds: CreateReplace}}", wanted: result, old: result, want: "helm-controller in shop: 3 wanted, 3 old, 2 crds, 0 once"},
		"no CRDs of a release":         {kind: "HelmRelease", spec: "{install: {crds: Skip}}", wanted: result, want: "helm-controller in shop: 3 wanted, 0 old, 0 crds, 0 once"},
		"a release that goes":          {kind: "HelmRelease", spec: "{}", old: result, want: "helm-controller in shop: 0 wanted, 3 old, 0 crds, 0 once"},
		"a folder":                     {kind: "Kustomization", spec: "{prune: true, force: true}", wanted: result, old: result, want: "kustomize-controller in  recreates: 3 wanted, 3 old, 0 crds, 0 once"},
		"a folder that prunes nothing": {kind: "Kustomization", spec: "{prune: false}", wanted: result, old: result, want: "kustomize-controller in : 3 wanted, 0 old, 0 crds, 0 once"},
	} {
		flux := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte("{metadata: {name: f, namespace: hub}, spec: "+tc.spec+"}"), &flux.Object); err != nil {
			t.Fatal(err)
		}
		group := map[string]string{"HelmRelease": "helm", "Kustomization": "kustomize"}[tc.kind] + ".toolkit.fluxcd.io"
		flux.SetAPIVersion(group + "/v1")
		flux.SetKind(tc.kind)
		p := PartOf(flux, hubv1.HelmReleaseIdentity{Name: "r", Namespace: "shop"}, tc.wanted, tc.old)
		got := p.Manager + " in " + p.Namespace
		if p.Makes != "" {
			got += " makes " + p.Makes
		}
		if p.Recreate {
			got += " recreates"
		}
		got += fmt.Sprintf(": %d wanted, %d old, %d crds, %d once", len(p.Wanted), len(p.Old), len(p.crds), len(p.once))
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetLabels(map[string]string{"own": "1"})
		p.owned(u, false)
		want := map[string]string{"own": "1", group + "/name": "f", group + "/namespace": "hub"}
		if tc.kind == "HelmRelease" {
			want["app.kubernetes.io/managed-by"] = "Helm"
		}
		if d := cmp.Diff(want, u.GetLabels()); d != "" || (tc.kind == "HelmRelease") != (u.GetAnnotations()["meta.helm.sh/release-name"] == "r") {
			t.Errorf("%s: -want +got %s; %v", name, d, u.GetAnnotations())
		}
	}
}
