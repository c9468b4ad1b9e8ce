// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// handWritten is what somebody wrote for a cluster NAME.
const handWritten = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: NAME-settings, namespace: imported}
spec:
  interval: 1h
  releaseName: imp-settings
  targetNamespace: imp-apps
  storageNamespace: imp-apps
  install: {createNamespace: true}
  kubeConfig: {secretRef: {name: NAME-kubeconfig, key: kubeconfig}}
  chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {color: COLOR, cluster: NAME}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME-hand, namespace: imported}
spec:
  interval: 1h
  prune: true
  path: ./imported/NAME
  sourceRef: {kind: GitRepository, name: fleet}
  kubeConfig: {secretRef: {name: NAME-kubeconfig, key: kubeconfig}}
  postBuild: {substitute: {color: COLOR}}
`

// writtenFor are the objects that somebody has written for a cluster.
func writtenFor(cluster string) []client.Object {
	return []client.Object{&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "imported", Name: cluster + "-settings"}},
		&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "imported", Name: cluster + "-hand"}}}
}

// TestImport: what `chandler import --from-cluster` prints is followed to the letter, beside hand-written objects that run on two
// clusters. Afterwards the hub has them, and everything on the clusters is the very same.
func TestImport(t *testing.T) {
	beside(t)
	ctx := t.Context()
	clusters := map[string]*localfleet.Cluster{"one": workload(t, "workload-a"), "two": workload(t, "workload-b")}
	h := startHub(t, hubOptions{name: "hub-import", flux: &localfleet.FluxOptions{NoCrossNamespaceRefs: true}})
	charts, git := serve(t)
	files := map[string]string{}
	for name := range clusters {
		files["imported/"+name+"/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: imp-hand, namespace: default}\ndata: {color: \"${color}\", cluster: " + name + "}\n"
	}
	_, err := git.Commit("fleet", files)
	check(t, err)
	namespace(t, h.Client, "imported")
	apply(t, h.Client, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: imported}
spec: {url: %s, interval: 1m}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: imported}
spec: {url: %s, interval: 2s, ref: {branch: main}}
`, charts.URL(), git.URL("fleet")))
	colors := map[string]string{"one": "red", "two": "blue"}
	for name, c := range clusters {
		check(t, h.Client.Create(ctx, secret("imported", name+"-kubeconfig", map[string][]byte{"kubeconfig": kubeconfigOf(t, c)})))
		apply(t, h.Client, strings.NewReplacer("NAME", name, "COLOR", colors[name]).Replace(handWritten))
	}
	// One that is suspended stays as it is.
	apply(t, h.Client, strings.NewReplacer("NAME-settings", "one-paused", "imp-settings", "imp-paused", "NAME", "one", "COLOR", "red", "  interval: 1h", "  interval: 1h\n  suspend: true").Replace(strings.Split(handWritten, "---")[0]))
	before := map[string]deployed{}
	for name, c := range clusters {
		soon(t, "the hand-written objects deliver to "+name, func() error {
			found, err := deployedTo(ctx, c)
			before[name] = found
			return errors.Join(err, wantData(ctx, c, "imp-apps", "imp-settings", "color", colors[name]), wantData(ctx, c, "default", "imp-hand", "cluster", name))
		})
	}

	written := map[string]types.UID{}
	for name := range clusters {
		for _, o := range writtenFor(name) {
			check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(o), o))
			written[o.GetName()] = o.GetUID()
		}
	}

	var dir, out, errs string
	var code int
	soon(t, "Flux has applied all of it", func() error { // it begins again every two seconds, and import leaves what is not Ready
		dir = filepath.Join(t.TempDir(), "out")
		out, errs, code = chandler(t, "import", "--from-cluster", "--output-dir", dir, "--kubeconfig", h.KubeconfigFile(), "--secret-namespaces=flux-system")
		if strings.Contains(errs, "let Flux finish first") {
			return errors.New(errs)
		}
		return nil
	})
	if code != 0 || !strings.Contains(errs, "left as it is: HelmRelease imported/one-paused: is suspended") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	for _, s := range clusters {
		if token := string(kubeconfigOf(t, s)); strings.Contains(out+errs, token) {
			t.Fatal("it prints a kubeconfig")
		}
	}
	sets, err := os.ReadFile(filepath.Join(dir, "imported", "fleet.yaml"))
	check(t, err)
	if n := strings.Count(out, "kubectl "); n != 3 { // the namespace, and for both Secrets their key and their label
		t.Errorf("it prints %d commands:\n%s", n, out)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, "kubectl ") {
			expect.Kubectl(t, h.Client, line)
		}
	}
	soon(t, "both clusters answer", func() error {
		return errors.Join(condition(ctx, h.Client, registration("imported", "one-kubeconfig"), hubv1.ReachableCondition, "True", ""),
			condition(ctx, h.Client, registration("imported", "two-kubeconfig"), hubv1.ReachableCondition, "True", ""))
	})
	apply(t, h.Client, string(sets))
	soon(t, "the hub has everything", func() error {
		list := &hubv1.AddonDeliveryList{}
		if err := h.Client.List(ctx, list, client.InNamespace("imported")); err != nil || len(list.Items) != 2 {
			return fmt.Errorf("there are %d deliveries (%v)", len(list.Items), err)
		}
		for i := range list.Items {
			if c := conditionOf(&list.Items[i], "Ready"); c.Status != metav1.ConditionTrue {
				return fmt.Errorf("%s: %v", list.Items[i].Name, c)
			}
		}
		return nil
	})
	for name, c := range clusters {
		// The add-ons go on with the very objects, and nothing fetches the chart for the old template any more.
		for _, o := range writtenFor(name) {
			check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(o), o))
			if o.GetUID() != written[o.GetName()] || o.GetLabels()[hubv1.AddonSetLabel] != "fleet" {
				t.Errorf("%s is %s, and was %s; its labels are %v", o.GetName(), o.GetUID(), written[o.GetName()], o.GetLabels())
			}
		}
		check(t, wantGone(ctx, h.Client, &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: "imported", Name: "imported-" + name + "-settings"}}))
		after, err := deployedTo(ctx, c)
		check(t, err)
		if b := before[name]; after.settings != b.settings || after.hand != b.hand {
			t.Errorf("%s: the objects are other ones, or have changed: %+v, and were %+v", name, after, b)
		}
		if after.revisions != before[name].revisions || after.first != before[name].first {
			t.Errorf("%s: the release has %d revisions, and had %d; its first one is %s, and was %s", name, after.revisions, before[name].revisions, after.first, before[name].first)
		}
	}
	// A second import finds nothing but what it left.
	out, errs, code = chandler(t, "import", "--from-cluster", "--kubeconfig", h.KubeconfigFile())
	if code != 0 || out != "" || !strings.Contains(errs, "there is nothing to fold: of ") || !strings.Contains(errs, "and 1 is left") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	for name, color := range colors {
		check(t, wantData(ctx, clusters[name], "imp-apps", "imp-settings", "color", color))
		check(t, wantData(ctx, clusters[name], "default", "imp-hand", "color", color))
	}
	set := addonSet("imported", "fleet")
	check(t, h.Client.Delete(ctx, set))
	soon(t, "what was imported goes with its set", func() error { return errors.Join(approveHeld(t.Context(), h.Client), wantGone(ctx, h.Client, set)) })
	for _, c := range clusters {
		check(t, wantNoConfigMap(ctx, c, "imp-apps", "imp-settings"))
		check(t, wantNoConfigMap(ctx, c, "default", "imp-hand"))
	}
}

// deployed is what a cluster has of the imported objects.
type deployed struct {
	// settings and hand are the UID and the content of an object of the release, and of one of the Kustomization.
	settings, hand string
	// revisions is how many the release has had, and first the UID of the record of the first.
	revisions int
	first     types.UID
}

func deployedTo(ctx context.Context, c *localfleet.Cluster) (deployed, error) {
	var out deployed
	for key, to := range map[client.ObjectKey]*string{{Namespace: "imp-apps", Name: "imp-settings"}: &out.settings, {Namespace: "default", Name: "imp-hand"}: &out.hand} {
		cm := &corev1.ConfigMap{}
		if err := c.Client.Get(ctx, key, cm); err != nil {
			return out, err
		}
		// Flux notes in labels which of its objects has it: that alone changes.
		*to = fmt.Sprint(cm.UID, cm.CreationTimestamp, cm.Data)
	}
	records := &corev1.SecretList{}
	if err := c.Client.List(ctx, records, client.InNamespace("imp-apps"), client.MatchingLabels{"owner": "helm", "name": "imp-settings"}); err != nil {
		return out, err
	}
	for i := range records.Items {
		if records.Items[i].Labels["version"] == "1" {
			out.first = records.Items[i].UID
		}
		out.revisions++
	}
	if out.first == "" {
		return out, errors.New("there is no record of the first revision")
	}
	return out, nil
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
	for file, text := range files {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
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
