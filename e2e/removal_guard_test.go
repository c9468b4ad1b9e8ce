// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/facade"
)

// guardedFleet is a fleet of twenty registrations, for twenty clusters that one API server plays. Each has a ConfigMap of its own there.
type guardedFleet struct{ *generation }

const guardedClusters = 20

// TestRemovalGuard shows that no single edit, and no number of them in a row, take more than three of twenty clusters away within the hour,
// that the set says how to go on, and that the approval does it.
func TestRemovalGuard(t *testing.T) {
	beside(t)
	g := &guardedFleet{startGeneration(t, "hub-guard")}
	_, err := g.git.Commit("fleet", map[string]string{
		"guard/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"grd-${cluster}-${addon}\", namespace: default}\ndata: {a: b}\n",
		"color/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"grd-${cluster}-${color}\"}\ndata: {a: b}\n",
	})
	check(t, err)
	many, err := facade.New(g.one.Config)
	check(t, err)
	t.Cleanup(many.Close)
	for i := range guardedClusters {
		labels := map[string]string{"tier": "guarded"}
		if i < 5 {
			labels["few"] = "yes"
		}
		name := fmt.Sprintf("c%02d", i)
		kubeconfig, err := many.KubeConfig(name)
		check(t, err)
		registerBy(t, g.Client, "fleet", name, kubeconfig, labels)
	}
	t.Run("a selector that matches nothing", g.selector)
	t.Run("an add-on that an overlay excludes", func(t *testing.T) {
		expect.AtNight(t, "TestCountedOnce and TestAnApprovalIsForOneTime of internal/guard; the simulation's invariant held")
		g.excluded(t)
	})
	t.Run("edits of labels, one after the other", g.labels)
	t.Run("the set is deleted", g.deleted)
	t.Run("a release is renamed", g.renamed)
	t.Run("an edit that takes nothing away", func(t *testing.T) {
		expect.AtNight(t, "TestQuiet of internal/guard, and each edit of the simulation")
		g.edited(t)
	})
	t.Run("off", g.off)
}

// set applies a set of Kustomizations.
func (g *guardedFleet) set(t *testing.T, name, selector, more string, addons ...string) {
	t.Helper()
	var b strings.Builder
	for _, a := range addons {
		fmt.Fprintf(&b, "    - {name: %[1]s, kustomization: {interval: 1h, path: ./guard, sourceRef: {name: fleet}, postBuild: {substitute: {cluster: \"<< cluster.name >>\", addon: %[1]s}}}}\n", a)
	}
	g.apply(t, fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: %s, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: %s}
  rollout: {strategy: AllAtOnce}
  sources: [{name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
%s%s`, name, selector, b.String(), more))
}

// left wants an add-on's ConfigMaps on so many clusters.
func (g *guardedFleet) left(ctx context.Context, addon string, want int) error {
	list := &corev1.ConfigMapList{}
	if err := g.one.Client.List(ctx, list, client.InNamespace("default")); err != nil {
		return err
	}
	n := 0
	for _, cm := range list.Items {
		if strings.HasPrefix(cm.Name, "grd-c") && strings.HasSuffix(cm.Name, "-"+addon) {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("add-on %s is on %d clusters, want %d", addon, n, want)
	}
	return nil
}

// held wants so many clusters held, and a condition that says how to go on; the approval is in out.
func (g *guardedFleet) held(ctx context.Context, name string, want int32, out *string) error {
	set := addonSet("flux-system", name)
	if err := g.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	if set.Status.Clusters == nil {
		return fmt.Errorf("set %s has not been looked at", name)
	}
	if want == 0 {
		if set.Status.HeldRemovals != nil || set.Status.Clusters.Held != 0 || conditionOf(set, hubv1.RemovalsHeldCondition).Type != "" {
			return fmt.Errorf("held: %+v", set.Status.HeldRemovals)
		}
		return nil
	}
	if set.Status.HeldRemovals == nil || set.Status.HeldRemovals.Count != want || set.Status.Clusters.Held != want {
		return fmt.Errorf("held is %+v, want %d", set.Status.HeldRemovals, want)
	}
	if err := condition(ctx, g.Client, set, hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason); err != nil {
		return err
	}
	how := fmt.Sprintf("kubectl annotate addonset -n flux-system %s --overwrite chandler.dev/approve-removal=%s", name, set.Status.HeldRemovals.Hash)
	if m := conditionOf(set, hubv1.RemovalsHeldCondition).Message; !strings.Contains(m, how) {
		return fmt.Errorf("the condition does not say %q: %s", how, m)
	}
	*out = set.Status.HeldRemovals.Hash
	return nil
}

func (g *guardedFleet) approve(t *testing.T, name, hash string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ApproveRemovalAnnotation, hash)
	check(t, g.Client.Patch(t.Context(), addonSet("flux-system", name), client.RawPatch(types.MergePatchType, patch)))
}

func (g *guardedFleet) selector(t *testing.T) {
	ctx := t.Context()
	var hash string
	g.set(t, "grd-selector", "{tier: guarded}", "", "sel")
	soon(t, "the add-on is everywhere", func() error { return g.left(ctx, "sel", guardedClusters) })
	g.set(t, "grd-selector", "{tier: typo}", "", "sel")
	soon(t, "three are withdrawn, the others are held", func() error {
		return errors.Join(g.held(ctx, "grd-selector", 17, &hash), g.left(ctx, "sel", 17))
	})
	// It is sent when the guard begins to hold, and the time of some clusters is over a second before that of others.
	soon(t, "an event says so", func() error { return wantEvent(ctx, g.hub, "grd-selector", "would lose add-ons") })
	doctorFinds(t, g.KubeconfigFile(), "RemovalsHeld")
	soon(t, "a set that holds on purpose is Ready", func() error {
		return condition(ctx, g.Client, addonSet("flux-system", "grd-selector"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
	g.approve(t, "grd-selector", "00000000")
	soon(t, "another hash approves nothing", func() error {
		return errors.Join(g.held(ctx, "grd-selector", 17, &hash), says(ctx, g.hub, "grd-selector", `"00000000", is for another list`))
	})
	soon(t, "and so do the clusters", func() error {
		return condition(ctx, g.Client, registration("fleet", "c19"), hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason)
	})
	g.stop()
	g.start(t)
	g.set(t, "grd-selector", "{tier: guarded}", "", "sel")
	soon(t, "the edit is undone, and all is as before, also by a hub that did not see it", func() error {
		return errors.Join(g.held(ctx, "grd-selector", 0, nil), g.left(ctx, "sel", guardedClusters))
	})
	g.set(t, "grd-selector", "{tier: typo}", "", "sel")
	soon(t, "in the same hour none goes", func() error {
		return errors.Join(g.held(ctx, "grd-selector", guardedClusters, &hash), g.left(ctx, "sel", guardedClusters))
	})
	unregister := chandlerStart(t, "unregister", "fleet/c19", "--yes", "--kubeconfig", g.KubeconfigFile(), "--secret-namespaces=*")
	line := unregister.says(t, "the removal guard of AddonSet flux-system/grd-selector holds it")
	if !strings.Contains(line, "20 clusters would lose add-ons") {
		t.Errorf("whoever unregisters one of them is told\n%s", line)
	}
	check(t, g.left(ctx, "sel", guardedClusters))
	command, _, _ := strings.Cut(line, ";")
	expect.Kubectl(t, g.Client, command)
	soon(t, "the approval lets them go", func() error {
		return errors.Join(g.left(ctx, "sel", 0), g.held(ctx, "grd-selector", 0, nil))
	})
	unregister.ends(t, 0)
	check(t, wantGone(ctx, g.Client, registration("fleet", "c19")))
	register := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, hubv1.RegisterLabel))
	check(t, g.Client.Patch(ctx, secret("fleet", "c19", nil), register)) // those that come after this want all twenty
	g.remove(t, "flux-system", "grd-selector")
}

// says wants a text in a set's condition about what is held.
func says(ctx context.Context, h *hub, name, text string) error {
	set := addonSet("flux-system", name)
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	if c := conditionOf(set, hubv1.RemovalsHeldCondition); !strings.Contains(c.Message, text) {
		return fmt.Errorf("the condition is %+v, want %q", c, text)
	}
	return nil
}

func (g *guardedFleet) excluded(t *testing.T) {
	ctx := t.Context()
	var hash string
	g.set(t, "grd-exclude", "{tier: guarded}", "", "stay", "leave")
	soon(t, "both add-ons are everywhere", func() error {
		return errors.Join(g.left(ctx, "stay", guardedClusters), g.left(ctx, "leave", guardedClusters))
	})
	g.set(t, "grd-exclude", "{tier: guarded}", "  overlays: [{name: none, clusterSelector: {matchExpressions: [{key: tier, operator: Exists}]}, addons: [{name: leave, exclude: true}]}]\n", "stay", "leave")
	soon(t, "it leaves three clusters", func() error {
		return errors.Join(g.held(ctx, "grd-exclude", 17, &hash), g.left(ctx, "leave", 17), g.left(ctx, "stay", guardedClusters))
	})
	soon(t, "the others say what they wait for", func() error {
		return g.addonOf(ctx, "c19", "grd-exclude", "leave", hubv1.AddonHeld, "removal guard has not granted its removal")
	})
	g.set(t, "grd-exclude", "{tier: guarded}", "", "stay")
	soon(t, "dropped instead, it is as much held", func() error {
		return errors.Join(g.held(ctx, "grd-exclude", 17, &hash), g.left(ctx, "leave", 17))
	})
	g.approve(t, "grd-exclude", hash)
	soon(t, "the approval lets them go, and nothing else", func() error {
		return errors.Join(g.left(ctx, "leave", 0), g.left(ctx, "stay", guardedClusters), g.held(ctx, "grd-exclude", 0, nil))
	})
	soon(t, "no grant is left over", func() error {
		list := &hubv1.AddonDeliveryList{}
		err := g.Client.List(ctx, list)
		for _, d := range list.Items {
			if len(d.Spec.Removals) > 0 {
				err = errors.Join(err, fmt.Errorf("delivery %s has %v", d.Name, d.Spec.Removals))
			}
		}
		return err
	})
	// Leaves by deletion of the set, with an approval from before. Three clusters have lost something of it in this hour.
	check(t, g.Client.Delete(ctx, addonSet("flux-system", "grd-exclude")))
	soon(t, "none goes", func() error {
		return errors.Join(g.held(ctx, "grd-exclude", guardedClusters, &hash), g.left(ctx, "stay", guardedClusters))
	})
	g.approve(t, "grd-exclude", hash)
	soon(t, "all go", func() error {
		return errors.Join(g.left(ctx, "stay", 0), wantGone(ctx, g.Client, addonSet("flux-system", "grd-exclude")))
	})
}

func (g *guardedFleet) label(t *testing.T, cluster int, value string) {
	t.Helper()
	s := secret("fleet", fmt.Sprintf("c%02d", cluster), nil)
	check(t, g.Client.Patch(t.Context(), s, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, value))))
}

func (g *guardedFleet) labels(t *testing.T) {
	ctx := t.Context()
	var hash string
	g.set(t, "grd-labels", "{tier: guarded}", "", "lab")
	soon(t, "the add-on is everywhere", func() error { return g.left(ctx, "lab", guardedClusters) })
	edits := expect.ByDay(5, guardedClusters) // TestOneByOne of internal/guard makes all
	for i := range edits {
		g.label(t, i, "none")
		soon(t, fmt.Sprintf("edit %d is seen", i+1), func() error {
			return errors.Join(g.held(ctx, "grd-labels", int32(max(0, i-2)), &hash), g.left(ctx, "lab", guardedClusters-min(3, i+1)))
		})
	}
	g.approve(t, "grd-labels", hash)
	soon(t, "the approval lets them go", func() error {
		return errors.Join(g.left(ctx, "lab", guardedClusters-edits), g.held(ctx, "grd-labels", 0, nil))
	})
	for i := range edits {
		g.label(t, i, "guarded")
	}
	soon(t, "the labels bring it back", func() error { return g.left(ctx, "lab", guardedClusters) })
}

// deleted deletes the set of before, which three clusters have lost in this hour.
func (g *guardedFleet) deleted(t *testing.T) {
	ctx := t.Context()
	var hash string
	set := addonSet("flux-system", "grd-labels")
	check(t, g.Client.Delete(ctx, set))
	soon(t, "it keeps all", func() error {
		return errors.Join(g.held(ctx, "grd-labels", guardedClusters, &hash), g.left(ctx, "lab", guardedClusters))
	})
	soon(t, "and says how to go back", func() error { return says(ctx, g.hub, "grd-labels", "set spec.deletionPolicy to Orphan") })
	check(t, g.Client.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletionPolicy":"Orphan"}}`))))
	soon(t, "orphaned, it is gone", func() error { return wantGone(ctx, g.Client, set) })
	check(t, g.left(ctx, "lab", guardedClusters))
	g.set(t, "grd-labels", "{tier: guarded}", "", "lab")
	soon(t, "applied again, it goes on with what runs", func() error {
		return errors.Join(condition(ctx, g.Client, set, hubv1.HealthyCondition, metav1.ConditionTrue, hubv1.SucceededReason), g.left(ctx, "lab", guardedClusters))
	})
	check(t, g.Client.Delete(ctx, set))
	soon(t, "a new set lets three go", func() error { return errors.Join(g.held(ctx, "grd-labels", 17, &hash), g.left(ctx, "lab", 17)) })
	g.revisionsComeBack(t, set)
	g.approve(t, "grd-labels", hash)
	soon(t, "the approval lets all go", func() error { return errors.Join(g.left(ctx, "lab", 0), wantGone(ctx, g.Client, set)) })
}

// revisionsComeBack: what garbage collection does for --cascade=orphan. What is held needs the set's revision, and nobody else would
// ever remove it.
func (g *guardedFleet) revisionsComeBack(t *testing.T, set *hubv1.AddonSet) {
	ctx := t.Context()
	list := &appsv1.ControllerRevisionList{}
	check(t, g.Client.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels{hubv1.AddonSetLabel: set.Name}))
	if len(list.Items) != 1 {
		t.Fatalf("%d revisions of %s, want one", len(list.Items), set.Name)
	}
	revision := &list.Items[0]
	check(t, g.Client.Patch(ctx, revision, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))))
	soon(t, "the set's revision is its own again", func() error {
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(revision), revision); err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(revision); owner == nil || owner.Name != set.Name {
			return fmt.Errorf("the owner of revision %s is %v", revision.Name, owner)
		}
		return nil
	})
}

func (g *guardedFleet) renamed(t *testing.T) {
	ctx := t.Context()
	var hash string
	set := func(release string) {
		t.Helper()
		g.apply(t, fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: grd-rename, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {few: "yes"}}
  rollout: {strategy: AllAtOnce} # so the first one by name is the one that the guard lets go
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  addons:
    - {name: ren, helmRelease: {releaseName: "<< cluster.name + '-%s' >>", chart: {spec: {chart: settings, sourceRef: {name: charts}}}}}
`, release))
	}
	releases := func(suffix string, want int) error {
		list := &corev1.ConfigMapList{}
		err := g.one.Client.List(ctx, list, client.InNamespace("ren"))
		n := 0
		for _, cm := range list.Items {
			if strings.HasSuffix(cm.Name, suffix) {
				n++
			}
		}
		if n != want {
			err = errors.Join(err, fmt.Errorf("%d releases %s, want %d", n, suffix, want))
		}
		return err
	}
	set("old")
	soon(t, "the releases are there", func() error { return releases("-old", 5) })
	set("new")
	soon(t, "one of five is installed anew", func() error {
		return errors.Join(releases("-old", 4), releases("-new", 1), g.held(ctx, "grd-rename", 4, &hash))
	})
	soon(t, "the others say so", func() error {
		return g.addonOf(ctx, "c04", "grd-rename", "ren", hubv1.AddonHeld, `Flux would uninstall release "c04-old"`)
	})
	g.approve(t, "grd-rename", hash)
	soon(t, "the approval lets the others follow", func() error {
		return errors.Join(releases("-old", 0), releases("-new", 5), g.held(ctx, "grd-rename", 0, nil))
	})
}

// edited edits what is put into a namespace of its own choice, and stays there: the guard has nothing to say.
func (g *guardedFleet) edited(t *testing.T) {
	ctx := t.Context()
	for _, color := range []string{"red", "green"} {
		g.apply(t, fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: grd-edit, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: guarded}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
    - {name: edit, kustomization: {interval: 1h, path: ./color, targetNamespace: default, sourceRef: {name: fleet}, postBuild: {substitute: {cluster: "<< cluster.name >>", color: %s}}}}
`, color))
		soon(t, color+" is everywhere, and nothing is held", func() error {
			return errors.Join(g.left(ctx, color, guardedClusters), g.held(ctx, "grd-edit", 0, nil))
		})
	}
	g.unguarded(t, "grd-edit")
}

// unguarded turns the guard of a set off, and deletes the set.
func (g *guardedFleet) unguarded(t *testing.T, set string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"removalGuard":{"mode":"Off"}}}`))
	check(t, g.Client.Patch(t.Context(), addonSet("flux-system", set), patch))
	g.remove(t, "flux-system", set)
}

func (g *guardedFleet) off(t *testing.T) {
	g.unguarded(t, "grd-rename")
	list := &corev1.ConfigMapList{}
	check(t, g.one.Client.List(t.Context(), list, client.InNamespace("ren")))
	for _, cm := range list.Items {
		if cm.Name != "kube-root-ca.crt" {
			t.Errorf("ConfigMap %s is left", cm.Name)
		}
	}
}
