// SPDX-License-Identifier: Apache-2.0

package imports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/imports"
	"github.com/chandler-hub/chandler/internal/must"
)

// importing runs `chandler import` on files with these names and texts, and returns what it prints, and says on stderr.
func importing(t *testing.T, files map[string]string, args ...string) (dir, stdout, stderr string, err error) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	stdout, stderr, err = run(append([]string{dir}, args...)...)
	plain := strings.NewReplacer(dir+string(filepath.Separator), "")
	return dir, plain.Replace(stdout), plain.Replace(stderr), err
}

// run runs `chandler import`.
func run(args ...string) (out, errs string, err error) {
	return clitest.Run([]*cobra.Command{imports.New(factory.New(), nil)}, append([]string{"import"}, args...)...)
}

const spoke = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME-apps, namespace: fleet}
spec:
  interval: 1h
  prune: true
  path: ./apps/NAME
  sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}
  kubeConfig: {secretRef: {name: NAME}}
`

// TestImport: what the command prints, with objects in lists, several documents and files, and what it cannot use.
func TestImport(t *testing.T) {
	files := map[string]string{
		"a/apps.yaml":       "# nothing\n---\n" + strings.ReplaceAll(spoke, "NAME", "a"),
		"b/list.yaml":       "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(spoke, "NAME", "b"), "\n"), "\n", "\n  ") + "\n",
		"b/secret.yaml":     "apiVersion: v1\nkind: Secret\nmetadata: {name: b, namespace: fleet, labels: {env: prod}, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}\nstringData: {value: hunter2}\n",
		"c/suspended.yaml":  strings.Replace(strings.ReplaceAll(spoke, "NAME", "c"), "spec:\n", "spec:\n  suspend: true\n", 1),
		"values.yaml":       "replicas: 1\n",
		"template.yaml":     "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\n",
		"kustomization.yml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a]\n",
	}
	_, out, errs, err := importing(t, files)
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "stdout.txt", out)
	clitest.Golden(t, "stderr.txt", errs)
	if strings.Contains(out+errs, "hunter2") {
		t.Error("it prints what is in a Secret")
	}
	to := filepath.Join(t.TempDir(), "out")
	_, printed, _, err := importing(t, files, "--output-dir", to)
	if err != nil {
		t.Fatal(err)
	}
	head, sets, _ := strings.Cut(out, "---\n")
	if printed != head {
		t.Errorf("with -o it prints %q", printed)
	}
	if got, err := os.ReadFile(filepath.Join(to, "flux-system", "fleet.yaml")); err != nil || string(got) != sets {
		t.Errorf("the file is %q (%v), and without -o it is %q", got, err, sets)
	}
	if _, _, _, err := importing(t, files, "--output-dir", to); err == nil || !strings.Contains(err.Error(), "exists already: choose another folder") {
		t.Errorf("it writes over files: %v", err)
	}
}

// TestImportFails: what cannot be read is told with its file and line, and the rest is printed all the same.
func TestImportFails(t *testing.T) {
	good := strings.ReplaceAll(spoke, "NAME", "a")
	local := strings.Replace(good, "  kubeConfig: {secretRef: {name: a}}\n", "", 1)
	own := strings.Replace(good, "namespace: fleet}", "namespace: fleet, labels: {chandler.dev/cluster-key: x}}", 1)
	unknown := strings.Replace(strings.ReplaceAll(spoke, "NAME", "c"), "spec:", "spec:\n  unknown: 1", 1)
	for name, tc := range map[string]struct {
		file            string
		prints          bool
		stderr, problem string
	}{
		"NothingThere": {"# nothing\n", false, "nothing to import: no HelmRelease or Kustomization of Flux was read\n", ""},
		"NoYAML":       {good + "---\na: b: c\n", true, "error: in.yaml, line 11: mapping values are not allowed in this context: a value that holds \": \" must be in quotes\n", "1 document could not be read, and is not in what was printed"},
		"NameIsNoText": {good + "---\n" + strings.Replace(good, "name: a-apps", "name: 1", 1), true, "error: in.yaml: Kustomization: metadata.name: is 1, which is no text; put it in quotes\n", "1 document could not be read, and is not in what was printed"},
		"WrongSet":     {good + "---\napiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: x}\nspec: {addons: {}}\n", true, "error: in.yaml, line 11: AddonSet default/x: spec.addons: is an object, and must be a list\n", "1 document could not be read, and is not in what was printed"},
		"OfTheHub":     {local, false, "nothing to import: of 1 Flux object 1 is for the cluster that it is in (no spec.kubeConfig)\n", ""},
		"Confined": {strings.Replace(good, "  prune", "  decryption: {provider: sops}\n  prune", 1), false,
			"With --platform-namespaces chandler-system,flux-system,fleet, here and for the hub, 1 more object is imported. Sets in such a namespace reach every cluster.\n", ""},
		"OfTheHubsOwn": {own, false, "nothing to import: the hub made the only Flux object\n", ""},
		"AllTheHubsOwn": {own + "---\n" + strings.ReplaceAll(own, "a-apps", "b-apps"), false,
			"nothing to import: the hub made all 2 Flux objects\n", ""},
		"Mixed": {own + "---\n" + strings.ReplaceAll(local, "a-apps", "b-apps") + "---\n" + unknown, false,
			"nothing to import: of 3 Flux objects 1 was made by the hub, 1 is for the cluster that it is in (no spec.kubeConfig), " +
				"1 is for another cluster and left as it is\n", ""},
		"ItselfUnknown": {unknown, false, "left as it is: Kustomization fleet/c-apps (in.yaml, line 1): spec.unknown is not a field of a Flux Kustomization\nnothing to import: of 1 Flux object 1 is for another cluster and left as it is\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, errs, err := importing(t, map[string]string{"in.yaml": tc.file})
			if tc.prints != (out != "") || !strings.Contains(errs, tc.stderr) {
				t.Errorf("prints %q, and says %q, want %q", out, errs, tc.stderr)
			}
			if tc.problem == "" && err != nil {
				t.Errorf("it ends with %v", err)
			}
			if tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("ends with %v, want %s", err, tc.problem)
			}
		})
	}
	for args, want := range map[string]string{
		"":                 "import: write files or folders, or --from-cluster, and not both: chandler import (DIR | FILE | -)... | --from-cluster [flags]",
		"--from-cluster x": "import: write files or folders, or --from-cluster, and not both",
		"/no/where":        "1 document could not be read",
	} {
		if _, _, err := run(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("import %s ends with %v, want %s", args, err, want)
		}
	}
}

// TestImportStrict: what is left is a result, and with --strict a failure.
func TestImportStrict(t *testing.T) {
	good := strings.ReplaceAll(spoke, "NAME", "a")
	left := strings.Replace(strings.ReplaceAll(spoke, "NAME", "b"), "spec:\n", "spec:\n  suspend: true\n", 1)
	noted := strings.Replace(strings.ReplaceAll(spoke, "NAME", "c"), "spec:\n", "spec:\n  dependsOn: [{name: nobody}]\n", 1)
	labelled := strings.Replace(strings.ReplaceAll(spoke, "NAME", "d"), "namespace: fleet}", "namespace: fleet, labels: {sharding.fluxcd.io/key: one}}", 1)
	for name, tc := range map[string]struct{ file, problem string }{
		"All":      {good, ""},
		"Left":     {good + "---\n" + left, "1 object is left as it is, 0 notes say what is not quite as it was, and --strict allows none of that"},
		"Noted":    {noted, "0 objects are left as they are, 1 note says what is not quite as it was, and --strict allows none of that"},
		"Labelled": {labelled, "0 objects are left as they are, 1 note says"},
		"Nothing":  {left, "nothing is imported, and --strict allows none of that"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, errs, err := importing(t, map[string]string{"in.yaml": tc.file}); err != nil {
				t.Errorf("without --strict it ends with %v: %s", err, errs)
			}
			_, _, errs, err := importing(t, map[string]string{"in.yaml": tc.file}, "--strict")
			if tc.problem == "" && err != nil || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("with --strict it ends with %v, want %q: %s", err, tc.problem, errs)
			}
		})
	}
}

// TestImportRefusesNames: what no API server takes as a name is refused when it is read, and what is said of it, as of a file,
// is one line.
func TestImportRefusesNames(t *testing.T) {
	const evil = `"x\n---\nkind: Evil"`
	good := strings.ReplaceAll(spoke, "NAME", "a") + "---\n"
	meta := "metadata: {namespace: fleet, name: " + evil + "}\n"
	for name, doc := range map[string]string{
		"Kustomization":       strings.Replace(good, "a-apps", evil, 1),
		"Namespace":           strings.Replace(good, "namespace: fleet", "namespace: "+evil, 1),
		"Suspended":           "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n" + meta + "spec: {suspend: true, kubeConfig: {secretRef: {}}}\n",
		"Secret":              "apiVersion: v1\nkind: Secret\n" + meta,
		"TenantControlPlane":  "apiVersion: kamaji.clastix.io/v1alpha1\nkind: TenantControlPlane\n" + meta,
		"ClusterRegistration": "apiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\n" + meta,
		"AddonSet":            "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\n" + meta,
	} {
		t.Run(name, func(t *testing.T) {
			_, out, errs, err := importing(t, map[string]string{"in.yaml": good + doc, "a\n---\nb.yaml": strings.Replace(good, "a-apps", "'-'", 1)})
			if err == nil || !strings.Contains(err.Error(), "2 documents could not be read") {
				t.Errorf("it ends with %v", err)
			}
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			for _, line := range lines {
				if strings.HasPrefix(line, "note: a --- b.yaml: illegal name") { // kustomize has no controller for such a file
					continue
				}
				if !strings.HasPrefix(line, "error: ") || !strings.Contains(line, " is none that an object can have: ") {
					t.Errorf("it says %q", line)
				}
			}
			if len(lines) != 3 || !strings.HasPrefix(out, "# 1 AddonSet of 1 object on 1 cluster\n") {
				t.Errorf("it says %q, and prints %q", errs, out)
			}
		})
	}
}

// TestImportBuilds: what a hub's Kustomizations make of a folder, as in the hub-and-spoke sample, is imported as it comes out; and
// nothing is fetched for that.
func TestImportBuilds(t *testing.T) {
	of := func(cluster, path, more string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + path + ", namespace: " + cluster + "}\nspec:\n" +
			"  interval: 1h\n  prune: true\n  targetNamespace: " + cluster + "\n  path: ./deploy/" + path +
			"\n  sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}\n" + more
	}
	const patch = "  patches:\n  - target: {kind: HelmRelease}\n    patch: |\n      - op: add\n        path: /spec/kubeConfig\n" +
		"        value: {secretRef: {name: cluster-kubeconfig}}\n      - op: add\n        path: /spec/values/host\n        value: CLUSTER.example.org\n"
	files := map[string]string{
		"deploy/apps/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [podinfo.yaml]\n",
		"deploy/apps/podinfo.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: podinfo}\nspec: {interval: 1h, url: https://charts.example.org}\n---\n" +
			"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: podinfo}\nspec:\n  interval: 1h\n  releaseName: podinfo\n" +
			"  chart: {spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}}}\n  values: {replicas: 1}\n",
		"deploy/plain/a/cm.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
		"deploy/plain/b/kustomization.yaml":  "resources: [../../../other]\n",
		"other/hr.yaml":                      "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: of-other, namespace: x}\nspec: {interval: 1h, chartRef: {kind: OCIRepository, name: a}, kubeConfig: {secretRef: {name: cluster-kubeconfig}}}\n",
		"other/kustomization.yaml":           "resources: [hr.yaml]\n",
		"deploy/remote/kustomization.yaml":   "resources: [\"https://github.com/example/example?ref=main\"]\n",
		"deploy/file/kustomization.yaml":     "configMapGenerator: [{name: x, files: [\"a=https://127.0.0.1:1/x\"]}]\n",
		"deploy/git/kustomization.yaml":      "resources: [\"github.com/example/example\"]\n",
		"deploy/above/kustomization.yaml":    "resources: [../../../../etc]\n",
		"deploy/circle/kustomization.yaml":   "resources: [../circle]\n",
		"deploy/secrets/kustomization.yaml":  "secretGenerator: [{name: x, literals: [hunter2]}]\n",
		"deploy/helm/kustomization.yaml":     "helmCharts: [{name: x}]\n",
		"deploy/replaced/kustomization.yaml": "resources: [../apps]\nnamePrefix: \"${prefix}\"\n",
	}
	for _, cluster := range []string{"staging", "production"} {
		files["hub/"+cluster+".yaml"] = of(cluster, "apps", strings.ReplaceAll(patch, "CLUSTER", cluster))
	}
	for _, path := range []string{"plain", "remote", "file", "git", "above", "circle", "secrets", "helm", "nowhere"} {
		files["hub/"+path+".yaml"] = of("x", path, "")
	}
	files["hub/replaced.yaml"] = of("x", "replaced", "  postBuild: {substitute: {prefix: x}}\n")
	_, out, errs, err := importing(t, files, "--cross-namespace-refs")
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "built.txt", out)
	clitest.Golden(t, "built-stderr.txt", errs)
	if strings.Contains(out+errs, "hunter2") {
		t.Error("it prints what is in a Secret")
	}
}

// TestImportClusters: the layout of the samples in which each cluster runs Flux itself: groups, a base, and a branch for each
// environment.
func TestImportClusters(t *testing.T) {
	git := func(branch string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\n" +
			"spec: {interval: 1m, ref: {branch: " + branch + "}, url: \"https://git.example.org/fleet\", secretRef: {name: flux-system}}\n---\n" +
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\n" +
			"spec: {interval: 1m, prune: true, path: ./clusters, sourceRef: {kind: GitRepository, name: flux-system}}\n"
	}
	ks := func(name, path, more string) string {
		return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
			"spec:\n  interval: 5m\n  prune: true\n  path: " + path + "\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + more
	}
	const base = "resources: [../../base, gotk.yaml]\n"
	files := map[string]string{
		"clusters/base/kustomization.yaml": "resources: [apps.yaml]\n",
		"clusters/base/apps.yaml": ks("policies", "./policies", "") + ks("apps", "./apps", "  dependsOn: [{name: policies}]\n") +
			"---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: podinfo, namespace: podinfo}\nspec:\n  interval: 1h\n" +
			"  chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}}}\n",
		"clusters/eu/eu-1/kustomization.yaml": base,
		"clusters/eu/eu-1/gotk.yaml":          git("main"),
		"clusters/eu/eu-2/kustomization.yaml": base + "patches:\n- target: {kind: Kustomization, name: apps}\n  patch: |\n    - {op: replace, path: /spec/path, value: ./apps-next}\n",
		"clusters/eu/eu-2/gotk.yaml":          git("dev"),
		"clusters/us-1/sync.yaml":             git("main") + ks("apps", "./apps", "") + ks("infra", "./infra", "") + ks("vars", "./apps", "  postBuild: {substituteFrom: [{kind: ConfigMap, name: v}]}\n") + ks("late", "./apps", "  dependsOn: [{name: nobody}]\n"),
		"policies/cm.yaml":                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p, namespace: default}\n",
		"apps/cm.yaml":                        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n",
		"infra/redis.yaml":                    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: redis, namespace: redis}\nspec: {}\n",
	}
	_, out, errs, err := importing(t, files, "--clusters-dir", "clusters")
	if err != nil {
		t.Fatal(err, errs)
	}
	clitest.Golden(t, "clusters.txt", out)
	clitest.Golden(t, "clusters-stderr.txt", errs)
}

// TestImportNamespace: a -n in which no set is, is said.
func TestImportNamespace(t *testing.T) {
	own := strings.ReplaceAll(strings.ReplaceAll(spoke, "NAME", "a"), "flux-system", "fleet")
	files := map[string]string{"a.yaml": own, "s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: fleet}\n"}
	_, out, errs, err := importing(t, files, "-n", "elsewhere")
	if err != nil || !strings.Contains(out, "namespace: fleet") || !strings.Contains(errs, "note: no set is in namespace elsewhere (-n)") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}
