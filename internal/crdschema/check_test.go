// SPDX-License-Identifier: Apache-2.0

package crdschema_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-hub/chandler/internal/crdschema"
)

var kinds = map[string]schema.GroupVersionKind{}

func init() {
	for _, k := range []schema.GroupVersionKind{
		{Group: "chandler.dev", Version: "v1alpha1", Kind: "AddonSet"},
		{Group: "chandler.dev", Version: "v1alpha1", Kind: "ClusterRegistration"},
		{Group: "chandler.dev", Version: "v1alpha1", Kind: "Team"},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "Bucket"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmChart"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmRepository"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"},
	} {
		kinds[k.Kind] = k
	}
}

func object(t *testing.T, kind, spec string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("apiVersion: " + kinds[kind].GroupVersion().String() + "\nkind: " + kind + "\nmetadata: {name: one, namespace: two}\nspec: " + spec))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEveryKindIsBuiltIn: each copy can be read, and its rules compile.
func TestEveryKindIsBuiltIn(t *testing.T) {
	for name, kind := range kinds {
		s := (*crdschema.Library)(nil).Of(kind)
		if s == nil {
			t.Errorf("there is no schema of %s", kind)
			continue
		}
		for _, p := range s.Check(object(t, name, "{}"), crdschema.Options{}) {
			if strings.Contains(p.Message, "compil") {
				t.Errorf("%s: %s", name, p)
			}
		}
	}
	if (*crdschema.Library)(nil).Of(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "../X"}) != nil {
		t.Error("there is a schema of what is no kind")
	}
}

func TestCheck(t *testing.T) {
	const chart = "chart: {spec: {chart: x, sourceRef: {kind: HelmRepository, name: x}}}, interval: 10m"
	const addon = "manifests: {objects: []}"
	for name, tc := range map[string]struct {
		kind, spec string
		o          crdschema.Options
		want       []string
	}{
		"Good":            {kind: "HelmRelease", spec: "{" + chart + "}"},
		"NullsAreLeft":    {kind: "HelmRelease", spec: "{" + chart + ", timeout: null}"},
		"Enum":            {kind: "HelmRelease", spec: "{" + chart + ", driftDetection: {mode: Enabled}}", want: []string{`spec.driftDetection.mode: is "Enabled": write one of enabled, warn or disabled`}},
		"EnumOfMany":      {kind: "HelmRelease", spec: "{" + chart + ", install: {crds: Createreplace}}", want: []string{`spec.install.crds: is "Createreplace": write one of Skip, Create or CreateReplace`}},
		"Empty":           {kind: "HelmRelease", spec: "{" + chart + ", targetNamespace: ''}", want: []string{"spec.targetNamespace: is empty: write a text, or leave the field out"}},
		"TooLong":         {kind: "HelmRelease", spec: "{" + chart + ", releaseName: " + strings.Repeat("a", 54) + "}", want: []string{"spec.releaseName: is longer than 53 characters, which are the most"}},
		"Scheme":          {kind: "HelmRepository", spec: "{url: charts.example.org}", want: []string{`spec.url: is "charts.example.org": write an address that begins with http://, https:// or oci://`}},
		"OneScheme":       {kind: "OCIRepository", spec: "{url: https://example.org, interval: 1m}", want: []string{`spec.url: is "https://example.org": write an address that begins with oci://`}},
		"Duration":        {kind: "HelmRelease", spec: "{" + chart + ", timeout: 5d}", want: []string{`spec.timeout: is "5d": write a duration such as 10m, in ms, s, m and h`}},
		"Type":            {kind: "Kustomization", spec: "{interval: 1m, prune: 'yes', sourceRef: {kind: Bucket, name: x}}", want: []string{"spec.prune: is a text, and must be true or false"}},
		"Required":        {kind: "Kustomization", spec: "{interval: 1m, sourceRef: {kind: Bucket}}", want: []string{"spec.prune: is required", "spec.sourceRef.name: is required"}},
		"Unknown":         {kind: "Kustomization", spec: "{interval: 1m, prune: true, pth: ./x, sourceRef: {kind: Bucket, name: x, nmespace: y}}", want: []string{"spec.pth: is not a field of a Flux Kustomization; did you mean path?", "spec.sourceRef.nmespace: is not a field of a Flux Kustomization; did you mean namespace?"}},
		"UnknownInList":   {kind: "AddonSet", spec: "{selectAll: true, addons: [{name: a, " + addon + ", dependson: []}]}", want: []string{"spec.addons[0].dependson: is not a field of an AddonSet; did you mean dependsOn?"}},
		"UnknownOfOther":  {kind: "Kustomization", spec: "{interval: 1m, prune: true, zzz: 1, sourceRef: {kind: Bucket, name: x}}", want: []string{"spec.zzz: is not a field of a Flux Kustomization"}},
		"Rule":            {kind: "Bucket", spec: "{bucketName: x, endpoint: x, interval: 1m, provider: gcp, sts: {provider: aws, endpoint: 'https://x'}}", want: []string{"spec: STS configuration is only supported for the 'aws' and 'generic' Bucket providers"}},
		"Pattern":         {kind: "AddonSet", spec: "{selectAll: true, addons: [{name: Web_1, " + addon + "}]}", want: []string{`spec.addons[0].name: is "Web_1": write lower-case letters, digits and -, with a letter or a digit at both ends`}},
		"Account":         {kind: "ClusterRegistration", spec: "{kubeConfig: {secretRef: {name: x}}, serviceAccountName: No_Name}", want: []string{`spec.serviceAccountName: is "No_Name": write the name of an object: lower-case letters, digits, - and ., with a letter or a digit at both ends`}},
		"NoAccount":       {kind: "ClusterRegistration", spec: "{kubeConfig: {secretRef: {name: x}}, serviceAccountName: ''}"},
		"Expression":      {kind: "AddonSet", spec: "{selectAll: true, addons: [{name: '<< cluster.name >>-x', " + addon + "}]}", want: []string{`spec.addons[0].name: is "<< cluster.name >>-x", and expressions are not read here: write the value itself`}},
		"NoEntries":       {kind: "AddonSet", spec: "{selectAll: true, addons: []}", want: []string{"spec.addons: must have at least 1 entry"}},
		"Twice":           {kind: "AddonSet", spec: "{selectAll: true, addons: [{name: a, " + addon + "}, {name: a, " + addon + "}]}", want: []string{`spec.addons[1]: is there twice ({"name":"a"}); write it once`}},
		"Maximum":         {kind: "AddonSet", spec: "{selectAll: true, priority: 1001, addons: [{name: a, " + addon + "}]}", want: []string{"spec.priority: is 1001: write a number up to 1000"}},
		"Hole":            {kind: "HelmRelease", spec: "{" + chart + ", driftDetection: {mode: 1m}, targetNamespace: ''}", o: crdschema.Options{Holes: []string{"spec.driftDetection.mode", "spec.targetNamespace"}}},
		"HoleInARule":     {kind: "Bucket", spec: "{bucketName: x, endpoint: x, interval: 1m, provider: 1m, sts: {provider: aws, endpoint: 'https://x'}}", o: crdschema.Options{Holes: []string{"spec.provider"}}},
		"RuleBesideAHole": {kind: "Bucket", spec: "{bucketName: 1m, endpoint: x, interval: 1m, provider: gcp, sts: {provider: aws, endpoint: 'https://x'}}", o: crdschema.Options{Holes: []string{"spec.bucketName"}}},
		"Part": {kind: "HelmRelease", spec: "{driftDetection: {mode: on-demand}, valuesFrom: [{name: x}]}", o: crdschema.Options{Partial: true},
			want: []string{`spec.driftDetection.mode: is "on-demand": write one of enabled, warn or disabled`, "spec.valuesFrom[0].kind: is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range (*crdschema.Library)(nil).Of(kinds[tc.kind]).Check(object(t, tc.kind, tc.spec), tc.o) {
				got = append(got, p.String())
			}
			if a, b := strings.Join(got, "\n"), strings.Join(tc.want, "\n"); a != b {
				t.Errorf("got:\n%s\nwant:\n%s", a, b)
			}
		})
	}
}

// BenchmarkCheck is one object, without its values.
func BenchmarkCheck(b *testing.B) {
	raw, err := yaml.YAMLToJSON([]byte(`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: one, namespace: two}, spec: {interval: 10m,
		chart: {spec: {chart: x, version: 1.2.3, sourceRef: {kind: HelmRepository, name: x}}}, targetNamespace: x, install: {crds: Skip}, upgrade: {crds: Skip}}}`))
	if err != nil {
		b.Fatal(err)
	}
	s := (*crdschema.Library)(nil).Of(kinds["HelmRelease"])
	b.ReportAllocs()
	for b.Loop() {
		m := map[string]any{}
		if err := json.Unmarshal(raw, &m); err != nil {
			b.Fatal(err)
		}
		if p := s.Check(m, crdschema.Options{}); len(p) > 0 {
			b.Fatal(p)
		}
	}
}

// TestRuleThatCannotBeCompiled: the CRD of a later Flux may have a rule that calls what only a later API server knows. The other
// rules count.
func TestRuleThatCannotBeCompiled(t *testing.T) {
	l, err := crdschema.Parse([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: buckets.source.toolkit.fluxcd.io},
		spec: {group: source.toolkit.fluxcd.io, scope: Namespaced, names: {kind: Bucket, plural: buckets}, versions: [{name: v1, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {count: {type: integer}},
		x-kubernetes-validations: [{rule: self.count.ofTomorrow()}, {rule: self.count > 1, message: is too few}]}}}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for count, want := range map[string]string{"1": "[spec: is too few]", "2": "[]"} {
		if got := fmt.Sprint(l.Of(kinds["Bucket"]).Check(object(t, "Bucket", "{count: "+count+"}"), crdschema.Options{})); got != want {
			t.Errorf("count %s: %s, want %s", count, got, want)
		}
	}
}
