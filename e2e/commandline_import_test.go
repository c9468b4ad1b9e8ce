// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// handWritten is what somebody wrote for a cluster NAME.
const handWritten = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: "NAME-settings", namespace: NAMESPACE}
spec:
  interval: 1h
  releaseName: imp-settings
  targetNamespace: imp-apps
  storageNamespace: imp-apps
  install: {createNamespace: true}
  kubeConfig: {secretRef: {name: "NAME-kubeconfig", key: kubeconfig}}
  chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {color: "COLOR", cluster: "NAME"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: "NAME-hand", namespace: NAMESPACE}
spec:
  interval: 1h
  prune: true
  path: ./PATH
  sourceRef: {kind: GitRepository, name: fleet}
  kubeConfig: {secretRef: {name: "NAME-kubeconfig", key: kubeconfig}}
  postBuild: {substitute: {color: "COLOR", cluster: "NAME"}}
`

// handSources are the sources of what was written by hand.
const handSources = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: NAMESPACE}
spec: {url: CHARTS, interval: 1m}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: NAMESPACE}
spec: {url: GIT, interval: 2s, ref: {branch: main}}
`

// handManifest is what the Kustomization of each cluster applies.
const handManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: imp-hand, namespace: default}\ndata: {color: \"${color}\", cluster: \"${cluster}\"}\n"

// TestImport: what `chandler import` prints is followed to the letter, beside hand-written objects that run on clusters. Afterwards the
// hub has them, and everything on the clusters is the very same.
func TestImport(t *testing.T) {
	beside(t)
	h := startHub(t, hubOptions{name: "hub-import", flux: &localfleet.FluxOptions{NoCrossNamespaceRefs: true}})
	charts, git := serve(t)
	step(t, "from the management cluster", func(t *testing.T) { importRunning(t, h, charts, git) })
	step(t, "from a folder in which parents make the objects", func(t *testing.T) { importFolder(t, h, charts, git) })
}

// importRunning imports from the management cluster what a user has applied there.
func importRunning(t *testing.T, h *hub, charts *localfleet.ChartServer, git *localfleet.GitServer) {
	f := &handFleet{hub: h, namespace: "imported",
		clusters: map[string]*localfleet.Cluster{"one": workload(t, "workload-a"), "two": workload(t, "workload-b")},
		colors:   map[string]string{"one": "red", "two": "blue"}}
	files := map[string]string{}
	for name := range f.clusters {
		files["imported/"+name+"/cm.yaml"] = handManifest
	}
	_, err := git.Commit("fleet", files)
	check(t, err)
	f.register(t)
	apply(t, h.Client, strings.NewReplacer("NAMESPACE", f.namespace, "CHARTS", charts.URL(), "GIT", git.URL("fleet")).Replace(handSources))
	for name := range f.clusters {
		apply(t, h.Client, f.written(name, "imported/"+name, handWritten))
	}
	// One that is suspended stays as it is.
	apply(t, h.Client, strings.NewReplacer("one-settings", "one-paused", "imp-settings", "imp-paused", "  interval: 1h", "  interval: 1h\n  suspend: true").
		Replace(f.written("one", "", strings.Split(handWritten, "---")[0])))
	f.runs(t)

	dir, out, errs, code := f.imports(t, "--from-cluster", "--kubeconfig", h.KubeconfigFile(), "--secret-namespaces=flux-system")
	if code != 0 || !strings.Contains(errs, "left as it is: HelmRelease imported/one-paused: is suspended") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	if n := strings.Count(out, "kubectl "); n != 3 { // the namespace, and for both Secrets their key and their label
		t.Errorf("it prints %d commands:\n%s", n, out)
	}
	f.takenOver(t, dir, out)
	// A second import finds nothing but what it left.
	out, errs, code = chandler(t, "import", "--from-cluster", "--kubeconfig", h.KubeconfigFile())
	left := "1 is for another cluster and left as it is"
	if code != 0 || out != "" || !strings.Contains(errs, "nothing to import: of ") || !strings.Contains(errs, left) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	f.leaves(t)
}

// parents are the Kustomizations of the management cluster that make the objects of each cluster from one folder.
const parents = `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-place, namespace: NAMESPACE}
data: {color: COLOR}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  interval: 1h
  prune: true
  path: ./spoke
  sourceRef: {kind: GitRepository, name: fleet}
  postBuild: {substitute: {cluster: NAME}, substituteFrom: [{kind: ConfigMap, name: NAME-place}]}
`

// checkOut writes the files of a repository into a folder.
func checkOut(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, text := range files {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
}

// importFolder imports a repository in which a Kustomization for each of three clusters makes the objects of that cluster from one folder.
// Flux replaces what differs (spec.postBuild).
func importFolder(t *testing.T, h *hub, charts *localfleet.ChartServer, git *localfleet.GitServer) {
	f := &handFleet{hub: h, namespace: "spokes",
		clusters: map[string]*localfleet.Cluster{"east": workload(t, "workload-a"), "west": workload(t, "workload-b"), "north": workload(t, "workload-c")},
		colors:   map[string]string{"east": "red", "west": "blue", "north": "blue"}}
	files := map[string]string{"apps/cm.yaml": handManifest,
		"management/sources.yaml": strings.NewReplacer("NAMESPACE", f.namespace, "CHARTS", charts.URL(), "GIT", git.URL("spokes")).Replace(handSources),
		"spoke/addons.yaml":       strings.NewReplacer("NAMESPACE", f.namespace, "NAME", "${cluster}", "COLOR", "${color}", "PATH", "apps").Replace(handWritten)}
	for name := range f.clusters {
		files["management/"+name+".yaml"] = f.written(name, "", parents)
	}
	_, err := git.Commit("spokes", files)
	check(t, err)
	repository := t.TempDir()
	checkOut(t, repository, files)
	f.register(t)
	apply(t, h.Client, files["management/sources.yaml"])
	for name := range f.clusters {
		apply(t, h.Client, files["management/"+name+".yaml"])
	}
	f.runs(t)

	dir, out, errs, code := f.imports(t, repository, "--secret-namespaces=flux-system")
	if code != 0 || strings.Contains(errs, "left as it is") || !strings.Contains(out, "1 AddonSet of 6 objects on 3 clusters") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	parent := func(name string) client.Object {
		return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	}
	for name := range f.clusters { // as it says
		if line := "flux suspend kustomization -n spokes " + name; !strings.Contains(out, line) {
			t.Errorf("it does not print %q:\n%s", line, out)
		}
		check(t, h.Client.Patch(t.Context(), parent(name), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))))
	}
	f.takenOver(t, dir, out)
	for name := range f.clusters { // and what made the objects goes, with its pruning off
		check(t, h.Client.Patch(t.Context(), parent(name), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"prune":false}}`))))
		check(t, h.Client.Delete(t.Context(), parent(name)))
		soon(t, "the parent of "+name+" is gone", func() error { return wantGone(t.Context(), h.Client, parent(name)) })
	}
	f.unchanged(t)
	f.leaves(t)
}

// ownFolder is the folder of a cluster that runs Flux itself, as in the samples of Flux.
const ownFolder = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: moved, namespace: flux-system}
spec: {url: $GIT, interval: 1m, ref: {branch: main}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: moved, namespace: flux-system}
spec: {url: "https://charts.example.org", interval: 1m}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: moved-apps, namespace: flux-system}
spec: {interval: 1m, prune: true, path: ./apps, sourceRef: {kind: GitRepository, name: moved}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: moved-chart, namespace: moved}
spec:
  interval: 1m
  chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: moved, namespace: flux-system}}}
  values: {color: blue}
`

// importClusters takes over what the Flux of a cluster has delivered there, as `chandler import --clusters` says.
func (f *exampleFleet) importClusters(t *testing.T, name string, c *localfleet.Cluster) {
	ctx, dir := t.Context(), t.TempDir()
	files := map[string]string{"apps/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: moved, namespace: default}\ndata: {a: b}\n",
		"clusters/" + name + "/sync.yaml": f.addresses.Replace(strings.ReplaceAll(ownFolder, "$GIT", f.git.URL("moved")))}
	_, err := f.git.Commit("moved", files)
	check(t, err)
	checkOut(t, dir, files)
	namespace(t, c.Client, "moved")
	apply(t, c.Client, files["clusters/"+name+"/sync.yaml"])
	own := []client.Object{object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "moved-apps"),
		object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "moved", "moved-chart")}
	uids := func() (out [2]types.UID, err error) {
		for i, key := range []client.ObjectKey{{Namespace: "default", Name: "moved"}, {Namespace: "moved", Name: "moved-chart"}} {
			cm := &corev1.ConfigMap{}
			err = errors.Join(err, c.Client.Get(ctx, key, cm))
			out[i] = cm.UID
		}
		return out, err
	}
	var before [2]types.UID
	soon(t, "the cluster's own Flux delivers", func() error {
		before, err = uids()
		return err
	})
	out, errs, code := chandler(t, "import", dir, "--clusters-dir", "clusters")
	t.Log(out, errs)
	if code != 0 || !strings.Contains(out, name+" (namespace flux-system)") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	for _, o := range own { // as it says: suspend them, and then apply what it has printed
		check(t, c.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))))
	}
	apply(t, f.Client, out)
	soon(t, "the hub delivers it", func() error { return f.delivered(ctx, "flux-system", "fleet", name) })
	after, err := uids()
	check(t, err)
	if after != before {
		t.Errorf("the objects are %v, and were %v", after, before)
	}
	for _, o := range own { // as `flux uninstall` does, which leaves what they delivered
		check(t, c.Client.Delete(ctx, o))
	}
	soon(t, "its own objects are gone", func() error { return errors.Join(wantGone(ctx, c.Client, own[0]), wantGone(ctx, c.Client, own[1])) })
	if after, err = uids(); err != nil || after != before {
		t.Errorf("the objects are %v, and were %v (%v)", after, before, err)
	}
	f.drop(t, addonSet("flux-system", "fleet"))
	check(t, errors.Join(wantNoConfigMap(ctx, c, "default", "moved"), wantNoConfigMap(ctx, c, "moved", "moved-chart")))
}
