// SPDX-License-Identifier: Apache-2.0

package kamaji

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
)

// tenant is one, and what its add-ons are to be.
type tenant struct {
	key           client.ObjectKey
	label, region string
	pods          string
	address       string   // of its API server, once it is known
	first         snapshot // when its add-ons had arrived
}

// tenants are two, on a platform.
type tenants struct {
	Platform
	one, two *tenant
	set      *hubv1.AddonSet
	round    int
	gone     bool      // the first one is
	joined   time.Time // when the second one got a node; zero if it has none
	// dir is a folder of the test's, and binary the command line in it, once it is built.
	dir, binary string
}

// snapshot tells an add-on that was changed from one that was installed again.
type snapshot struct {
	chart, git, release types.UID
	deployed            string // for the first time, by Helm's own record
	revision            int
}

func startTenants(t *testing.T) *tenants {
	f := &tenants{Platform: platform, dir: t.TempDir(), set: &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}}
	f.one = &tenant{key: client.ObjectKey{Namespace: "tenants", Name: "one"}, label: "eu", region: "europe", pods: "10.36.0.0/16"}
	f.two = &tenant{key: client.ObjectKey{Namespace: "tenants", Name: "two"}, label: "us", region: "america", pods: "10.40.0.0/16"}
	t.Cleanup(func() {
		if t.Failed() {
			dump(t, f.Platform)
		}
	})
	expect.NoError(t, f.PublishChart(os.DirFS("../testdata"), "charts/settings"))
	expect.NoError(t, f.Commit(map[string]string{"networks/configmap.yaml": networks}))
	expect.Namespace(t, f.Client(), "tenants")
	older, _ := f.Versions()
	for _, tenant := range f.all() {
		labels := map[string]string{hubv1.RegisterLabel: "true", "suite": "tenants", "region": tenant.label}
		version := ""
		if tenant == f.two {
			version = older
		}
		expect.NoError(t, f.CreateTenant(t.Context(), tenant.key, Tenant{Labels: labels, PodCIDR: tenant.pods, Version: version}))
	}
	return f
}

func (f *tenants) soon(t *testing.T, what string, check func() error) {
	t.Helper()
	expect.Within(t, f.Patience(), what, check)
}

func (f *tenants) all() []*tenant {
	if f.gone {
		return []*tenant{f.two}
	}
	return []*tenant{f.one, f.two}
}

// next changes the set, and waits until the change has arrived in every tenant's own API.
func (f *tenants) next(t *testing.T) {
	t.Helper()
	f.round++
	expect.Apply(t, f.Client(), fmt.Sprintf(set, f.ChartsURL(), f.GitURL(), f.name()))
	for _, tenant := range f.all() {
		f.soon(t, f.name()+" in "+tenant.key.Name, func() error {
			own, err := f.tryClient(t.Context(), tenant)
			if err != nil {
				return err
			}
			return errors.Join(
				wantData(t.Context(), own, tenant.chart(), "color", f.name()+" "+tenant.region),
				wantData(t.Context(), own, tenant.git(), "round", f.name()),
				wantData(t.Context(), own, tenant.git(), "pods", tenant.pods))
		})
	}
	f.nextPods(t)
}

func (f *tenants) name() string { return fmt.Sprintf("round-%d", f.round) }

func (t *tenant) chart() client.ObjectKey {
	return client.ObjectKey{Namespace: "settings", Name: "settings"}
}

func (t *tenant) git() client.ObjectKey {
	return client.ObjectKey{Namespace: "default", Name: "networks"}
}

func (t *tenant) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("kamaji.clastix.io/v1alpha1")
	u.SetKind("TenantControlPlane")
	u.SetNamespace(t.key.Namespace)
	u.SetName(t.key.Name)
	return u
}

func (f *tenants) registration(of *tenant) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: of.key.Namespace, Name: of.key.Name}}
}

// wantReady waits until what the set says now is Ready on a tenant. Its registration alone may be Ready from before the last change.
func (f *tenants) wantReady(t *testing.T, tenant *tenant) {
	t.Helper()
	f.soon(t, tenant.key.Name+" is Ready", func() error {
		return errors.Join(expect.Delivered(t.Context(), f.Client(), f.set, tenant.key),
			expect.Condition(t.Context(), f.Client(), f.registration(tenant), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason))
	})
}

// wantTenant wants a status word of Kamaji's, and a version unless that is empty.
func (f *tenants) wantTenant(ctx context.Context, tenant *tenant, word, version string) error {
	u := tenant.object()
	if err := f.Client().Get(ctx, tenant.key, u); err != nil {
		return err
	}
	now, _, _ := unstructured.NestedStringMap(u.Object, "status", "kubernetesResources", "version")
	if now["status"] != word || version != "" && now["version"] != version {
		return fmt.Errorf("TenantControlPlane %s is %v", tenant.key.Name, now)
	}
	return nil
}

// client is the administrator's on a tenant's own API.
func (f *tenants) client(t *testing.T, tenant *tenant) client.Client {
	t.Helper()
	c, err := f.tryClient(t.Context(), tenant)
	expect.NoError(t, err)
	return c
}

func (f *tenants) tryClient(ctx context.Context, tenant *tenant) (client.Client, error) {
	config, err := f.TenantConfig(ctx, tenant.key)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{})
}

// deleteSecrets has Kamaji make some of a tenant's Secrets anew.
func (f *tenants) deleteSecrets(t *testing.T, tenant *tenant, names ...string) {
	t.Helper()
	for _, name := range names {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.key.Namespace, Name: tenant.key.Name + "-" + name}}
		expect.NoError(t, f.Client().Delete(t.Context(), s))
	}
}

// remember notes how a tenant's add-ons were installed.
func (f *tenants) remember(t *testing.T, tenant *tenant) { tenant.first = f.snapshot(t, tenant) }

func (f *tenants) snapshot(t *testing.T, tenant *tenant) snapshot {
	t.Helper()
	var s snapshot
	// Kamaji may be about to replace a pod that is Ready, so its API may not answer; what it answers counts at once.
	f.soon(t, "the API of "+tenant.key.Name+" answers", func() error {
		own, err := f.tryClient(t.Context(), tenant)
		if err != nil {
			return err
		}
		for key, uid := range map[client.ObjectKey]*types.UID{tenant.chart(): &s.chart, tenant.git(): &s.git} {
			cm := &corev1.ConfigMap{}
			if err := own.Get(t.Context(), key, cm); apierrors.IsNotFound(err) {
				t.Fatal(err)
			} else if err != nil {
				return err
			}
			*uid = cm.UID
		}
		return nil
	})
	releases := &helmv2.HelmReleaseList{}
	expect.NoError(t, f.Client().List(t.Context(), releases, client.InNamespace("flux-system")))
	for _, r := range releases.Items {
		if r.Labels[hubv1.ClusterLabel] == tenant.key.Name && r.Labels[hubv1.AddonLabel] == "settings" && len(r.Status.History) > 0 {
			latest := r.Status.History.Latest()
			s.release, s.deployed, s.revision = r.UID, latest.FirstDeployed.UTC().Format(time.RFC3339), latest.Version
		}
	}
	return s
}

// wantKept wants the add-ons of every tenant to be those of the beginning, changed in each round and never installed again.
func (f *tenants) wantKept(t *testing.T) {
	t.Helper()
	for _, tenant := range f.all() {
		f.wantReady(t, tenant)
		now, want := f.snapshot(t, tenant), tenant.first
		want.revision = max(f.round, now.revision) // an attempt that failed may have one, too
		if now != want {
			t.Errorf("%s: the add-ons are %+v, want %+v", tenant.key.Name, now, want)
		}
	}
}

// nothingFor wants nothing of the hub's to be left for a tenant.
func (f *tenants) nothingFor(ctx context.Context, tenant *tenant) error {
	left, err := expect.Ours(ctx, f.Client())
	for _, each := range left {
		if _, name, _ := strings.Cut(each, "/"); strings.Contains("-"+name+"-", "-"+tenant.key.Name+"-") {
			err = errors.Join(err, errors.New(each+" is left"))
		}
	}
	return err
}

// serial is the number of the certificate that a tenant's API server serves.
func (f *tenants) serial(t *testing.T, tenant *tenant) string {
	t.Helper()
	serial, err := f.served(t.Context(), tenant)
	expect.NoError(t, err)
	return serial
}

func (f *tenants) served(ctx context.Context, tenant *tenant) (string, error) {
	host := tenant.address
	if host == "" {
		config, err := f.TenantConfig(ctx, tenant.key)
		if err != nil {
			return "", err
		}
		u, err := url.Parse(config.Host)
		if err != nil {
			return "", err
		}
		host = u.Host
		tenant.address = host
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Second}, Config: &tls.Config{InsecureSkipVerify: true}} // it is looked at, and not talked to
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return certificate(conn).SerialNumber.String(), nil
}

func certificate(conn net.Conn) *x509.Certificate {
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// answers wants an API server to take a kubeconfig.
func answers(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
}

func versionOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(t, err)
	v, err := d.ServerVersion()
	expect.NoError(t, err)
	return v.GitVersion
}

func wantData(ctx context.Context, c client.Client, key client.ObjectKey, name, want string) error {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, key, cm); err != nil {
		return err
	}
	if cm.Data[name] != want {
		return fmt.Errorf("%s of ConfigMap %s is %q, want %q", name, key, cm.Data[name], want)
	}
	return nil
}

// without wants an object to lack a condition.
func without(reg *hubv1.ClusterRegistration, condition string) error {
	if c := expect.ConditionOf(reg, condition); c.Type != "" {
		return fmt.Errorf("%s is %s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
	}
	return nil
}

// dump prints the status of the kinds that the tests are about, and what the platform knows.
func dump(t *testing.T, p Platform) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, k := range [][2]string{
		{"kamaji.clastix.io/v1alpha1", "TenantControlPlane"}, {"apps/v1", "Deployment"},
		{"chandler.dev/v1alpha1", "ClusterRegistration"}, {"chandler.dev/v1alpha1", "AddonSet"}, {"chandler.dev/v1alpha1", "AddonDelivery"},
		{"helm.toolkit.fluxcd.io/v2", "HelmRelease"}, {"kustomize.toolkit.fluxcd.io/v1", "Kustomization"},
		{"source.toolkit.fluxcd.io/v1", "HelmChart"}, {"source.toolkit.fluxcd.io/v1", "HelmRepository"}, {"source.toolkit.fluxcd.io/v1", "OCIRepository"}, {"source.toolkit.fluxcd.io/v1", "GitRepository"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(k[0])
		list.SetKind(k[1] + "List")
		if err := p.Client().List(ctx, list, client.Limit(20)); err != nil {
			t.Logf("list %s: %v", k[1], err)
			continue
		}
		for _, o := range list.Items {
			raw, _ := yaml.Marshal(map[string]any{"metadata": map[string]any{"labels": o.GetLabels(), "generation": o.GetGeneration(), "deletionTimestamp": o.GetDeletionTimestamp()}, "status": o.Object["status"]})
			t.Logf("%s %s/%s\n%s", k[1], o.GetNamespace(), o.GetName(), raw)
		}
	}
	p.Dump(t)
}
