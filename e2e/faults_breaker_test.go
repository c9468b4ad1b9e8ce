// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const breakerSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: breaker, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
    - {name: brk-chart, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: %[1]s}}}
    - {name: brk-users, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: %[1]s}}}
    - {name: brk-git, kustomization: {interval: 1h, path: ./breaker, sourceRef: {name: fleet}, postBuild: {substitute: {color: %[1]s}}}}
`

// TestBreaker stops a cluster's API server while add-ons are on it, and starts it again: Flux leaves it alone meanwhile, a healthy
// cluster notices nothing, and what somebody had suspended by hand stays suspended. And it pauses a cluster.
func TestBreaker(t *testing.T) {
	beside(t)
	ctx := t.Context()
	g := startGeneration(t, "hub-breaker")
	mortal, err := localfleet.StartCluster(ctx, localfleet.ClusterOptions{Name: "mortal", Dir: workDir, Scheme: scheme})
	check(t, err)
	t.Cleanup(func() { _ = mortal.Stop() })
	_, err = g.git.Commit("fleet", map[string]string{"breaker/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: brk-git, namespace: default}\ndata: {color: \"${color}\"}\n"})
	check(t, err)
	register(t, g.Client, "fleet", "mortal", mortal, nil)
	set := func(color string) { t.Helper(); g.apply(t, fmt.Sprintf(breakerSet, color)) }
	has := func(c *localfleet.Cluster, color string) func() error {
		return func() error {
			return errors.Join(wantData(ctx, c, "brk-chart", "brk-chart", "color", color), wantData(ctx, c, "default", "brk-git", "color", color))
		}
	}
	set("blue")
	soon(t, "the add-ons arrive", has(mortal, "blue"))
	soon(t, "all of them", func() error { return g.addonOf(ctx, "mortal", "breaker", "brk-users", hubv1.AddonReady, "") })
	users := &helmv2.HelmReleaseList{}
	check(t, g.Client.List(ctx, users, client.MatchingLabels{hubv1.ClusterLabel: "mortal", hubv1.AddonLabel: "brk-users"}))
	check(t, g.Client.Patch(ctx, &users.Items[0], client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`)), client.FieldOwner("flux")))

	reg := registration("fleet", "mortal")
	step(t, "it goes down", func(t *testing.T) {
		mortal.StopAPIServer()
		soon(t, "its Flux objects are suspended", func() error {
			return errors.Join(condition(ctx, g.Client, reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.ClusterUnreachableReason), g.suspended(ctx, "mortal", 3))
		})
		soon(t, "and said to be unreachable, which is no failure", func() error {
			return g.addonOf(ctx, "mortal", "breaker", "brk-chart", hubv1.AddonUnreachable, "has not answered")
		})
		set("green")
		soon(t, "a healthy cluster gets a change all the same", has(g.one, "green"))
		soon(t, "and nobody who waits for the set waits for the dead one", func() error {
			return condition(ctx, g.Client, addonSet("flux-system", "breaker"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
		})
	})
	step(t, "it comes back", func(t *testing.T) {
		check(t, mortal.StartAPIServer(ctx))
		soon(t, "it catches up", has(mortal, "green"))
		soon(t, "and only what was suspended by hand still is", func() error { return g.suspended(ctx, "mortal", 1) })
		soon(t, "as its state says", func() error {
			return g.addonOf(ctx, "mortal", "breaker", "brk-users", hubv1.AddonSuspended, "flux resume")
		})
	})
	step(t, "it is paused", func(t *testing.T) {
		pause := func(until time.Duration) {
			g.patchRegistration(t, "mortal", fmt.Sprintf(`{"spec":{"pause":{"until":%q,"reason":"a test"}}}`, inTime(until)))
		}
		pause(time.Hour)
		soon(t, "its Flux objects are suspended", func() error { return g.suspended(ctx, "mortal", 3) })
		soon(t, "and said to be paused", func() error {
			// Not Ready: what was suspended by hand has not had the change to green.
			return errors.Join(g.addonOf(ctx, "mortal", "breaker", "brk-chart", hubv1.AddonPaused, "a test"), condition(ctx, g.Client, reg, hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.PausedReason))
		})
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "brk-chart", Name: "brk-chart"}}
		set("red")
		soon(t, "another cluster gets a change", has(g.one, "red"))
		// Flux may still undo the edit in a reconcile that began before the pause. After that Flux leaves the cluster alone, also if a
		// user asks for a reconcile.
		expect.Lasts(t, 3*time.Second, "nothing is undone, and nothing arrives", func() error {
			err := wantData(ctx, mortal, "brk-chart", "brk-chart", "color", "theirs")
			if err != nil {
				err = errors.Join(err, mortal.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"theirs"}}`))))
			}
			return errors.Join(err, g.reconcileNow(ctx, "mortal"), wantData(ctx, mortal, "default", "brk-git", "color", "green"))
		})
		pause(2 * time.Second)
		soon(t, "when the pause ends by itself it catches up", has(mortal, "red"))
		soon(t, "and only what was suspended by hand still is", func() error { return g.suspended(ctx, "mortal", 1) })
	})
	step(t, "it is removed while it is down", func(t *testing.T) {
		mortal.StopAPIServer()
		soon(t, "its Flux objects are suspended", func() error { return g.suspended(ctx, "mortal", 3) })
		check(t, g.Client.Delete(ctx, addonSet("flux-system", "breaker")))
		soon(t, "what leaves waits, suspended", func() error {
			return g.addonOf(ctx, "mortal", "breaker", "brk-chart", hubv1.AddonRemoving, "the cluster does not answer")
		})
		check(t, mortal.StartAPIServer(ctx))
		soon(t, "and is uninstalled when the cluster is back", func() error {
			if err := approveHeld(t.Context(), g.Client); err != nil {
				return err
			}
			return errors.Join(wantNoConfigMap(ctx, mortal, "brk-chart", "brk-chart"), wantNoConfigMap(ctx, mortal, "default", "brk-git"), wantNoConfigMap(ctx, mortal, "brk-users", "brk-users"))
		})
		soon(t, "the set is gone", func() error {
			return errors.Join(approveHeld(t.Context(), g.Client), wantGone(ctx, g.Client, addonSet("flux-system", "breaker")))
		})
	})
}

// suspended wants so many Flux objects of a cluster to be suspended.
func (g *generation) suspended(ctx context.Context, cluster string, want int) error {
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	of := client.MatchingLabels{hubv1.ClusterLabel: cluster}
	if err := errors.Join(g.Client.List(ctx, releases, of), g.Client.List(ctx, kustomizations, of)); err != nil {
		return err
	}
	n := 0
	for i := range releases.Items {
		if releases.Items[i].Spec.Suspend {
			n++
		}
	}
	for i := range kustomizations.Items {
		if kustomizations.Items[i].Spec.Suspend {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d objects of %s are suspended, want %d", n, cluster, want)
	}
	return nil
}

// TestSecretIsGone: the Secret of a kubeconfig goes, and the hub is started again. What Flux uses is the hub's own copy, so the
// cluster is still probed, and still served; the condition says what is missing.
func TestSecretIsGone(t *testing.T) {
	beside(t)
	ctx := t.Context()
	c := workload(t, "workload-a")
	h := startHub(t, hubOptions{name: "hub-secret", flux: &localfleet.FluxOptions{}})
	namespace(t, h.Client, "fleet")
	kubeconfig := kubeconfigOf(t, c)
	check(t, h.Client.Create(ctx, secret("fleet", "elsewhere", map[string][]byte{"value": kubeconfig})))
	set := func(value string) {
		apply(t, h.Client, fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: ClusterRegistration
metadata: {name: one, namespace: fleet}
spec: {kubeConfig: {secretRef: {name: elsewhere}}}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: gone, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  addons: [{name: brk-gone, manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: brk-gone}, data: {value: %s}}]}}]
`, value))
	}
	set("first")
	soon(t, "it arrives", func() error { return wantData(ctx, c, "default", "brk-gone", "value", "first") })
	h.stop()
	check(t, h.Client.Delete(ctx, secret("fleet", "elsewhere", nil)))
	reg := registration("fleet", "one")
	check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
	reg.Status.Nodes = nil // whatever the next probe finds shows that there was one
	check(t, h.Client.Status().Update(ctx, reg))
	h.start(t)
	soon(t, "what is missing is told", func() error {
		return condition(ctx, h.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.SecretNotFoundReason)
	})
	soon(t, "the cluster is probed all the same", func() error {
		if err := condition(ctx, h.Client, reg, hubv1.ReachableCondition, metav1.ConditionTrue, ""); err != nil {
			return err
		}
		if reg.Status.Nodes == nil {
			return errors.New("there was no probe")
		}
		return nil
	})
	set("second")
	soon(t, "and served", func() error { return wantData(ctx, c, "default", "brk-gone", "value", "second") })
	check(t, h.Client.Delete(ctx, addonSet("flux-system", "gone")))
	soon(t, "and cleaned", func() error { return wantNoConfigMap(ctx, c, "default", "brk-gone") })
	check(t, h.Client.Delete(ctx, reg))
	soon(t, "nothing of ours is left on the hub", func() error { return errors.Join(approveHeld(t.Context(), h.Client), wantNothingOfOurs(ctx, h.Client)) })
}
