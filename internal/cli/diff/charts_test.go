// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/sandbox"
	"github.com/chandler-hub/chandler/test/localfleet"
)

func TestMain(m *testing.M) {
	sandbox.Main() // diff --charts starts this program for what it does not trust
	os.Exit(m.Run())
}

const chartFleet = `
{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: c1, namespace: fleet}, spec: {kubeConfig: {secretRef: {name: a}}}, status: {kubernetesVersion: v1.34.2}}
---
{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: c2, namespace: fleet}, spec: {kubeConfig: {secretRef: {name: a}}}, status: {kubernetesVersion: v1.34.2}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: fleet, namespace: flux-system}, spec: {interval: 1m, url: $GIT, ref: {branch: main}}}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  selectAll: true
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  addons:
    - {name: web, helmRelease: {chart: {spec: {chart: web, version: $VERSION, sourceRef: {name: charts}}}}}
    - {name: policies, kustomization: {sourceRef: {kind: GitRepository, name: fleet}, path: ./policies, prune: true}}
`

// TestDiffCharts: what becomes of objects, from charts and folders that are fetched, and from copies of them at two revisions.
func TestDiffCharts(t *testing.T) {
	charts := must.Get(localfleet.NewChartServer()).Or(t)
	t.Cleanup(func() { _ = charts.Close() })
	for version, replicas := range map[string]string{"1.0.0": "1", "1.1.0": "2"} {
		files := fstest.MapFS{
			"web/Chart.yaml": {Data: []byte("apiVersion: v2\nname: web\nversion: " + version + "\n")},
			"web/templates/a.yaml": {Data: []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: " + replicas +
				", minReadySeconds: {{ .Capabilities.KubeVersion.Minor }}}\n")},
		}
		must.Do(t, charts.Publish(files, "web"))
	}
	repos := must.Get(localfleet.NewGitServer()).Or(t)
	t.Cleanup(func() { _ = repos.Close() })
	const policy = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy, namespace: default}\ndata: {a: \"1\"}\n"
	must.Get(repos.Commit("fleet", map[string]string{"policies/a.yaml": policy})).Or(t)
	side := func(version string) string {
		dir := filepath.Join(t.TempDir(), "fleet")
		text := strings.NewReplacer("$GIT", repos.URL("fleet"), "$CHARTS", charts.URL(), "$VERSION", version).Replace(chartFleet)
		clitest.Write(t, filepath.Join(dir, "all.yaml"), text)
		return dir
	}
	old := side("1.0.0")
	check := func(name string, args []string, code int, wants ...string) {
		t.Helper()
		out, errs, got := diffed(t, append([]string{"--charts"}, args...)...)
		missing := false
		for _, want := range wants {
			if !strings.Contains(out+errs, want) {
				missing = true
				t.Errorf("%s: %q is missing", name, want)
			}
		}
		if got != code || missing {
			t.Errorf("%s: ends with %d, want %d:\n%s\n%s", name, got, code, out, errs)
		}
	}
	check("nothing", []string{"-f", side("1.0.0"), "--against", old}, 0, "no changes on 2 clusters")
	check("another version", []string{"-f", side("1.1.0"), "--against", old}, 1, "all 2 clusters\n", "on the cluster: 1 changed  [the set]\n        ~ Deployment web\n            spec.replicas: 1 → 2\n")
	check("no such version", []string{"-f", side("1.2.0"), "--against", old}, 2, "all 2 clusters: add-on web of AddonSet flux-system/base: its objects are not known: "+
		"HelmRepository flux-system/", "it cannot be fetched: chart web: there is no version 1.2.0", "not everything could be compared")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	repo := filepath.Dir(side("1.0.0"))
	clitest.Write(t, filepath.Join(repo, "addons", "policies", "a.yaml"), policy)
	inGit(t, repo, "init", "-q", "-b", "main")
	inGit(t, repo, "add", ".")
	inGit(t, repo, "commit", "-q", "-m", "one")
	clitest.Write(t, filepath.Join(repo, "addons", "policies", "a.yaml"), strings.Replace(policy, `"1"`, `"2"`, 1))
	here := []string{"-f", filepath.Join(repo, "fleet"), "--against", "main", "--local-sources", "GitRepository/flux-system/fleet=" + filepath.Join(repo, "addons")}
	check("a folder of this repository", here, 1, "~ other content policies (flux-system/base)", "data.a: \"1\" → \"2\"")
	clitest.Write(t, filepath.Join(repo, "addons", "policies", "kustomization.yaml"), "resources: [https://example.org/a.yaml]\n")
	check("a base from elsewhere", here, 2, "policies/kustomization.yaml names an address, and nothing is fetched here")
	must.Do(t, os.Remove(filepath.Join(repo, "addons", "policies", "kustomization.yaml")))
	must.Do(t, os.Symlink("/etc/hostname", filepath.Join(repo, "addons", "policies", "b.yaml")))
	check("a link, which Flux does not take along", here, 1, "on the cluster: 1 changed\n        ~ ConfigMap default/policy\n")
	// A clone in CI has the credential it was cloned with.
	inGit(t, repo, "config", "http.extraheader", "AUTHORIZATION: basic hunter2")
	clitest.Write(t, filepath.Join(repo, "policies", "a.yaml"), policy)
	inGit(t, repo, "add", "policies")
	inGit(t, repo, "commit", "-q", "-m", "two")
	whole := []string{"-f", filepath.Join(repo, "fleet"), "--against", "main", "--local-sources", "GitRepository/flux-system/fleet=" + repo, "--charts", "--full"}
	clitest.Write(t, filepath.Join(repo, "policies", "kustomization.yaml"), "configMapGenerator: [{name: a, files: [a=../.git/config]}]\n")
	if out, errs, code := diffed(t, whole...); code != 2 || strings.Contains(out+errs, "hunter2") {
		t.Errorf("a folder that wants .git/config ends with %d:\n%s\n%s", code, out, errs)
	}
	check("no such path", append([]string{"--local-sources", "GitRepository/a/b=none"}, here...), 2, "there is no such file or folder")
	check("no such kind", append([]string{"--local-sources", "Git/a/b=."}, here...), 2, "write KIND/NAMESPACE/NAME=PATH")
}

// TestChartFlags: flags that do nothing without another one say so.
func TestChartFlags(t *testing.T) {
	for flag, want := range map[string]string{"--cluster=a": "write --live too", "--local-sources=GitRepository/a/b=.": "write one of them too"} {
		if _, errs, code := diffed(t, "-f", "a", flag); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s ends with %d: %s", flag, code, errs)
		}
	}
}
