// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// journey is one management cluster and three workload clusters, one of each kind of origin, and what they share.
type journey struct {
	*hub
	clusters map[string]*localfleet.Cluster // by the name of the registration
	charts   *localfleet.ChartServer
	git      *localfleet.GitServer
	color    string
}

// names of the registrations, by kind of origin.
const (
	tenant = "tenant1" // Kamaji
	capi   = "capi1"   // Cluster API
	plain  = "plain1"  // a Secret
)

// TestJourney goes the whole way of an add-on, for each kind of origin, with Flux as it comes and with Flux locked down.
func TestJourney(t *testing.T) {
	beside(t)
	for name, flux := range map[string]localfleet.FluxOptions{"plain": {}, "no-cross-namespace-refs": {NoCrossNamespaceRefs: true}} {
		t.Run(name, func(t *testing.T) {
			j := startJourney(t, name, flux)
			step(t, "add-ons arrive", j.arrive)
			step(t, "a tenant's edits are undone", j.drift)
			step(t, "a change arrives", j.change)
			step(t, "credentials are rotated", j.rotate)
			step(t, "sets come from Git", j.fromGit)
			step(t, "a deselected cluster is cleaned", j.deselect)
			step(t, "an add-on is dropped", j.drop)
			step(t, "unregistered clusters are cleaned", j.unregister)
		})
	}
}

func startJourney(t *testing.T, name string, flux localfleet.FluxOptions) *journey {
	return newJourney(t, startHub(t, hubOptions{name: "hub-" + name, flux: &flux, origins: true}))
}

// newJourney makes ready what a journey needs on a management cluster and beside it.
func newJourney(t *testing.T, h *hub) *journey {
	t.Helper()
	j := &journey{hub: h, clusters: map[string]*localfleet.Cluster{}, color: "blue"}
	for reg, cluster := range map[string]string{tenant: "workload-a", capi: "workload-b", plain: "workload-c"} {
		j.clusters[reg] = workload(t, cluster)
	}
	var err error
	j.charts, j.git = serve(t)
	_, err = j.git.Commit("fleet", map[string]string{"base/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git, namespace: default}\ndata:\n  color: ${color}\n"})
	check(t, err)
	apply(t, j.Client, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {url: %s, interval: 1m}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {url: %s, interval: 5s, ref: {branch: main}}
`, j.charts.URL(), j.git.URL("fleet")))
	j.origins(t)
	return j
}

// origins makes a TenantControlPlane, a Cluster and a Secret that look as their own controllers leave them.
func (j *journey) origins(t *testing.T) {
	ctx := t.Context()
	namespace(t, j.Client, "tenants")
	check(t, localfleet.Tenant(ctx, j.Client, "tenants", tenant, nil, kubeconfigOf(t, j.clusters[tenant])))
	check(t, localfleet.CAPICluster(ctx, j.Client, "tenants", capi, nil, kubeconfigOf(t, j.clusters[capi])))
	kubeconfig, err := j.clusters[plain].TokenKubeconfig(ctx, j.account(0))
	check(t, err)
	check(t, j.Client.Create(ctx, secret("tenants", plain, map[string][]byte{"kubeconfig": kubeconfig})))
}

// account is the name of the ServiceAccount of the nth credential: the workload clusters are shared.
func (j *journey) account(n int) string { return fmt.Sprintf("%s-%d", j.Name, n) }

func secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// label sets labels on the origins; an empty value takes one off.
func (j *journey) label(t *testing.T, key, value string, registrations ...string) {
	t.Helper()
	for _, name := range registrations {
		u := &unstructured.Unstructured{}
		u.SetNamespace("tenants")
		u.SetName(name)
		switch name {
		case tenant:
			u.SetAPIVersion("kamaji.clastix.io/v1alpha1")
			u.SetKind("TenantControlPlane")
		case capi:
			u.SetAPIVersion("cluster.x-k8s.io/v1beta2")
			u.SetKind("Cluster")
		default:
			u.SetAPIVersion("v1")
			u.SetKind("Secret")
		}
		v := "null"
		if value != "" {
			v = fmt.Sprintf("%q", value)
		}
		check(t, j.Client.Patch(t.Context(), u, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, v))))
	}
}

// set applies the AddonSet with the journey's colour; dropping the second add-on is a parameter.
func (j *journey) set(t *testing.T, kustomization bool) {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: prod}}
  rollout: {strategy: AllAtOnce}
  addons:
    - name: settings
      helmRelease:
        interval: 1h
        chart: {spec: {chart: settings, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}
        values: {color: %s}
`, j.color)
	if kustomization {
		text += fmt.Sprintf(`
    - name: base
      kustomization:
        interval: 1h
        sourceRef: {kind: GitRepository, name: fleet}
        path: ./base
        postBuild: {substitute: {color: %s}}
`, j.color)
	}
	apply(t, j.Client, text)
}

// has checks that both add-ons are on a cluster in the journey's colour.
func (j *journey) has(ctx context.Context, reg string) error {
	if err := wantData(ctx, j.clusters[reg], "settings", "settings", "color", j.color); err != nil {
		return err
	}
	return wantData(ctx, j.clusters[reg], "default", "from-git", "color", j.color)
}

func (j *journey) arrive(t *testing.T) {
	j.label(t, "tier", "prod", tenant, capi, plain)
	j.label(t, hubv1.RegisterLabel, "true", tenant, capi, plain)
	j.set(t, true)
	for reg := range j.clusters {
		soon(t, "both add-ons on "+reg, func() error { return j.has(t.Context(), reg) })
		soon(t, reg+" is Ready", func() error {
			return condition(t.Context(), j.Client, registration("tenants", reg), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason)
		})
	}
	soon(t, "the set is Ready", func() error {
		return condition(t.Context(), j.Client, addonSet("flux-system", "base"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
	soon(t, "the set is healthy and complete on 3 clusters", func() error {
		set := addonSet("flux-system", "base")
		for _, typ := range []string{hubv1.RolloutCompleteCondition, hubv1.HealthyCondition} {
			if err := condition(t.Context(), j.Client, set, typ, metav1.ConditionTrue, ""); err != nil {
				return err
			}
		}
		if got := set.Status.Clusters.ReadySummary; got != "3/3" {
			return fmt.Errorf("%s clusters", got)
		}
		return nil
	})
	j.facts(t)
}

// facts checks what the probes found out, and what a tenant's Secret was reduced to.
func (j *journey) facts(t *testing.T) {
	for reg, provider := range map[string]string{tenant: "Kamaji", capi: "ClusterAPI", plain: "Secret"} {
		r := registration("tenants", reg)
		check(t, j.Client.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		system := &corev1.Namespace{}
		check(t, j.clusters[reg].Client.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system))
		for what, pair := range map[string][2]string{
			"clusterUID":         {string(r.Status.ClusterUID), string(system.UID)},
			"provider":           {r.Status.Provider, provider},
			"endpoint":           {r.Status.Endpoint, j.clusters[reg].Server()},
			"kubernetesVersion":  {r.Status.KubernetesVersion, parts.KubernetesVersion()},
			"addonCounts":        {r.Status.AddonCounts.Summary, "2/2"},
			"label tier":         {r.Labels["tier"], "prod"},
			"label of provider":  {r.Labels[hubv1.ProviderLabel], provider},
			"label of the name":  {r.Labels[hubv1.NameLabel], reg},
			"label of the minor": {"v" + r.Labels[hubv1.KubernetesMinorLabel] + ".", parts.KubernetesVersion()[:len("v1.36.")]},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s is %q, want %q", reg, what, pair[0], pair[1])
			}
		}
		if r.Status.Credential.ExpirationTime == nil {
			t.Errorf("%s: the credential's expiry is not known", reg)
		}
	}
}

func (j *journey) drift(t *testing.T) {
	ctx := t.Context()
	remove := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "settings", Name: "settings"}}
	check(t, j.clusters[tenant].Client.Delete(ctx, remove))
	check(t, j.clusters[tenant].Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "from-git"}}))
	for ns, name := range map[string]string{"settings": "settings", "default": "from-git"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		check(t, j.clusters[capi].Client.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"color":"tenant-pink"}}`))))
	}
	check(t, j.reconcileNow(ctx, tenant, capi))
	for _, reg := range []string{tenant, capi} {
		soon(t, "the objects come back on "+reg, func() error { return j.has(ctx, reg) })
	}
}

func (j *journey) change(t *testing.T) {
	j.color = "green"
	j.set(t, true)
	for reg := range j.clusters {
		soon(t, "the change on "+reg, func() error { return j.has(t.Context(), reg) })
	}
	soon(t, "the set is Ready again", func() error {
		return condition(t.Context(), j.Client, addonSet("flux-system", "base"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
}

// rotate gives the plain cluster new credentials and revokes the old ones.
func (j *journey) rotate(t *testing.T) {
	ctx := t.Context()
	kubeconfig, err := j.clusters[plain].TokenKubeconfig(ctx, j.account(1))
	check(t, err)
	s := secret("tenants", plain, nil)
	check(t, j.Client.Get(ctx, client.ObjectKeyFromObject(s), s))
	before := s.DeepCopy()
	s.Data["kubeconfig"] = kubeconfig
	old, err := clientcmd.RESTConfigFromKubeConfig(before.Data["kubeconfig"])
	check(t, err)
	check(t, j.Client.Patch(ctx, s, client.MergeFrom(before)))
	check(t, j.clusters[plain].Revoke(ctx, j.account(0)))
	soon(t, "the old credentials are refused", func() error {
		c, err := client.New(old, client.Options{Scheme: scheme})
		if err == nil {
			err = c.List(ctx, &corev1.NamespaceList{})
		}
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return fmt.Errorf("the API server answered %v", err)
	})
	j.color = "red"
	j.set(t, true)
	for reg := range j.clusters {
		soon(t, "the change after the rotation on "+reg, func() error { return j.has(ctx, reg) })
	}
}

// fromGit has Flux sync an AddonSet from Git, with substitution, and wait for it.
func (j *journey) fromGit(t *testing.T) {
	ctx := t.Context()
	_, err := j.git.Commit("platform", map[string]string{"sets/extra.yaml": `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: extra, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: "${tier}"}}
  rollout: {strategy: AllAtOnce}
  addons:
    - name: extra
      helmRelease:
        interval: 1h
        chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: charts}}}
        values: {color: "${color}"}
`})
	check(t, err)
	apply(t, j.Client, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: platform, namespace: flux-system}
spec: {url: %s, interval: 5s, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: platform, namespace: flux-system}
spec:
  interval: 1m
  retryInterval: 2s
  timeout: 2m
  prune: true
  wait: true
  path: ./sets
  sourceRef: {kind: GitRepository, name: platform}
  postBuild: {substitute: {tier: prod, color: purple}}
`, j.git.URL("platform")))
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "platform"}}
	soon(t, "the Kustomization that brings the set is Ready", func() error {
		return condition(ctx, j.Client, k, "Ready", metav1.ConditionTrue, "")
	})
	for reg, c := range j.clusters {
		// Not "soon": it has waited, so it must be there.
		if err := wantData(ctx, c, "extra", "extra", "color", "purple"); err != nil {
			t.Errorf("%s: Flux says Ready, and %v", reg, err)
		}
	}
	check(t, j.Client.Delete(ctx, k))
	for reg, c := range j.clusters {
		soon(t, "the set that left Git leaves "+reg, func() error {
			return errors.Join(approveHeld(t.Context(), j.Client), wantNoConfigMap(ctx, c, "extra", "extra"))
		})
	}
	soon(t, "the set is gone", func() error {
		return errors.Join(approveHeld(t.Context(), j.Client), wantGone(ctx, j.Client, addonSet("flux-system", "extra")))
	})
}

func (j *journey) deselect(t *testing.T) {
	ctx := t.Context()
	j.label(t, "tier", "dev", capi)
	soon(t, "the deselected cluster is clean", func() error {
		if err := approveHeld(t.Context(), j.Client); err != nil {
			return err
		}
		if err := wantNoConfigMap(ctx, j.clusters[capi], "settings", "settings"); err != nil {
			return err
		}
		return wantNoConfigMap(ctx, j.clusters[capi], "default", "from-git")
	})
	soon(t, "it says that no set selects it, and why", func() error {
		r := registration("tenants", capi)
		if err := condition(ctx, j.Client, r, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.NoAddonSetReason); err != nil {
			return err
		}
		if c := conditionOf(r, hubv1.ReadyCondition); !strings.Contains(c.Message, `flux-system/base wants tier=prod, and the label is "dev"`) {
			return fmt.Errorf("message %q", c.Message)
		}
		return nil
	})
	check(t, j.has(ctx, tenant))
}

func (j *journey) drop(t *testing.T) {
	ctx := t.Context()
	j.set(t, false)
	for _, reg := range []string{tenant, plain} {
		soon(t, "the dropped add-on leaves "+reg, func() error {
			return errors.Join(approveHeld(t.Context(), j.Client), wantNoConfigMap(ctx, j.clusters[reg], "default", "from-git"))
		})
		check(t, wantData(ctx, j.clusters[reg], "settings", "settings", "color", j.color))
	}
}

func (j *journey) unregister(t *testing.T) {
	ctx := t.Context()
	j.label(t, hubv1.RegisterLabel, "false", tenant)
	j.label(t, hubv1.RegisterLabel, "", capi, plain)
	for reg, c := range j.clusters {
		soon(t, reg+" is clean", func() error {
			if err := approveHeld(t.Context(), j.Client); err != nil {
				return err
			}
			if err := wantNoConfigMap(ctx, c, "settings", "settings"); err != nil {
				return err
			}
			return wantGone(ctx, j.Client, registration("tenants", reg))
		})
	}
	check(t, j.Client.Delete(ctx, addonSet("flux-system", "base")))
	soon(t, "nothing of ours is left on the hub", func() error { return errors.Join(approveHeld(t.Context(), j.Client), wantNothingOfOurs(ctx, j.Client)) })
	for _, name := range []string{tenant + "-admin-kubeconfig", capi + "-kubeconfig", plain} {
		s := secret("tenants", name, nil)
		check(t, j.Client.Get(ctx, client.ObjectKeyFromObject(s), s)) // what was not ours is untouched
	}
}
