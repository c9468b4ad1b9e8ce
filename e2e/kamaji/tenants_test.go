// SPDX-License-Identifier: Apache-2.0

package kamaji

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
)

// set delivers a chart and a path of a Git repository, with what tells one tenant from the other. A change that meets an API server
// as it restarts fails; Flux would try it again after minutes, and these tests do not wait for that.
const set = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {suite: tenants}}
  sources:
    - {name: charts, kind: HelmRepository, spec: {url: %s}}
    - {name: fleet, kind: GitRepository, spec: {url: %s, ref: {branch: main}}}
  variables: {round: %s, region: none}
  addons:
    - name: settings
      helmRelease:
        interval: 1h
        chart: {spec: {chart: settings, sourceRef: {name: charts}}}
        upgrade: {strategy: {name: RetryOnFailure, retryInterval: 3s}}
        values: {color: "<< vars.round >> << vars.region >>"}
    - name: networks
      kustomization:
        interval: 1h
        retryInterval: 3s
        sourceRef: {name: fleet}
        path: ./networks
        postBuild: {substitute: {round: << vars.round >>, pods: "<< origin.spec.networkProfile.podCidr >>"}}
  overlays:
    - {name: eu, clusterSelector: {matchLabels: {region: eu}}, variables: {region: europe}}
    - {name: us, clusterSelector: {matchLabels: {region: us}}, variables: {region: america}}
`

const networks = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: networks, namespace: default}\ndata:\n  round: ${round}\n  pods: ${pods}\n"

// TestTenants follows two tenants of Kamaji, side by side, from the label to the end of the one, and of the other.
func TestTenants(t *testing.T) {
	f := startTenants(t)
	expect.Step(t, "add-ons arrive, each tenant's own", f.arrive)
	expect.Step(t, "the hub says what it found", f.facts)
	expect.Step(t, "a node joins", f.nodeJoins)
	expect.Step(t, "an admin's kubeconfig is rotated", f.rotateKubeconfig)
	expect.Step(t, "the API server's certificate is rotated", f.rotateServing)
	expect.Step(t, "the CA is rotated", f.rotateCA)
	expect.Step(t, "what runs on the node runs on", f.nodeStays)
	expect.Step(t, "a tenant is upgraded", f.upgrade)
	expect.Step(t, "a tenant is deleted", f.deleted)
	expect.Step(t, "a tenant is unregistered", f.unregistered)
	expect.Step(t, "what was written by hand for it is imported", f.imported)
}

func (f *tenants) arrive(t *testing.T) {
	began := time.Now()
	for _, tenant := range f.all() {
		f.soon(t, "Kamaji's tenant is Ready", func() error { return f.wantTenant(t.Context(), tenant, "Ready", "") })
	}
	t.Logf("Kamaji says Ready after %s", time.Since(began).Round(100*time.Millisecond))
	f.next(t)
	t.Logf("the add-ons are in the tenants after %s", time.Since(began).Round(100*time.Millisecond))
	for _, tenant := range f.all() {
		f.wantReady(t, tenant)
	}
	f.soon(t, "the set is Ready and healthy", func() error {
		return errors.Join(
			expect.Condition(t.Context(), f.Client(), f.set, hubv1.ReadyCondition, metav1.ConditionTrue, ""),
			expect.Condition(t.Context(), f.Client(), f.set, hubv1.HealthyCondition, metav1.ConditionTrue, ""))
	})
	for _, tenant := range f.all() {
		f.remember(t, tenant)
	}
}

func (f *tenants) facts(t *testing.T) {
	for _, tenant := range f.all() {
		reg := f.registration(tenant)
		expect.NoError(t, f.Client().Get(t.Context(), tenant.key, reg))
		expect.NoError(t, expect.Condition(t.Context(), f.Client(), reg, hubv1.ReachableCondition, metav1.ConditionTrue, ""))
		// Where the hub is a pod, it goes by the name of the tenant's Service.
		config, err := configOf(t.Context(), f.Client(), tenant.key, reg.Status.Credential.Key)
		expect.NoError(t, err)
		own, err := f.TenantConfig(t.Context(), tenant.key)
		expect.NoError(t, err)
		system := &corev1.Namespace{}
		expect.NoError(t, f.client(t, tenant).Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system))
		for what, pair := range map[string][2]string{
			"provider":          {reg.Status.Provider, "Kamaji"},
			"endpoint":          {reg.Status.Endpoint, config.Host},
			"kubernetesVersion": {reg.Status.KubernetesVersion, versionOf(t, own)},
			"clusterUID":        {string(reg.Status.ClusterUID), string(system.UID)},
			"addonCounts":       {reg.Status.AddonCounts.Summary, "2/2"},
			"credential":        {reg.Status.Credential.SecretName, tenant.key.Name + "-admin-kubeconfig"},
			"expiresIn":         {reg.Status.Credential.ExpiresIn, ">90d"}, // a year, as kubeadm has it
			"label of provider": {reg.Labels[hubv1.ProviderLabel], "Kamaji"},
			"label of the name": {reg.Labels[hubv1.NameLabel], tenant.key.Name},
			"label region":      {reg.Labels["region"], tenant.label},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s is %q, want %q", tenant.key.Name, what, pair[0], pair[1])
			}
		}
	}
}

// rotateKubeconfig does what Kamaji v1.0.0 has people do: the Secret is deleted, and made anew.
func (f *tenants) rotateKubeconfig(t *testing.T) {
	reg := f.registration(f.one)
	expect.NoError(t, f.Client().Get(t.Context(), f.one.key, reg))
	old := reg.Status.Credential.Fingerprint
	f.deleteSecrets(t, f.one, "admin-kubeconfig")
	f.soon(t, "the hub has the new kubeconfig", func() error {
		if err := f.Client().Get(t.Context(), f.one.key, reg); err != nil {
			return err
		}
		if reg.Status.Credential == nil || reg.Status.Credential.Fingerprint == old {
			return errors.New("it has the old one")
		}
		return nil
	})
	f.next(t)
	f.wantKept(t)
}

// rotateServing has the API server restart with another certificate of the same CA.
func (f *tenants) rotateServing(t *testing.T) {
	old := f.serial(t, f.one)
	f.deleteSecrets(t, f.one, "api-server-certificate")
	f.soon(t, "the API server serves another certificate", func() error {
		serial, err := f.served(t.Context(), f.one)
		if err == nil && serial == old {
			err = errors.New("it serves the old one")
		}
		return err
	})
	f.next(t)
	f.wantKept(t)
}

// rotateCA makes every credential of before useless. (Kamaji v1.0.0 renews the kubeconfigs of just one of its two administrators
// when the CA alone is deleted, and needs the other itself; so both Secrets go.)
func (f *tenants) rotateCA(t *testing.T) {
	before, err := f.TenantConfig(t.Context(), f.one.key)
	expect.NoError(t, err)
	f.deleteSecrets(t, f.one, "ca", "admin-kubeconfig")
	f.soon(t, "the tenant answers under another CA", func() error {
		now, err := f.TenantConfig(t.Context(), f.one.key)
		if err != nil {
			return err
		}
		if string(now.CAData) == string(before.CAData) {
			return errors.New("its kubeconfig has the old one")
		}
		return answers(t.Context(), now)
	})
	f.soon(t, "and takes no kubeconfig of before", func() error { // where the old pod serves until the new one is Ready, both do for a moment
		if err := answers(t.Context(), before); err == nil {
			return errors.New("it takes one")
		}
		return nil
	})
	f.next(t)
	f.wantKept(t)
}

// upgrade has Kamaji bring a tenant to another version.
func (f *tenants) upgrade(t *testing.T) {
	_, newest := f.Versions()
	patch := fmt.Appendf(nil, `{"spec":{"kubernetes":{"version":%q}}}`, newest)
	expect.NoError(t, f.Client().Patch(t.Context(), f.two.object(), client.RawPatch("application/merge-patch+json", patch)))
	reg := f.registration(f.two)
	f.soon(t, "the hub says that Kamaji is at work", func() error {
		return expect.Condition(t.Context(), f.Client(), reg, hubv1.MaintenanceCondition, metav1.ConditionTrue, hubv1.ClusterUpgradingReason)
	})
	f.next(t) // while it is at work
	f.soon(t, "the hub says so no more", func() error {
		if err := expect.Condition(t.Context(), f.Client(), reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason); err != nil {
			return err
		}
		return without(reg, hubv1.MaintenanceCondition)
	})
	f.soon(t, "Kamaji is done", func() error { return f.wantTenant(t.Context(), f.two, "Ready", newest) })
	f.wantKept(t)
}

// deleted: a tenant's data is gone as soon as its TenantControlPlane is deleted, so nothing is uninstalled, and nothing waits.
func (f *tenants) deleted(t *testing.T) {
	other := f.snapshot(t, f.two)
	expect.NoError(t, f.Client().Delete(t.Context(), f.one.object()))
	f.soon(t, "the tenant is orphaned", func() error {
		return errors.Join(expect.Gone(t.Context(), f.Client(), f.registration(f.one)), f.nothingFor(t.Context(), f.one))
	})
	f.soon(t, "Kamaji has let it go too", func() error { return expect.Gone(t.Context(), f.Client(), f.one.object()) })
	f.soon(t, "its API server has ended", func() error {
		if _, err := f.served(t.Context(), f.one); err == nil {
			return errors.New("it still serves")
		}
		return nil
	})
	if now := f.snapshot(t, f.two); now != other {
		t.Errorf("the other tenant's add-ons have changed from %v to %v", other, now)
	}
	f.gone = true
	f.next(t)
	f.wantKept(t)
}

// unregistered: the add-ons of a tenant that stays leave it, by one command, and what is Kamaji's stays as it is.
func (f *tenants) unregistered(t *testing.T) {
	theirs := f.ofKamaji(t, f.two)
	out := f.chandler(t, "unregister", f.two.key.String(), "--yes", "--kubeconfig", f.Kubeconfig())
	if strings.Contains(out, "Secret") || !strings.Contains(out, "Cluster "+f.two.key.String()+" is unregistered") {
		t.Errorf("it says\n%s", out)
	}
	if f.ofKamaji(t, f.two) != theirs {
		t.Error("it has changed what is Kamaji's")
	}
	own := f.client(t, f.two)
	for _, cm := range []client.ObjectKey{f.two.chart(), f.two.git()} {
		f.soon(t, cm.Name+" has left the tenant", func() error {
			return expect.Gone(t.Context(), own, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name}})
		})
	}
	f.soon(t, "what ran has left the tenant", func() error {
		return expect.Gone(t.Context(), own, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.two.hello().Namespace, Name: f.two.hello().Name}})
	})
	f.soon(t, "the hub has forgotten it", func() error { return expect.Gone(t.Context(), f.Client(), f.registration(f.two)) })
	f.soon(t, "and Kamaji has it as it was", func() error { return f.wantTenant(t.Context(), f.two, "Ready", "") })
	for _, set := range []*hubv1.AddonSet{f.set, f.podsSet()} {
		expect.NoError(t, client.IgnoreNotFound(f.Client().Delete(t.Context(), set)))
	}
	f.soon(t, "nothing of the hub's is left", func() error { return expect.NothingOfOurs(t.Context(), f.Client()) })
}
