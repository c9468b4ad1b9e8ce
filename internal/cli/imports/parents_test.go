// SPDX-License-Identifier: Apache-2.0

package imports_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
)

// parent is a Kustomization for the management cluster.
func parent(name, path, more string) string {
	return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
		"spec:\n  interval: 1h\n  prune: true\n  path: " + path + "\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + more
}

// child is a template of one for a workload cluster.
const child = `---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: ${cluster}-apps
  namespace: flux-system
spec:
  interval: 1h
  prune: true
  path: ./apps/${tier:=small}
  sourceRef: {kind: GitRepository, name: flux-system}
  dependsOn:
  - name: ${cluster}-capi
  kubeConfig:
    secretRef:
      name: ${cluster}-kubeconfig
  postBuild:
    substitute:
      domain: ${cluster}.${domain}
      literal: $${untouched}
`

// fleetOfParents is a repository in which each cluster is a parent with variables, over one template. Kustomize takes its time for each
// folder that it builds, and so for each cluster.
func fleetOfParents(clusters ...string) map[string]string {
	files := map[string]string{
		"clusters/mgmt/gotk-sync.yaml": parent("flux-system", "./clusters/mgmt", ""),
		"clusters/mgmt/vars.yaml":      parent("vars", "./vars", ""),
		"clusters/mgmt/fleet.yaml":     parent("fleet", "./fleet", ""),
		"vars/kustomization.yaml":      "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: flux-system\nresources: [vars.yaml]\n",
		"vars/vars.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fleet-vars}\ndata: {domain: example.org}\n",
		"template/kustomization.yaml":  "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [child.yaml, capi.yaml]\n",
		"template/child.yaml":          child,
		"template/capi.yaml": strings.ReplaceAll(parent("NAME", "./capi", "  targetNamespace: flux-system\n  postBuild:\n    substitute:\n      cluster: ${cluster}\n"),
			"{name: NAME, namespace: flux-system}", "\n  name: ${cluster}-capi\n  namespace: flux-system"),
		"capi/cluster.yaml": "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: ${cluster}\n",
	}
	for _, cluster := range clusters {
		files["fleet/"+cluster+".yaml"] = parent(cluster, "./template", "  postBuild:\n    substitute: {cluster: "+cluster+"}\n"+
			"    substituteFrom: [{kind: ConfigMap, name: fleet-vars}]\n")
	}
	return files
}

// TestImportParents: Kustomizations that apply Kustomizations, with the variables of postBuild and of a ConfigMap that only comes out
// of another folder. The clusters are made by Kustomizations too, and the add-ons wait for these.
func TestImportParents(t *testing.T) {
	files := fleetOfParents("eu-1", "eu-2", "us-1")
	files["fleet/us-1.yaml"] = strings.Replace(files["fleet/us-1.yaml"], "{cluster: us-1}", "{cluster: us-1, tier: large}", 1)
	_, out, errs, err := importing(t, files)
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "parents.txt", errs+out)
}

// TestImportWorkingFolder: the working folder, by its name or as a dot, is a folder like any other.
func TestImportWorkingFolder(t *testing.T) {
	dir, out, errs, err := importing(t, fleetOfParents("us-1"))
	if err != nil {
		t.Fatal(err, errs)
	}
	t.Chdir(dir)
	dotOut, dotErrs, err := run(".")
	if err != nil {
		t.Fatal(err, dotErrs)
	}
	if d := cmp.Diff(errs+out, dotErrs+dotOut); d != "" {
		t.Errorf("chandler import . prints something else (-dir +.):\n%s", d)
	}
}

// TestImportUnknownVariables: a value that is in a Secret, or in a ConfigMap that is not in the files, becomes a variable of the set that the
// user has to write. Import guesses no value, even if the template has a default.
func TestImportUnknownVariables(t *testing.T) {
	unknown := func(files map[string]string) map[string]string {
		for name, text := range files {
			files[name] = strings.ReplaceAll(text, "{kind: ConfigMap, name: fleet-vars}", "{kind: Secret, name: fleet-secrets}, {kind: ConfigMap, name: elsewhere}")
		}
		return files
	}
	_, out, errs, err := importing(t, unknown(fleetOfParents("eu-1", "eu-2", "us-1")))
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "unknown-variables.txt", errs+out)
	files := unknown(fleetOfParents("us-1"))
	files["fleet/us-1.yaml"] = strings.ReplaceAll(files["fleet/us-1.yaml"], "substitute: {cluster: us-1}", "substitute: {}")
	_, out, errs, err = importing(t, files)
	if err != nil || !strings.Contains(out+errs, "metadata.name holds ${cluster}, and the value of that is not known, since Secret flux-system/fleet-secrets") {
		t.Errorf("%v\n%s%s", err, errs, out)
	}
}

// TestImportTemplates: a document whose name holds a variable, and that nothing here fills, is a note and no error.
func TestImportTemplates(t *testing.T) {
	_, out, errs, err := importing(t, map[string]string{"template/child.yaml": child, "a.yaml": strings.ReplaceAll(spoke, "NAME", "a")})
	if err != nil || !strings.HasPrefix(out, "# 1 AddonSet of 1 object on 1 cluster") ||
		!strings.Contains(errs, "note: template/child.yaml, line 2: Kustomization ${cluster}-apps: a template, since its name or namespace holds ${") {
		t.Errorf("%v\n%s%s", err, errs, out)
	}
}

// TestImportResourceSets: what Flux Operator makes of a ResourceSet is on the cluster only, and a note says so.
func TestImportResourceSets(t *testing.T) {
	const set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: apps, namespace: flux-system}\nspec:\n  inputs: [{cluster: a}]\n" +
		"  resources:\n  - apiVersion: kustomize.toolkit.fluxcd.io/v1\n    kind: Kustomization\n    metadata: {name: \"<< inputs.cluster >>\"}\n"
	_, out, errs, err := importing(t, map[string]string{"set.yaml": set, "a.yaml": strings.ReplaceAll(spoke, "NAME", "a")})
	if err != nil || !strings.HasPrefix(out, "# 1 AddonSet of 1 object on 1 cluster\n") || errs != "note: set.yaml, line 1: ResourceSet flux-system/apps: "+
		"the Flux objects that it makes are on the management cluster only: import them from there, with --from-cluster\n" {
		t.Errorf("%v\n%s%s", err, errs, out)
	}
}

// TestImportRoots: paths count from the root of a repository, also where that is a folder below the one that is named; and a
// kustomization.yaml that no Kustomization applies is built all the same.
func TestImportRoots(t *testing.T) {
	kustomized := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: fleet\nnamePrefix: NAME-\nresources: [../base]\n" +
		"patches:\n- target: {kind: Kustomization}\n  patch: |\n    - {op: add, path: /spec/kubeConfig, value: {secretRef: {name: NAME}}}\n"
	files := map[string]string{
		"eu/clusters/mgmt/sync.yaml": parent("flux-system", "./clusters/mgmt", "") + parent("spokes", "./spokes", ""),
		"eu/spokes/a.yaml":           strings.ReplaceAll(spoke, "NAME", "a"),
		"us/base/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n",
		"us/base/web.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\nspec: {interval: 1h, prune: true, path: ./web, " +
			"sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}}\n",
		"us/berlin/kustomization.yaml": strings.ReplaceAll(kustomized, "NAME", "berlin"),
		"us/paris/kustomization.yaml":  strings.ReplaceAll(kustomized, "NAME", "paris"),
	}
	_, out, errs, err := importing(t, files)
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "roots.txt", errs+out)
}

// TestImportForeign: objects of other tools become sets, beside what is folded, and what has no counterpart is a note.
func TestImportForeign(t *testing.T) {
	const proxy = "apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: web, namespace: fleet}\nspec: {clusterSelector: {matchLabels: {env: prod}}, " +
		"chartName: web, repoURL: \"https://charts.example.org\", releaseName: web, version: 1.2.3, namespace: web}\n"
	_, out, errs, err := importing(t, map[string]string{"a.yaml": strings.ReplaceAll(spoke, "NAME", "a"), "proxy.yaml": proxy,
		"monitor/fleet.yaml": "defaultNamespace: monitor\nhelm: {repo: \"https://charts.example.org\", chart: monitor, version: 1.2.3}\n",
		"set.yaml":           "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: x, namespace: argocd}\nspec: {generators: [{list: {}}]}\n"})
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "foreign.txt", errs+out)
}

// TestImportUnlisted: what lies in a folder that a Kustomization applies, and is no part of it, is left, even if an object that is applied
// has its name; and its cluster is not to be registered. A folder that another Kustomization applies is no such.
func TestImportUnlisted(t *testing.T) {
	of := func(name string) string { return strings.ReplaceAll(spoke, "NAME", name) }
	files := map[string]string{
		"hub/sync.yaml":          parent("all", "./all", "") + parent("own", "./all/own", ""),
		"all/kustomization.yaml": "resources: [a]\n", "all/a/kustomization.yaml": "resources: [app.yaml]\n",
		"all/a/app.yaml": of("a"), "all/a/old.yaml": strings.Replace(of("a"), "1h", "2h", 1), "all/template/kustomization.yaml": "resources: [app.yaml]\n",
		"all/template/app.yaml": of("template"), "all/own/app.yaml": of("own"), "elsewhere/app.yaml": of("elsewhere"),
		"all/template/made.yaml": parent("made", "./made", ""), "made/app.yaml": of("made"),
		"all/template/hub.yaml": parent("for-the-hub", "./nowhere", ""),
	}
	_, out, errs, err := importing(t, files)
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "unlisted.txt", errs+out)
}
