// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// TestWorkloadIdentity: Flux applies a Kustomization and a HelmRelease to a cluster that trusts the management cluster's ServiceAccounts,
// with no credential stored anywhere; what Flux achieves stands in for the probe, and all of it leaves cleanly.
func TestWorkloadIdentity(t *testing.T) {
	beside(t)
	ctx := t.Context()
	gate := []string{"--feature-gates=ObjectLevelWorkloadIdentity=true"}
	h := startHub(t, hubOptions{name: "hub-identities", args: []string{"--removal-delay=1s"}, flux: &localfleet.FluxOptions{
		Args: map[string][]string{parts.KustomizeController: gate, parts.HelmController: gate},
	}})
	check(t, h.ShowIssuer(ctx))
	target, err := localfleet.StartCluster(ctx, localfleet.ClusterOptions{Name: "trusting", Dir: workDir, Scheme: scheme, ControllerManager: true, Trusts: h.Cluster})
	check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			dumpLogs(t, target.Name)
		}
		check(t, target.Stop())
	})
	charts, git := serve(t)
	_, err = git.Commit("fleet", map[string]string{"wid/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wid-git, namespace: default}\ndata: {color: blue}\n"})
	check(t, err)
	apply(t, target.Client, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "`+localfleet.IssuerPrefix+`system:serviceaccount:flux-system:deployer"}]
`)
	apply(t, h.Client, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer, namespace: flux-system}}`)
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "trusting", Labels: map[string]string{"tier": "prod"}}}
	reg.Spec.KubeConfig = &hubv1.KubeConfigSource{WorkloadIdentity: &hubv1.WorkloadIdentity{
		Provider: "generic", Address: target.Audience(), CABundle: target.Authority(), ServiceAccountName: "deployer",
	}}
	check(t, h.Client.Create(ctx, reg))
	soon(t, "nothing is to be delivered, and that is no failure", func() error {
		return errors.Join(
			condition(ctx, h.Client, reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.NoAddonSetReason),
			condition(ctx, h.Client, reg, hubv1.ReachableCondition, metav1.ConditionUnknown, hubv1.NotProbedReason))
	})
	fill := strings.NewReplacer("$CHARTS", charts.URL(), "$GIT", git.URL("fleet"))
	set := fill.Replace(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: identities, namespace: flux-system}
spec:
  # Both: the cluster moves to a kubeconfig and back, and is not to be deselected by that.
  clusterSelector: {matchExpressions: [{key: chandler.dev/provider, operator: In, values: [WorkloadIdentity, Secret]}]}
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]
  addons:
    - {name: wid-chart, helmRelease: {interval: 2s, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: wid-git, kustomization: {interval: 2s, retryInterval: 2s, path: ./wid, sourceRef: {name: fleet}}}
`)
	apply(t, h.Client, set)
	soon(t, "both arrive", func() error {
		return errors.Join(wantData(ctx, target, "wid-chart", "wid-chart", "color", "blue"), wantData(ctx, target, "default", "wid-git", "color", "blue"))
	})
	soon(t, "Flux's success stands in for the probe", func() error {
		return errors.Join(
			condition(ctx, h.Client, reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.FluxSucceedsReason),
			condition(ctx, h.Client, reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason),
			condition(ctx, h.Client, addonSet("flux-system", "identities"), hubv1.ReadyCondition, metav1.ConditionTrue, ""))
	})
	check(t, h.wantNoCredential(t, target))

	target.StopAPIServer()
	soon(t, "Flux's failures are the cluster's", func() error {
		return errors.Join(
			condition(ctx, h.Client, reg, hubv1.ReachableCondition, metav1.ConditionFalse, hubv1.FluxFailsReason),
			condition(ctx, h.Client, addonSet("flux-system", "identities"), hubv1.ReadyCondition, metav1.ConditionTrue, ""))
	})
	check(t, target.StartAPIServer(ctx))
	soon(t, "it is back by itself", func() error {
		return condition(ctx, h.Client, reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.FluxSucceedsReason)
	})

	h.wantMoves(t, reg, target)

	check(t, h.Client.Delete(ctx, reg))
	soon(t, "all is uninstalled", func() error {
		if err := approveHeld(t.Context(), h.Client); err != nil {
			return err
		}
		return errors.Join(wantNoConfigMap(ctx, target, "wid-chart", "wid-chart"), wantNoConfigMap(ctx, target, "default", "wid-git"), wantGone(ctx, h.Client, reg))
	})
	check(t, h.Client.Delete(ctx, addonSet("flux-system", "identities")))
	soon(t, "nothing of ours is left", func() error {
		return errors.Join(approveHeld(t.Context(), h.Client), wantNothingOfOurs(ctx, h.Client), h.wantNoCopy(t))
	})
}

// wantMoves has the registration change to a kubeconfig and back: the Flux objects are made anew each time, what runs stays, and the copy
// that nobody uses any more goes.
func (h *hub) wantMoves(t *testing.T, reg *hubv1.ClusterRegistration, target *localfleet.Cluster) {
	ctx := t.Context()
	delivered := &corev1.ConfigMap{}
	check(t, target.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "wid-git"}, delivered))
	kubeconfig := kubeconfigOf(t, target)
	check(t, h.Client.Create(ctx, secret("flux-system", "trusting-admin", map[string][]byte{"value": kubeconfig})))
	identity := reg.Spec.KubeConfig.DeepCopy()
	move := func(to *hubv1.KubeConfigSource, reason string, copies func() error) {
		t.Helper()
		before := reg.DeepCopy()
		reg.Spec.KubeConfig = to
		check(t, h.Client.Patch(ctx, reg, client.MergeFrom(before)))
		soon(t, "all is Ready by "+reason, func() error {
			return errors.Join(
				condition(ctx, h.Client, reg, hubv1.ReachableCondition, metav1.ConditionTrue, reason),
				condition(ctx, h.Client, reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason), copies())
		})
		now := &corev1.ConfigMap{}
		check(t, target.Client.Get(ctx, client.ObjectKeyFromObject(delivered), now))
		if now.UID != delivered.UID {
			t.Error("what was delivered has been removed and made again")
		}
	}
	move(&hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "trusting-admin"}}, hubv1.ProbeSucceededReason, func() error { return h.wantNoCopy(t) })
	if reg.Status.ClusterUID == "" || reg.Labels[hubv1.KubernetesMinorLabel] == "" {
		t.Errorf("a cluster that is probed is known: %+v", reg.Status)
	}
	move(identity, hubv1.FluxSucceedsReason, func() error { return h.wantNoCredential(t, target) })
	soon(t, "what only a probe finds out is forgotten", func() error {
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
		if reg.Status.ClusterUID != "" || reg.Status.KubernetesVersion != "" || reg.Labels[hubv1.KubernetesMinorLabel] != "" {
			return fmt.Errorf("labels %v, status %+v", reg.Labels, reg.Status)
		}
		return nil
	})
}

// wantNoCredential wants no Secret of the hub's, and a ConfigMap that always names a ServiceAccount.
func (h *hub) wantNoCredential(t *testing.T, target *localfleet.Cluster) error {
	secrets, maps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	copies := client.HasLabels{hubv1.CopyLabel}
	check(t, errors.Join(h.Client.List(t.Context(), secrets, copies), h.Client.List(t.Context(), maps, copies)))
	if len(secrets.Items) != 0 || len(maps.Items) != 1 {
		return fmt.Errorf("there are %d Secrets and %d ConfigMaps", len(secrets.Items), len(maps.Items))
	}
	want := map[string]string{"provider": "generic", "serviceAccountName": "deployer", "address": target.Audience(), "ca.crt": target.Authority()}
	if got := maps.Items[0].Data; fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("the ConfigMap holds %v", got)
	}
	return nil
}

func (h *hub) wantNoCopy(t *testing.T) error {
	maps := &corev1.ConfigMapList{}
	if err := h.Client.List(t.Context(), maps, client.HasLabels{hubv1.CopyLabel}); err != nil {
		return err
	}
	if len(maps.Items) > 0 {
		return fmt.Errorf("ConfigMap %s is left", maps.Items[0].Name)
	}
	return nil
}
