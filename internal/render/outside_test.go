// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// TestOutsideThePlatform: whatever a set outside the platform namespaces writes, what is made of it lies in the set's own namespace,
// goes to the cluster by the hub's own kubeconfig copy there, and refers to no other namespace. What asks for more is refused; where it is a
// variable of the cluster that does, what is made without it is confined as well.
func TestOutsideThePlatform(t *testing.T) {
	const (
		chart = `helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r$S}}}$R}`
		git   = `kustomization: {sourceRef: {kind: GitRepository, name: r$S}$R}`
	)
	body := func(form, source, rest string) string {
		return "{name: a, " + strings.NewReplacer("$S", source, "$R", rest).Replace(form) + "}"
	}
	cases := map[string]struct {
		addon string
		more  string // of the set
		ours  string // variables of the cluster
		want  string // part of the refusal; empty for none
	}{
		"Own":                 {addon: body(git, ", namespace: team", ""), want: ""},
		"Source":              {addon: body(git, ", namespace: flux-system", ""), want: "may refer only to sources in its own namespace"},
		"ChartSource":         {addon: body(chart, ", namespace: flux-system", ""), want: "may refer only to sources in its own namespace"},
		"ChartRef":            {addon: `{name: a, helmRelease: {chartRef: {kind: HelmChart, name: c, namespace: flux-system}}}`, want: "may refer only to sources in its own namespace"},
		"Expression":          {addon: body(git, `, namespace: "<< 'flux-' + 'system' >>"`, ""), want: "may refer only to sources in its own namespace"},
		"Variable":            {addon: body(git, `, namespace: "<< vars.ns >>"`, ""), more: "variables: {ns: flux-system}", want: "may refer only to sources in its own namespace"},
		"VariableOfTheirs":    {addon: body(git, `, namespace: "<< vars.ns >>"`, ""), more: "variables: {ns: team}", ours: "flux-system", want: "no cluster may decide this"},
		"ClusterLabel":        {addon: body(git, `, namespace: "<< cluster.labels['region'] >>"`, ""), want: `is "eu": a set outside`},
		"ChartByExpression":   {addon: body(chart, `, namespace: "<< 'flux-system' >>"`, ""), want: "may refer only to sources in its own namespace"},
		"Overlay":             {addon: body(git, "", ""), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, kustomization: {sourceRef: {namespace: flux-system}}}]}]`, want: "may refer only to sources in its own namespace"},
		"OverlayByExpression": {addon: body(git, "", ""), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, kustomization: {sourceRef: {namespace: "<< 'x' >>"}}}]}]`, want: "may refer only to sources in its own namespace"},
		"Patch":               {addon: body(git, "", ""), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, patches: [{op: add, path: /sourceRef/namespace, value: flux-system}]}]}]`, want: "may refer only to sources in its own namespace"},
		"PatchOfTheWhole":     {addon: body(git, "", ""), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, patches: [{op: replace, path: "", value: {sourceRef: {kind: GitRepository, name: r, namespace: flux-system}}}]}]}]`, want: "must name a field"},
		"PatchByCopy":         {addon: body(git, "", ", path: flux-system"), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, patches: [{op: copy, from: /path, path: /sourceRef/namespace}]}]}]`, want: "may refer only to sources in its own namespace"},
		"KubeConfig":          {addon: body(git, "", ", kubeConfig: {secretRef: {name: theirs}}"), want: "kubeConfig"},
		"KubeConfigOverlay":   {addon: body(git, "", ""), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, kustomization: {kubeConfig: {secretRef: {name: theirs}}}}]}]`, want: "kubeConfig"},
		"KubeConfigPatch":     {addon: body(git, "", ""), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, patches: [{op: add, path: /kubeConfig, value: {secretRef: {name: theirs}}}]}]}]`, want: "kubeConfig"},
		"NoKubeConfig":        {addon: body(git, "", ""), more: `overlays: [{name: o, when: "<< true >>", addons: [{name: a, kustomization: {kubeConfig: null}}]}]`, want: "kubeConfig"},
		"Suspend":             {addon: body(git, "", ", suspend: true"), want: "suspend"},
		"DependsOn":           {addon: body(git, "", ", dependsOn: [{name: x, namespace: flux-system}]"), want: "dependsOn"},
		"Adopt":               {addon: strings.Replace(body(git, "", ""), "{name: a,", "{name: a, adopt: {namespace: flux-system, name: x},", 1), want: "may take over only objects of its own namespace"},
		"AdoptByExpression":   {addon: strings.Replace(body(git, "", ""), "{name: a,", `{name: a, adopt: {namespace: "<< 'flux-system' >>", name: x},`, 1), want: "may take over only objects of its own namespace"},
		"AdoptOfNoName":       {addon: strings.Replace(body(git, "", ""), "{name: a,", `{name: a, adopt: {name: "<< cluster.name >>/b"},`, 1), want: `adopt.name: is "`},
		"AdoptOfNoNamespace":  {addon: strings.Replace(body(git, "", ""), "{name: a,", `{name: a, adopt: {namespace: "<< '..' >>", name: x},`, 1), want: `adopt.namespace: is "..", which no object can be called`},
		"MovedFrom":           {addon: strings.Replace(body(git, "", ""), "{name: a,", "{name: a, movedFrom: [{namespace: flux-system, addonSet: s}],", 1), want: "may take over only from sets in its own namespace"},
		"Manifests":           {addon: `{name: a, manifests: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: flux-system}}]}}`, want: ""}, // there, on the cluster
		"SourceSpec":          {addon: `{name: a, kustomization: {sourceRef: {name: own}}}`, more: "sources: [{name: own, kind: GitRepository, spec: {url: https://git.example.org, ref: {branch: main}, secretRef: {name: x, namespace: flux-system}}}]", want: "secretRef.namespace"},
		"OwnSource":           {addon: `{name: a, kustomization: {sourceRef: {name: own}}}`, more: "sources: [{name: own, kind: GitRepository, spec: {url: https://git.example.org, ref: {branch: main}}}]", want: ""},
		"ValuesFrom":          {addon: body(chart, "", ", valuesFrom: [{kind: Secret, name: x, namespace: flux-system}]"), want: "valuesFrom[0].namespace"},
		"SubstituteFrom":      {addon: body(git, "", ", postBuild: {substituteFrom: [{kind: Secret, name: x, namespace: flux-system}]}"), want: "substituteFrom[0].namespace"},
		"Decryption":          {addon: body(git, "", ", decryption: {provider: sops, secretRef: {name: x, namespace: flux-system}}"), want: "secretRef.namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := outside(t, tc.addon, tc.more, tc.ours)
			switch {
			case tc.want == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("accepted, want %q", tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("got %q, want %q", err, tc.want)
			}
			if tc.want == "" && len(objects) == 0 {
				t.Error("nothing is made")
			}
			for _, o := range objects {
				checkConfined(t, o)
			}
		})
	}
}

// outside returns what is made of a set in namespace team for a cluster there, or why it is refused.
func outside(t *testing.T, addon, more, ours string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	spec := &hubv1.AddonSetSpec{}
	if err := yaml.UnmarshalStrict([]byte("selectAll: true\naddons: ["+addon+"]\n"+more+"\n"), spec); err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Author{Namespace: "team"})
	if err != nil {
		return nil, err
	}
	to, in := fleetInput(1)
	to.Namespace, to.Registration.Namespace = "team", "team"
	to.Chart = render.ManifestChart{URL: "http://charts", Name: "c", Digest: "sha256:0"}
	if ours != "" {
		in.Variables = []variables.Layer{{Name: "the cluster", Values: map[string]any{"ns": ours}}}
	}
	r, err := render.Render(p, to, in)
	if err != nil {
		return nil, err
	}
	if len(r.Failed) > 0 {
		return nil, errors.New(r.Failed["a"].Error())
	}
	for _, refused := range r.Refused {
		err = errors.New(refused.String())
	}
	var out []*unstructured.Unstructured
	for _, o := range r.Objects {
		out = append(out, o.Manifest())
		for _, s := range o.Shared {
			out = append(out, s.Object)
		}
	}
	return out, err
}

// checkConfined wants an object to stay in namespace team, and to lead Flux to the cluster.
func checkConfined(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if o.GetNamespace() != "team" {
		t.Errorf("%s %s is in namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
	}
	for _, path := range []string{"sourceRef", "chartRef", "chart.spec.sourceRef", "secretRef", "kubeConfig.secretRef"} {
		ns, _, _ := unstructured.NestedString(o.Object, append([]string{"spec"}, strings.Split(path+".namespace", ".")...)...)
		if ns != "" && ns != "team" {
			t.Errorf("%s %s refers to namespace %q by spec.%s", o.GetKind(), o.GetName(), ns, path)
		}
	}
	if kind := o.GetKind(); kind != "HelmRelease" && kind != "Kustomization" {
		return
	}
	copied, _, _ := unstructured.NestedMap(o.Object, "spec", "kubeConfig", "secretRef")
	if want := identity.KubeconfigCopy("chandler", types.NamespacedName{Namespace: "team", Name: "tenant1"}); fmt.Sprint(copied["name"]) != want {
		t.Errorf("%s %s goes by Secret %v, want %s", o.GetKind(), o.GetName(), copied, want)
	}
}
