// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestIgnored is the table of what an API server lets pass, and Flux, Helm or kustomize then ignore, or fail for with words that name no
// remedy. Each is refused with a remedy (want), or docs/addonsets.md says what becomes of it (doc). What is neither is fine.
func TestIgnored(t *testing.T) {
	const (
		chart  = "chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, "
		folder = "sourceRef: {kind: GitRepository, name: g}, "
	)
	helm := func(rest string) string { return "{" + chart + rest + "}" }
	version := func(v, kind string) string {
		return "{chart: {spec: {chart: ./c, version: " + v + ", sourceRef: {kind: " + kind + ", name: r}}}}"
	}
	substitute := func(s string) string { return "{" + folder + "postBuild: {substitute: {" + s + "}}}" }
	raw := must.Read(t, "../../docs/addonsets.md")
	const noObject = "and must be an object: Flux ignores anything else, and the chart runs with its defaults; "
	for name, tc := range map[string]struct{ kind, body, want, doc string }{
		// helm-controller api/v2 GetValues drops the error of a value that is no object.
		"values as text":         {body: helm(`values: "a: 1"`), want: `values: is a text, ` + noObject + `write "values:" without | or quotes`},
		"values as a list":       {body: helm("values: [a]"), want: "values: is a list, " + noObject + "write the chart's values by their names"},
		"values as a number":     {body: helm("values: 1"), want: "values: is a number, " + noObject + "write the chart's values by their names"},
		"values as true":         {body: helm("values: true"), want: "values: is true or false, " + noObject + "write the chart's values by their names"},
		"values as nothing":      {body: helm("values: null")},
		"values as an object":    {body: helm("values: {a: [1]}")},
		"a value of no template": {body: helm("values: {replicaCuont: 2}"), doc: "a value that no template of the chart reads"},
		// pkg/chartutil: an optional reference whose key is not there is skipped, and strvals ignores a path that begins with a dot or an index.
		"a key that cannot be":     {body: helm("valuesFrom: [{kind: Secret, name: a, valuesKey: .., optional: true}]"), want: `valuesFrom[0].valuesKey: is "..", which no key can be called`},
		"an optional document":     {body: helm("valuesFrom: [{kind: Secret, name: a, valuesKey: none, optional: true}]"), doc: "`valuesFrom` with `optional`"},
		"a path of nothing":        {body: helm(`valuesFrom: [{kind: Secret, name: a, targetPath: .a}]`), want: `valuesFrom[0].targetPath: is ".a", which leads to no value`},
		"a path of an index":       {body: helm(`valuesFrom: [{kind: Secret, name: a, targetPath: "[0].a"}]`), want: `valuesFrom[0].targetPath: is "[0].a", which leads to no value`},
		"a path with a hole":       {body: helm(`valuesFrom: [{kind: Secret, name: a, targetPath: a..b}]`), want: `valuesFrom[0].targetPath: is "a..b", which leads to no value`},
		"a path that is not over":  {body: helm(`valuesFrom: [{kind: Secret, name: a, targetPath: a.}]`), want: `valuesFrom[0].targetPath: is "a.", which leads to no value`},
		"a path after an index":    {body: helm(`valuesFrom: [{kind: Secret, name: a, targetPath: "a[0]b"}]`), want: `valuesFrom[0].targetPath: is "a[0]b", which leads to no value`},
		"a path":                   {body: helm(`valuesFrom: [{kind: Secret, name: a, targetPath: 'a\.b/c[0][1].d', literal: true}]`)},
		"literal without a path":   {body: helm(`valuesFrom: [{kind: Secret, name: a, literal: true}]`), want: "valuesFrom[0].literal: has an effect with targetPath alone"},
		"drift of no pointer":      {body: helm(`driftDetection: {ignore: [{paths: [/a, spec.replicas]}]}`), want: `driftDetection.ignore[0].paths[1]: is "spec.replicas", and must be a JSON pointer, such as /spec/replicas; a / within a name is written ~1`},
		"drift of all":             {body: helm(`driftDetection: {ignore: [{paths: ["", /metadata/annotations/a.b~1c]}]}`)},
		"drift of a Kustomization": {kind: "Kustomization", body: "{" + folder + "ignore: [{paths: [spec]}]}", want: `ignore[0].paths[0]: is "spec", and must be a JSON pointer`},
		// source-controller: the version of a chart is for a HelmRepository.
		"a version":              {body: version(`">=1.0.0 <2 || 3.x"`, "HelmRepository")},
		"a version that is none": {body: version("v^4.0", "HelmRepository"), want: `chart.spec.version: is "v^4.0", which is neither a version nor a range of versions; write one such as 4.0.1, 4.x or ^4.0`},
		"a version of a tag":     {body: version("latest", "HelmRepository"), want: `chart.spec.version: is "latest", which is neither`},
		"a version in Git":       {body: version("1.2.3", "GitRepository"), want: "chart.spec.version: has no effect on a chart from a GitRepository"},
		"a version in a bucket":  {body: version("1.x", "Bucket"), want: "chart.spec.version: has no effect on a chart from a Bucket"},
		"any version in Git":     {body: version(`"*"`, "GitRepository")},
		// pkg/kustomize: a name fails the whole folder, and \n is taken out of a value.
		"a name with a dash":     {kind: "Kustomization", body: substitute("my-name: a"), want: "postBuild.substitute.my-name: Flux takes no such name of a variable, and would apply nothing"},
		"a name with a digit":    {kind: "Kustomization", body: substitute("1a: a"), want: "postBuild.substitute.1a: Flux takes no such name"},
		"a value of lines":       {kind: "Kustomization", body: substitute(`cert: "a\nb\n"`), want: "postBuild.substitute.cert: is of several lines, and Flux would write them without their ends as one"},
		"a value of one line":    {kind: "Kustomization", body: substitute(`_a1: "a b\n"`)},
		"a variable of nothing":  {kind: "Kustomization", body: substitute("unread: a"), doc: "a variable that the folder does not read"},
		"a patch of nothing":     {kind: "Kustomization", body: "{" + folder + "patches: [{target: {kind: None}, patch: '[]'}]}", doc: "whose `target` no object matches"},
		"an image of nothing":    {kind: "Kustomization", body: "{" + folder + "images: [{name: none, newTag: a}]}", doc: "`images` that no object has"},
		"checks with wait":       {kind: "Kustomization", body: "{" + folder + "wait: true, healthChecks: [{kind: Deployment, name: a, namespace: b}]}", doc: "`healthChecks` beside `wait: true`"},
		"a key of manifests":     {kind: "Manifests", body: `{manifestsFrom: [{kind: Secret, name: a, key: "a/b", optional: true}]}`, want: `manifestsFrom[0].key: is "a/b", which no key can be called`},
		"a hook among manifests": {kind: "Manifests", body: `{objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: test}}}]}`, doc: "`helm.sh/hook` and its like"},
		// source-controller: a HelmRepository of another type stalls, and add-ons say "no artifact".
		"a registry without a type": {kind: "HelmRepository", body: "{url: oci://example.org/charts}", want: "type: is required: write type: oci"},
		"a registry as default":     {kind: "HelmRepository", body: "{url: oci://example.org/charts, type: default}", want: "type: is default, and the address is one of a registry (oci://): write oci"},
		"an address as a registry":  {kind: "HelmRepository", body: "{url: https://example.org/charts, type: oci}", want: `url: is "https://example.org/charts", and a HelmRepository of type oci has an address that begins with oci://`},
		"a registry":                {kind: "HelmRepository", body: "{url: oci://example.org/charts, type: oci}"},
		"what is for a registry":    {kind: "HelmRepository", body: "{url: https://example.org/charts, provider: aws, insecure: true}", doc: "`provider` and `insecure` of a HelmRepository without `type: oci`"},
		"a range that is none":      {kind: "GitRepository", body: "{url: https://example.org/a, ref: {semver: main}}", want: `ref.semver: is "main", which is neither a version nor a range`},
		"a range of a registry":     {kind: "OCIRepository", body: "{url: oci://example.org/a, ref: {semver: v^1}}", want: `ref.semver: is "v^1", which is neither a version nor a range`},
		"two references":            {kind: "GitRepository", body: "{url: https://example.org/a, ref: {branch: main, tag: v1}}", doc: "several of `branch`, `tag`, `semver`, `name` and `commit`"},
	} {
		t.Run(name, func(t *testing.T) {
			var spec map[string]any
			must.Do(t, yaml.Unmarshal([]byte(tc.body), &spec))
			author := fluxspec.Author{Namespace: "flux-system", Platform: true}
			var problems []fluxspec.Problem
			switch tc.kind {
			case "":
				problems = fluxspec.Check("HelmRelease", spec, author)
			case "Kustomization", "Manifests":
				problems = fluxspec.Check(tc.kind, spec, author)
			default:
				problems = fluxspec.CheckSource(tc.kind, spec, author)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Path+": "+p.Message)
			}
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("refused: %q", got)
			case tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.want)):
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if !strings.Contains(string(raw), tc.doc) {
				t.Errorf("docs/addonsets.md does not say %q", tc.doc)
			}
		})
	}
}
