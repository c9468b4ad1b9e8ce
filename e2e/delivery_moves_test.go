// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// TestMoves shows that a workload outlives whoever delivers it: what takes over goes on with the same Helm release, and its
// objects on the cluster are never made anew. And that what comes after something else does.
func TestMoves(t *testing.T) {
	beside(t)
	g := startGeneration(t, "hub-moves")
	t.Run("order across kinds", g.orderAcrossKinds)
	t.Run("a set after a set", g.setAfterSet)
	t.Run("a cluster without nodes", g.withoutNodes)
	t.Run("an upgrade that fails again and again", g.failsAgain)
	t.Run("a conflict across namespaces", g.conflictAcrossNamespaces)
	t.Run("one release under two names", g.oneReleaseTwoNames)
	t.Run("an add-on is renamed", g.rename)
	t.Run("an add-on moves to another set", g.moveToAnotherSet)
	t.Run("manifests are renamed", g.renameManifests)
	t.Run("a hand-written HelmRelease is adopted", g.adopt)
	t.Run("a hand-written Kustomization is adopted", g.adoptKustomization)
}

// settings is the line of an add-on that delivers the test chart.
func settings(name, more string) string {
	return fmt.Sprintf("    - name: %s\n      helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}%s}\n", name, more)
}

func chartSet(namespace, name, more string, addons ...string) string {
	return fmt.Sprintf("apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: %s, namespace: %s}\nspec:\n  clusterSelector: {matchLabels: {region: eu}}\n%s"+
		"  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]\n  addons:\n%s---\n",
		name, namespace, more, strings.Join(addons, ""))
}

// workloadOf remembers a ConfigMap of a release, and how many revisions the release has had.
type workloadOf struct {
	c                  *localfleet.Cluster
	namespace, release string
	uid                types.UID
	revisions          int
}

// remember waits for a release and what it delivers.
func remember(t *testing.T, c *localfleet.Cluster, namespace, release string) *workloadOf {
	t.Helper()
	w := &workloadOf{c: c, namespace: namespace, release: release}
	soon(t, "release "+release+" is there", func() error { return w.read(t, &w.uid, &w.revisions) })
	return w
}

func (w *workloadOf) read(t *testing.T, uid *types.UID, revisions *int) error {
	cm := &corev1.ConfigMap{}
	if err := w.c.Client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: w.release}, cm); err != nil {
		return err
	}
	records := &corev1.SecretList{}
	if err := w.c.Client.List(t.Context(), records, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm", "name": w.release}); err != nil {
		return err
	}
	*uid, *revisions = cm.UID, len(records.Items)
	if len(records.Items) == 0 {
		return errors.New("there is no record of the release")
	}
	return nil
}

// goesOn wants the release to have had a further revision, and its objects to be the very same.
func (w *workloadOf) goesOn(t *testing.T) {
	t.Helper()
	var uid types.UID
	var revisions int
	soon(t, "the release has a further revision", func() error {
		if err := w.read(t, &uid, &revisions); err != nil {
			return err
		}
		if revisions <= w.revisions {
			return fmt.Errorf("it has had %d, and had %d before", revisions, w.revisions)
		}
		return nil
	})
	if uid != w.uid {
		t.Errorf("the objects of release %s were made anew", w.release)
	}
	w.revisions = revisions
}

func (w *workloadOf) isGone(t *testing.T) {
	t.Helper()
	soon(t, "it is uninstalled in the end", func() error { return wantNoConfigMap(t.Context(), w.c, w.namespace, w.release) })
}

func (g *generation) orderAcrossKinds(t *testing.T) {
	ctx := t.Context()
	_, err := g.git.Commit("fleet", map[string]string{"after/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mov-after, namespace: default}\ndata: {a: b}\n"})
	check(t, err)
	after := "    - {name: mov-after, dependsOn: [{name: mov-before}], kustomization: {interval: 1h, path: ./after, sourceRef: {name: fleet}}}\n"
	version := func(v string) string {
		return strings.Replace(settings("mov-before", ""), "chart: settings,", "chart: settings, version: "+v+",", 1)
	}
	g.apply(t, chartSet("flux-system", "order", "", after, version("9.9.9"), settings("mov-other", "")))
	soon(t, "an add-on that depends on nothing arrives", func() error { _, err := configMap(ctx, g.one, "mov-other", "mov-other"); return err })
	soon(t, "the dependant waits", func() error {
		return g.addonOf(ctx, "one", "order", "mov-after", hubv1.AddonWaitingForDependency, `waits for add-on "mov-before" (HelmRelease) to be Ready`)
	})
	check(t, wantNoConfigMap(ctx, g.one, "default", "mov-after"))
	g.apply(t, chartSet("flux-system", "order", "", after, version("'*'"), settings("mov-other", "")))
	soon(t, "the dependant arrives after its dependency", func() error { return wantData(ctx, g.one, "default", "mov-after", "a", "b") })
	g.remove(t, "flux-system", "order")
	soon(t, "all is gone", func() error {
		if err := approveHeld(t.Context(), g.Client); err != nil {
			return err
		}
		return errors.Join(wantNoConfigMap(ctx, g.one, "default", "mov-after"), wantNoConfigMap(ctx, g.one, "mov-before", "mov-before"))
	})
}

func (g *generation) setAfterSet(t *testing.T) {
	ctx := t.Context()
	broken := strings.Replace(settings("mov-first", ""), "chart: settings,", "chart: settings, version: 9.9.9,", 1)
	g.apply(t, chartSet("flux-system", "second", "  dependsOn: [{name: first}]\n", settings("mov-second", ""))+chartSet("flux-system", "first", "", broken))
	soon(t, "the second set waits for the first", func() error {
		return g.addonOf(ctx, "one", "second", "mov-second", hubv1.AddonWaitingForDependency, `waits for AddonSet "first"`)
	})
	g.apply(t, chartSet("flux-system", "first", "", settings("mov-first", "")))
	soon(t, "then it comes", func() error { _, err := configMap(ctx, g.one, "mov-second", "mov-second"); return err })
	g.apply(t, chartSet("flux-system", "first", "  dependsOn: [{name: second}]\n", settings("mov-first", "")))
	soon(t, "a cycle is called by its name", func() error {
		return errors.Join(
			condition(ctx, g.Client, addonSet("flux-system", "first"), hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason),
			condition(ctx, g.Client, addonSet("flux-system", "second"), hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason),
		)
	})
	g.remove(t, "flux-system", "second")
	soon(t, "without the other there is no cycle, and a name that leads nowhere", func() error {
		set := addonSet("flux-system", "first")
		if err := condition(ctx, g.Client, set, hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason); err != nil {
			return err
		}
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if c := conditionOf(set, hubv1.StalledCondition); !strings.Contains(c.Message, `there is no AddonSet "second"`) {
			return errors.New(c.Message)
		}
		return nil
	})
	g.apply(t, chartSet("flux-system", "first", "", settings("mov-first", "")))
	soon(t, "without that it is Ready", func() error {
		return condition(ctx, g.Client, addonSet("flux-system", "first"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
	g.remove(t, "flux-system", "first")
}

func (g *generation) withoutNodes(t *testing.T) {
	g.apply(t, chartSet("flux-system", "nodes", "", `    - name: mov-deployment
      manifests:
        timeout: 2s
        objects:
          - apiVersion: apps/v1
            kind: Deployment
            metadata: {name: mov-deployment}
            spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}
`))
	soon(t, "it waits for nodes", func() error {
		return g.addonOf(t.Context(), "one", "nodes", "mov-deployment", hubv1.AddonWaitingForNodes, "the cluster has no node yet; ")
	})
	g.remove(t, "flux-system", "nodes")
}

// failsAgain: what Flux tries again and again is Failed, for the reason that Flux gives, since the first time, and costs no write for each try.
func (g *generation) failsAgain(t *testing.T) {
	ctx := t.Context()
	retry := ", upgrade: {strategy: {name: RetryOnFailure, retryInterval: 1s}}"
	// The API server refuses it. What fails before Helm has noted a release is in sync for Flux at the next try.
	broken := `, postRenderers: [{kustomize: {patches: [{target: {kind: ConfigMap}, patch: '[{"op": "add", "path": "/metadata/labels", "value": {"a": "not a label"}}]'}]}}]`
	g.apply(t, chartSet("flux-system", "fails", "", settings("mov-fails", retry)))
	soon(t, "it is Ready", func() error { return g.addonOf(ctx, "one", "fails", "mov-fails", hubv1.AddonReady, "") })
	g.apply(t, chartSet("flux-system", "fails", "", settings("mov-fails", retry+broken)))
	soon(t, "the upgrade fails, and the set says so", func() error {
		return errors.Join(g.addonOf(ctx, "one", "fails", "mov-fails", hubv1.AddonFailed, "UpgradeFailed: Flux says, perhaps in the cluster's words: \"Helm upgrade failed"),
			condition(ctx, g.Client, addonSet("flux-system", "fails"), hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.AddonsFailedReason))
	})
	delivery := func() *hubv1.AddonDelivery {
		list := &hubv1.AddonDeliveryList{}
		check(t, g.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonSetLabel: "fails", hubv1.ClusterLabel: "one"}))
		return &list.Items[0]
	}
	first, tries := delivery(), int64(0)
	soon(t, "Flux tries three times more", func() error {
		hr := &helmv2.HelmRelease{}
		check(t, g.Client.Get(ctx, types.NamespacedName{Namespace: "flux-system", Name: first.Status.Addons[0].Object}, hr))
		if tries == 0 {
			tries = hr.Status.Failures
		}
		if d := delivery(); d.ResourceVersion != first.ResourceVersion {
			t.Fatalf("while Flux tries again, the delivery says %+v, and said %+v", d.Status, first.Status)
		}
		if hr.Status.Failures < tries+3 {
			return fmt.Errorf("it has tried %d times", hr.Status.Failures)
		}
		return nil
	})
	set := &hubv1.AddonSet{}
	check(t, g.Client.Get(ctx, types.NamespacedName{Namespace: "flux-system", Name: "fails"}, set))
	if ready := status.Find(set, hubv1.ReadyCondition); set.Status.Clusters.Failed == 0 || !strings.Contains(ready.Message, "mov-fails: UpgradeFailed") {
		t.Errorf("FAILED %d: %s", set.Status.Clusters.Failed, ready.Message)
	}
	g.apply(t, chartSet("flux-system", "fails", "", settings("mov-fails", retry)))
	soon(t, "what is mended is Ready", func() error {
		return errors.Join(g.addonOf(ctx, "one", "fails", "mov-fails", hubv1.AddonReady, ""),
			condition(ctx, g.Client, addonSet("flux-system", "fails"), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason))
	})
	g.remove(t, "flux-system", "fails")
}

func (g *generation) conflictAcrossNamespaces(t *testing.T) {
	g.apply(t, chartSet("flux-system", "winner", "  priority: 5\n", settings("mov-shared", ", values: {color: red}")))
	w := remember(t, g.one, "mov-shared", "mov-shared")
	g.apply(t, chartSet("platform", "loser", "", settings("mov-shared", ", values: {color: green}")))
	soon(t, "the loser says who won", func() error {
		return errors.Join(g.addonOf(t.Context(), "one", "loser", "mov-shared", hubv1.AddonLostTo, "AddonSet flux-system/winner delivers"),
			condition(t.Context(), g.Client, addonSet("platform", "loser"), hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.AddonsLostReason))
	})
	check(t, g.Client.Delete(t.Context(), addonSet("flux-system", "winner")))
	soon(t, "the other takes over", func() error { return wantData(t.Context(), g.one, "mov-shared", "mov-shared", "color", "green") })
	w.goesOn(t)
	soon(t, "the winner is gone", func() error {
		return errors.Join(approveHeld(t.Context(), g.Client), wantGone(t.Context(), g.Client, addonSet("flux-system", "winner")))
	})
	g.apply(t, chartSet("flux-system", "winner", "  priority: 5\n", settings("mov-shared", ", values: {color: red}")))
	soon(t, "the stronger one takes it back", func() error { return wantData(t.Context(), g.one, "mov-shared", "mov-shared", "color", "red") })
	w.goesOn(t)
	g.remove(t, "platform", "loser")
	g.remove(t, "flux-system", "winner")
	w.isGone(t)
}

func (g *generation) oneReleaseTwoNames(t *testing.T) {
	same := ", releaseName: mov-same, targetNamespace: mov-same, values: {color: %s}"
	g.apply(t, chartSet("flux-system", "names-a", "  priority: 5\n", settings("mov-name-a", fmt.Sprintf(same, "red"))))
	w := remember(t, g.one, "mov-same", "mov-same")
	g.apply(t, chartSet("flux-system", "names-b", "", settings("mov-name-b", fmt.Sprintf(same, "green"))))
	soon(t, "the loser says who won", func() error {
		return g.addonOf(t.Context(), "one", "names-b", "mov-name-b", hubv1.AddonLostTo, `Helm release "mov-same" in namespace "mov-same"`)
	})
	check(t, g.Client.Delete(t.Context(), addonSet("flux-system", "names-a")))
	soon(t, "the other takes over", func() error { return wantData(t.Context(), g.one, "mov-same", "mov-same", "color", "green") })
	w.goesOn(t)
	g.remove(t, "flux-system", "names-b")
	w.isGone(t)
}

func (g *generation) rename(t *testing.T) {
	g.apply(t, chartSet("flux-system", "rename", "", settings("mov-old", ", values: {color: red}")))
	w := remember(t, g.one, "mov-old", "mov-old")
	moved := strings.Replace(settings("mov-new", ", values: {color: green}"), "      helmRelease", "      movedFrom: [{name: mov-old}]\n      helmRelease", 1)
	g.apply(t, chartSet("flux-system", "rename", "", moved))
	soon(t, "the new name delivers", func() error { return wantData(t.Context(), g.one, "mov-old", "mov-old", "color", "green") })
	w.goesOn(t)
	soon(t, "it is Ready", func() error { return g.addonOf(t.Context(), "one", "rename", "mov-new", hubv1.AddonReady, "") })
	// The release stays what it was when nothing speaks of the move any more.
	g.apply(t, chartSet("flux-system", "rename", "", settings("mov-new", ", values: {color: blue}")))
	soon(t, "a later change arrives", func() error { return wantData(t.Context(), g.one, "mov-old", "mov-old", "color", "blue") })
	w.goesOn(t)
	g.remove(t, "flux-system", "rename")
	w.isGone(t)
}

func (g *generation) moveToAnotherSet(t *testing.T) {
	g.apply(t, chartSet("flux-system", "from", "", settings("mov-move", ", values: {color: red}"), settings("mov-stays", "")))
	w := remember(t, g.one, "mov-move", "mov-move")
	to := func(color string) string {
		return chartSet("platform", "to", "", strings.Replace(settings("mov-moved", ", values: {color: "+color+"}"), "      helmRelease", "      movedFrom: [{namespace: flux-system, addonSet: from, name: mov-move}]\n      helmRelease", 1))
	}
	// First the new one, then without the old one: it waits until it may.
	g.apply(t, to("green"))
	soon(t, "the new one waits for the old one to leave", func() error {
		return g.addonOf(t.Context(), "one", "to", "mov-moved", hubv1.AddonLostTo, "AddonSet flux-system/from delivers")
	})
	g.apply(t, chartSet("flux-system", "from", "", settings("mov-stays", "")))
	soon(t, "then it takes over", func() error { return wantData(t.Context(), g.one, "mov-move", "mov-move", "color", "green") })
	w.goesOn(t)
	g.remove(t, "platform", "to")
	w.isGone(t)
	// In one commit, of which the old one's half arrives first.
	g.apply(t, chartSet("flux-system", "from", "", settings("mov-move", ", values: {color: red}"), settings("mov-stays", "")))
	w = remember(t, g.one, "mov-move", "mov-move")
	g.apply(t, chartSet("flux-system", "from", "", settings("mov-stays", ""))+to("blue"))
	soon(t, "the new one takes over", func() error { return wantData(t.Context(), g.one, "mov-move", "mov-move", "color", "blue") })
	w.goesOn(t)
	g.remove(t, "platform", "to")
	g.remove(t, "flux-system", "from")
	w.isGone(t)
}

// renameManifests: a definition that is deleted takes everything of its kind with it.
func (g *generation) renameManifests(t *testing.T) {
	ctx := t.Context()
	set := func(head string) {
		t.Helper()
		g.apply(t, "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: manifests, namespace: flux-system}\nspec:\n  clusterSelector: {matchLabels: {region: eu}}\n  addons:\n    - "+head+`
      manifests:
        interval: 1h
        objects:
          - {apiVersion: mov.example.org/v1, kind: Gadget, metadata: {name: first}}
          - apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata: {name: gadgets.mov.example.org}
            spec:
              group: mov.example.org
              scope: Namespaced
              names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
              versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`)
	}
	gadget := widget("first")
	gadget.SetAPIVersion("mov.example.org/v1")
	gadget.SetKind("Gadget")
	set("name: mov-plain")
	soon(t, "the object is there", func() error { return g.one.Client.Get(ctx, client.ObjectKeyFromObject(gadget), gadget) })
	soon(t, "all is Ready", func() error { return g.addonOf(ctx, "one", "manifests", "mov-plain", hubv1.AddonReady, "") })
	before := gadget.GetUID()
	set("name: mov-renamed\n      movedFrom: [{name: mov-plain}]")
	soon(t, "the new name delivers it", func() error { return g.addonOf(ctx, "one", "manifests", "mov-renamed", hubv1.AddonReady, "") })
	check(t, g.one.Client.Get(ctx, client.ObjectKeyFromObject(gadget), gadget))
	if gadget.GetUID() != before || gadget.GetDeletionTimestamp() != nil {
		t.Error("the definition was deleted, and all objects of its kind with it")
	}
	g.remove(t, "flux-system", "manifests")
}

func (g *generation) adopt(t *testing.T) {
	ctx := t.Context()
	g.apply(t, `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: fleet}
spec: {url: $CHARTS, interval: 1m}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: one-legacy, namespace: fleet}
spec:
  interval: 1h
  releaseName: legacy
  targetNamespace: mov-legacy
  storageNamespace: mov-legacy
  install: {createNamespace: true}
  kubeConfig: {secretRef: {name: one}}
  chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {color: by hand}
`)
	w := remember(t, g.one, "mov-legacy", "legacy")
	g.apply(t, chartSet("flux-system", "adopts", "", settings("mov-adopted", ", releaseName: legacy, targetNamespace: mov-legacy, values: {color: red}")))
	soon(t, "what is not ours is left alone", func() error {
		return g.addonOf(ctx, "one", "adopts", "mov-adopted", hubv1.AddonNotOwned, "HelmRelease fleet/one-legacy, which Chandler did not make")
	})
	check(t, wantData(ctx, g.one, "mov-legacy", "legacy", "color", "by hand"))
	adopting := strings.Replace(settings("mov-adopted", ", values: {color: green}"), "      helmRelease", "      adopt: {name: \"<< cluster.name >>-legacy\", namespace: fleet}\n      helmRelease", 1)
	g.apply(t, chartSet("flux-system", "adopts", "", adopting))
	soon(t, "the set delivers it now", func() error { return wantData(ctx, g.one, "mov-legacy", "legacy", "color", "green") })
	w.goesOn(t)
	soon(t, "the hand-written object is gone", func() error {
		return wantGone(ctx, g.Client, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one-legacy"}})
	})
	soon(t, "and the chart that Flux kept for it", func() error {
		return wantGone(ctx, g.Client, &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "fleet-one-legacy"}})
	})
	// Another cluster's is not taken for this one's.
	g.apply(t, `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: one-other, namespace: fleet}
spec:
  interval: 1h
  suspend: true
  kubeConfig: {secretRef: {name: two}}
  chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: charts}}}
`)
	wrong := strings.Replace(settings("mov-wrong", ""), "      helmRelease", "      adopt: {name: \"<< cluster.name >>-other\", namespace: fleet}\n      helmRelease", 1)
	g.apply(t, chartSet("flux-system", "adopts", "", adopting, wrong))
	soon(t, "another cluster's object is refused", func() error {
		return g.addonOf(ctx, "one", "adopts", "mov-wrong", hubv1.AddonFailed, "is for another cluster")
	})
	g.patchRegistration(t, "one", `{"spec":{"overrides":[{"name":"mov-adopted","helmRelease":{"values":{"color":"blue"}}}]}}`)
	soon(t, "while the other add-on goes on", func() error { return wantData(ctx, g.one, "mov-legacy", "legacy", "color", "blue") })
	soon(t, "which is refused still", func() error {
		return g.addonOf(ctx, "one", "adopts", "mov-wrong", hubv1.AddonFailed, "is for another cluster")
	})
	made := &helmv2.HelmReleaseList{}
	check(t, g.Client.List(ctx, made, client.MatchingLabels{hubv1.AddonLabel: "mov-wrong"}))
	if len(made.Items) != 0 {
		t.Error("what is refused was made all the same")
	}
	g.patchRegistration(t, "one", `{"spec":{"overrides":null}}`)
	g.remove(t, "flux-system", "adopts")
	w.isGone(t)
}

func (g *generation) adoptKustomization(t *testing.T) {
	ctx := t.Context()
	_, err := g.git.Commit("fleet", map[string]string{"hand/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mov-hand, namespace: default}\ndata: {color: \"${color}\"}\n"})
	check(t, err)
	g.apply(t, `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: fleet}
spec: {url: $GIT, interval: 2s, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: one-hand, namespace: fleet}
spec: {interval: 1h, prune: true, path: ./hand, sourceRef: {kind: GitRepository, name: fleet}, kubeConfig: {secretRef: {name: one}}, postBuild: {substitute: {color: by-hand}}}
`)
	soon(t, "the hand-written one delivers", func() error { return wantData(ctx, g.one, "default", "mov-hand", "color", "by-hand") })
	// The hub refuses one that Flux has not applied as it is, and looks at it again a minute later.
	soon(t, "and says so", func() error {
		k := &kustomizev1.Kustomization{}
		if err := g.Client.Get(ctx, types.NamespacedName{Namespace: "fleet", Name: "one-hand"}, k); err != nil {
			return err
		}
		if k.Status.ObservedGeneration != k.Generation || !meta.IsStatusConditionTrue(k.Status.Conditions, hubv1.ReadyCondition) {
			return fmt.Errorf("generation %d of %d: %v", k.Status.ObservedGeneration, k.Generation, k.Status.Conditions)
		}
		return nil
	})
	before := &corev1.ConfigMap{}
	check(t, g.one.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "mov-hand"}, before))
	g.apply(t, chartSet("flux-system", "hand", "",
		"    - {name: mov-hand, adopt: {name: one-hand, namespace: fleet}, kustomization: {interval: 1h, path: ./hand, sourceRef: {name: fleet}, postBuild: {substitute: {color: by-set}}}}\n"))
	soon(t, "the set delivers it now", func() error { return wantData(ctx, g.one, "default", "mov-hand", "color", "by-set") })
	after := &corev1.ConfigMap{}
	check(t, g.one.Client.Get(ctx, client.ObjectKeyFromObject(before), after))
	if after.UID != before.UID {
		t.Error("the object was made anew")
	}
	g.remove(t, "flux-system", "hand")
	soon(t, "it goes with the set", func() error { return wantNoConfigMap(ctx, g.one, "default", "mov-hand") })
}

// TestTwoReplicas: the chart of plain manifests comes from whichever replica Flux asks, and its bytes are the same. Here Flux
// asks the one that does not lead; then the leader goes, and the other goes on.
func TestTwoReplicas(t *testing.T) {
	beside(t)
	ctx := t.Context()
	c := workload(t, "workload-a")
	h := startHub(t, hubOptions{name: "hub-replicas", flux: &localfleet.FluxOptions{}, noHub: true})
	namespace(t, h.Client, "fleet")
	second, err := localfleet.FreePort()
	check(t, err)
	url := fmt.Sprintf("http://127.0.0.1:%d", second)
	h.args = append(h.args, "--chart-url="+url)
	h.start(t)
	other, err := h.StartHub(ctx, hubBinary, append(h.args, fmt.Sprintf("--chart-bind-address=127.0.0.1:%d", second))...)
	check(t, err)
	t.Cleanup(other.Stop)
	register(t, h.Client, "fleet", "one", c, nil)
	set := func(value string) {
		apply(t, h.Client, fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: replicas, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  addons: [{name: mov-replicas, manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: mov-replicas}, data: {value: %s}}]}}]
`, value))
	}
	set("first")
	soon(t, "the objects arrive", func() error { return wantData(ctx, c, "default", "mov-replicas", "value", "first") })
	h.stop()
	set("second")
	soon(t, "the other replica goes on", func() error { return wantData(ctx, c, "default", "mov-replicas", "value", "second") })
	check(t, h.Client.Delete(ctx, addonSet("flux-system", "replicas")))
	soon(t, "it cleans up, too", func() error { return wantNoConfigMap(ctx, c, "default", "mov-replicas") })
}
