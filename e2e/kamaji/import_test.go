// SPDX-License-Identifier: Apache-2.0

package kamaji

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// handWritten is what somebody wrote for tenant two, by the Secret that Kamaji makes: with each of the two administrators in it.
const handWritten = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: tenants}
spec: {url: %s, interval: 1m}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: tenants}
spec: {url: %s, interval: 1m, ref: {branch: main}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: two-settings, namespace: tenants}
spec:
  interval: 1h
  releaseName: settings
  targetNamespace: settings
  storageNamespace: settings
  install: {createNamespace: true}
  kubeConfig: {secretRef: {name: two-admin-kubeconfig, key: super-admin.conf}}
  chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {color: by hand}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: two-networks, namespace: tenants}
spec:
  interval: 1h
  prune: true
  path: ./networks
  sourceRef: {kind: GitRepository, name: fleet}
  kubeConfig: {secretRef: {name: two-admin-kubeconfig, key: super-admin.conf}}
  postBuild: {substitute: {round: by-hand, pods: none}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: two-other, namespace: tenants}
spec:
  interval: 1h
  prune: true
  path: ./networks
  targetNamespace: kube-public
  sourceRef: {kind: GitRepository, name: fleet}
  kubeConfig: {secretRef: {name: two-admin-kubeconfig, key: admin.conf}}
`

// imported follows to the letter what `chandler import --from-cluster` prints beside hand-written objects for a tenant that is not registered.
func (f *tenants) imported(t *testing.T) {
	ctx, own := t.Context(), f.client(t, f.two)
	expect.Apply(t, f.Client(), fmt.Sprintf(handWritten, f.ChartsURL(), f.GitURL()))
	f.soon(t, "it is delivered as it was written", func() error {
		return errors.Join(wantData(ctx, own, f.two.chart(), "color", "by hand"), wantData(ctx, own, f.two.git(), "round", "by-hand"))
	})
	before := f.found(t)

	var out, dir string
	f.soon(t, "Flux has applied all of it", func() error { // import leaves what is not Ready
		dir = filepath.Join(t.TempDir(), "out")
		out = f.chandler(t, "import", "--from-cluster", "--output-dir", dir, "--kubeconfig", f.Kubeconfig())
		if strings.Contains(out, "let Flux finish first") {
			return errors.New(out)
		}
		return nil
	})
	if !strings.Contains(out, "left as it is: Kustomization tenants/two-other: ") {
		t.Errorf("the hub has one credential for a tenant, and it says\n%s", out)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "kubectl ") {
			expect.Kubectl(t, f.Client(), line)
		}
	}
	sets, err := os.ReadFile(filepath.Join(dir, "tenants", "fleet.yaml"))
	expect.NoError(t, err)
	f.soon(t, "the tenant is registered by the key that was in use", func() error {
		reg := f.registration(f.two)
		if err := expect.Condition(ctx, f.Client(), reg, hubv1.ReachableCondition, metav1.ConditionTrue, ""); err != nil {
			return err
		}
		if key := reg.Status.Credential.Key; key != "super-admin.conf" {
			return fmt.Errorf("the key is %q", key)
		}
		return nil
	})
	expect.Apply(t, f.Client(), string(sets))
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "fleet"}}
	f.soon(t, "the hub has it", func() error { return expect.Delivered(ctx, f.Client(), set, f.two.key) })
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "tenants", Name: name} }
	for _, o := range []client.Object{&helmv2.HelmRelease{ObjectMeta: meta("two-settings")}, &kustomizev1.Kustomization{ObjectMeta: meta("two-networks")}} {
		expect.NoError(t, f.Client().Get(ctx, client.ObjectKeyFromObject(o), o))
		if o.GetLabels()[hubv1.AddonSetLabel] != set.Name {
			t.Errorf("%s is not the set's: %v", o.GetName(), o.GetLabels())
		}
	}
	if after := f.found(t); after != before {
		t.Errorf("what is on the tenant is %v, and was %v", after, before)
	}
	other := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "two-other"}}
	expect.NoError(t, f.Client().Delete(ctx, other))
	f.soon(t, "what was left is gone", func() error { return expect.Gone(ctx, f.Client(), other) })
	expect.NoError(t, f.Client().Delete(ctx, f.two.object())) // which the hub, and what is left of the import, must not hold
	f.soon(t, "Kamaji lets the tenant go", func() error { return expect.Gone(ctx, f.Client(), f.two.object()) })
	f.soon(t, "and the hub", func() error { return expect.Gone(ctx, f.Client(), f.registration(f.two)) })
	expect.NoError(t, f.Client().Delete(ctx, set))
	f.soon(t, "nothing of the hub's is left", func() error { return expect.NothingOfOurs(ctx, f.Client()) })
}

// found tells the objects on the second tenant from others of their names.
func (f *tenants) found(t *testing.T) (uids [2]types.UID) {
	t.Helper()
	own := f.client(t, f.two)
	for i, key := range []client.ObjectKey{f.two.chart(), f.two.git()} {
		cm := &corev1.ConfigMap{}
		expect.NoError(t, own.Get(t.Context(), key, cm))
		uids[i] = cm.UID
	}
	return uids
}

// ofKamaji is what belongs to Kamaji: all of a tenant but its labels and its status, and its Secret.
func (f *tenants) ofKamaji(t *testing.T, of *tenant) string {
	t.Helper()
	u, s := of.object(), &corev1.Secret{}
	expect.NoError(t, f.Client().Get(t.Context(), of.key, u))
	expect.NoError(t, f.Client().Get(t.Context(), client.ObjectKey{Namespace: of.key.Namespace, Name: of.key.Name + "-admin-kubeconfig"}, s))
	return fmt.Sprint(u.GetUID(), u.GetGeneration(), u.GetAnnotations(), u.GetFinalizers(), u.Object["spec"], s.UID, s.Labels, s.Data)
}

// chandler runs the command line, and returns all that it prints.
func (f *tenants) chandler(t *testing.T, args ...string) string {
	t.Helper()
	if f.binary == "" {
		var err error
		f.binary, err = localfleet.BuildCommandLine(t.Context(), f.dir)
		expect.NoError(t, err)
	}
	out, err := exec.CommandContext(t.Context(), f.binary, args...).CombinedOutput()
	t.Logf("chandler %s\n%s", strings.Join(args, " "), out)
	expect.NoError(t, err)
	return string(out)
}
