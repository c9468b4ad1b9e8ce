// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestAnotherClusterBehindAName: the kubeconfig of a registration is changed to one of another cluster. The old one keeps what it
// has, the new one gets its own, and nothing that Flux remembers of the one is done to the other.
func TestAnotherClusterBehindAName(t *testing.T) {
	beside(t)
	ctx := t.Context()
	g := startGeneration(t, "hub-identity")
	_, err := g.git.Commit("fleet", map[string]string{"identity/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: idn-git, namespace: default}\ndata: {color: blue}\n"})
	check(t, err)
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: identity, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {region: eu}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]
  addons:
    - {name: idn-chart, helmRelease: {interval: 2s, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: idn-git, kustomization: {interval: 2s, path: ./identity, sourceRef: {name: fleet}}}
`)
	soon(t, "the first cluster has it all", func() error {
		return errors.Join(wantData(ctx, g.one, "idn-chart", "idn-chart", "color", "blue"), wantData(ctx, g.one, "default", "idn-git", "color", "blue"))
	})
	kubeconfig := kubeconfigOf(t, g.two)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"value":%q}}`, kubeconfig))
	check(t, g.Client.Patch(ctx, secret("fleet", "one", nil), patch))

	soon(t, "an event says so", func() error { return wantEvent(ctx, g.hub, "one", "another cluster is behind this registration") })
	still := func() error {
		return errors.Join(wantData(ctx, g.one, "idn-chart", "idn-chart", "color", "blue"), wantData(ctx, g.one, "default", "idn-git", "color", "blue"))
	}
	// Both registrations are of the second cluster now. That of the name "two" was there first, and is served; through the other one nothing is made.
	reg := registration("fleet", "one")
	soon(t, "the one that came later says which is served", func() error {
		return errors.Join(condition(ctx, g.Client, reg, hubv1.DuplicateCondition, metav1.ConditionTrue, hubv1.SameClusterReason),
			condition(ctx, g.Client, reg, hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.DuplicateReason))
	})
	if c := status.Find(reg, hubv1.DuplicateCondition); !strings.Contains(c.Message, "fleet/two") {
		t.Errorf("it says %q", c.Message)
	}
	soon(t, "what it had is orphaned", func() error {
		return errors.Join(wantNoRelease(ctx, g.hub, "idn-chart"), wantNoConfigMap(ctx, g.two, "idn-chart", "idn-chart"), wantNoConfigMap(ctx, g.two, "default", "idn-git"))
	})
	check(t, still())

	check(t, g.Client.Patch(ctx, secret("fleet", "two", nil), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))))
	soon(t, "the other one is served then", func() error {
		return errors.Join(wantData(ctx, g.two, "idn-chart", "idn-chart", "color", "blue"), wantData(ctx, g.two, "default", "idn-git", "color", "blue"))
	})
	soon(t, "all is Ready", func() error {
		return errors.Join(g.addonOf(ctx, "one", "identity", "idn-chart", hubv1.AddonReady, ""), g.addonOf(ctx, "one", "identity", "idn-git", hubv1.AddonReady, ""))
	})
	soon(t, "it is the only one", func() error {
		reg := registration("fleet", "one")
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
			return err
		}
		if c := conditionOf(reg, hubv1.DuplicateCondition); c.Status == metav1.ConditionTrue {
			return errors.New("it still has the condition")
		}
		return nil
	})
	check(t, still())
	g.remove(t, "flux-system", "identity")
	soon(t, "the new one is cleaned", func() error {
		return errors.Join(wantNoConfigMap(ctx, g.two, "idn-chart", "idn-chart"), wantNoConfigMap(ctx, g.two, "default", "idn-git"))
	})
	check(t, still())
	// The clusters are shared with other tests.
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "idn-chart"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "idn-git"}},
	} {
		check(t, g.one.Client.Delete(ctx, obj))
	}
}

// wantNoRelease wants no HelmRelease of an add-on.
func wantNoRelease(ctx context.Context, h *hub, addon string) error {
	list := &helmv2.HelmReleaseList{}
	if err := h.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonLabel: addon}); err != nil || len(list.Items) == 0 {
		return err
	}
	return fmt.Errorf("HelmRelease %s is still there", list.Items[0].Name)
}

// TestServiceAccounts: Flux impersonates on the cluster, and what it made is removed all the same: without a
// placeholder ServiceAccount on the hub it would be left behind without a word.
func TestServiceAccounts(t *testing.T) {
	beside(t)
	ctx := t.Context()
	g := startGeneration(t, "hub-accounts")
	_, err := g.git.Commit("fleet", map[string]string{"account/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: idn-account, namespace: default}\ndata: {color: blue}\n"})
	check(t, err)
	const binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: idn-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: flux-system, name: %[1]s}]
`
	apply(t, g.one.Client, fmt.Sprintf(binding, "idn-deployer")+"---"+fmt.Sprintf(binding, "idn-cluster"))
	apply(t, g.Client, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: idn-cluster, namespace: flux-system}}")
	g.patchRegistration(t, "one", `{"spec":{"serviceAccountName":"idn-cluster"}}`)
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: accounts, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {region: eu}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]
  addons:
    - {name: idn-own, helmRelease: {interval: 2s, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: idn-account, kustomization: {interval: 2s, path: ./account, sourceRef: {name: fleet}, serviceAccountName: idn-deployer}}
`)
	soon(t, "both arrive", func() error {
		return errors.Join(wantData(ctx, g.one, "idn-own", "idn-own", "color", "blue"), wantData(ctx, g.one, "default", "idn-account", "color", "blue"))
	})
	ours, theirs := &corev1.ServiceAccount{}, &corev1.ServiceAccount{}
	check(t, g.Client.Get(ctx, types.NamespacedName{Namespace: "flux-system", Name: "idn-deployer"}, ours))
	check(t, g.Client.Get(ctx, types.NamespacedName{Namespace: "flux-system", Name: "idn-cluster"}, theirs))
	if ours.Labels["app.kubernetes.io/managed-by"] != "chandler" || ours.AutomountServiceAccountToken == nil || *ours.AutomountServiceAccountToken {
		t.Errorf("the placeholder is %+v", ours)
	}
	if len(theirs.Labels) != 0 || theirs.AutomountServiceAccountToken != nil {
		t.Errorf("somebody's own ServiceAccount was changed: %+v", theirs)
	}
	// Whom Flux acts as is what the cluster's own records say.
	releases := &helmv2.HelmReleaseList{}
	check(t, g.Client.List(ctx, releases, client.MatchingLabels{hubv1.AddonLabel: "idn-own"}))
	if releases.Items[0].Spec.ServiceAccountName != "idn-cluster" {
		t.Errorf("the release is impersonated as %q", releases.Items[0].Spec.ServiceAccountName)
	}
	g.remove(t, "flux-system", "accounts")
	soon(t, "both are removed from the cluster", func() error {
		return errors.Join(wantNoConfigMap(ctx, g.one, "idn-own", "idn-own"), wantNoConfigMap(ctx, g.one, "default", "idn-account"))
	})
	soon(t, "and the placeholder from the hub", func() error { return wantGone(ctx, g.Client, ours) })
	check(t, g.Client.Get(ctx, client.ObjectKeyFromObject(theirs), theirs))
}
