// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// KamajiNamespace is where Kamaji thinks it runs.
const KamajiNamespace = "kamaji-system"

// Kamaji is the real operator on a management cluster: it issues the certificates of its tenants and writes their
// Deployments, and a runner in the kubelet's place runs these as processes.
type Kamaji struct {
	hub    *Cluster
	dir    string
	keys   *KamajiKeys
	proxy  *serviceProxy
	runner *runner
	unlock func()
}

// StartKamaji starts Kamaji on a cluster that has its CRDs, and a kube-controller-manager that leaves Deployments alone. It ends
// with the cluster. As Kamaji's port is fixed, there is one on a machine at a time: waiting, if not nil, is told who has it.
func (c *Cluster) StartKamaji(ctx context.Context, waiting func(holder string)) (*Kamaji, error) {
	unlock, err := lockKamaji(ctx, waiting)
	if err != nil {
		return nil, err
	}
	k := &Kamaji{hub: c, dir: filepath.Join(c.dir, parts.Kamaji), unlock: unlock}
	c.mu.Lock()
	c.kamaji = k
	c.mu.Unlock()
	if err := k.start(ctx); err != nil { // the rest of it ends with the cluster
		return nil, fmt.Errorf("start Kamaji: %w", err)
	}
	return k, nil
}

func (k *Kamaji) start(ctx context.Context) error {
	var err error
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		return err
	}
	if k.keys, err = NewKamajiKeys(); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: KamajiNamespace}}
	if err := client.IgnoreAlreadyExists(k.hub.Client.Create(ctx, ns)); err != nil {
		return err
	}
	if err := k.startStore(ctx); err != nil {
		return err
	}
	if k.proxy, err = newServiceProxy(); err != nil {
		return err
	}
	if err := k.startManager(ctx); err != nil {
		return err
	}
	// The webhooks are registered only now: before, they would reject everything, because nobody answers.
	if err := k.registerWebhooks(ctx); err != nil {
		return err
	}
	k.runner, err = startRunner(k.hub.Config, filepath.Join(k.dir, "tenants"))
	return err
}

func (k *Kamaji) startManager(ctx context.Context) error {
	path, err := parts.Path(parts.Kamaji)
	if err != nil {
		return err
	}
	// Temporary files go where everything of this fleet is removed. Kamaji also finds its certificates there.
	tmp := filepath.Join(k.dir, "tmp")
	certs := filepath.Join(tmp, "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(certs, 0o700); err != nil {
		return err
	}
	server, err := k.keys.Server()
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(certs, name) }
	for name, content := range server {
		if err := writeFiles(map[string][]byte{in(name): content}); err != nil {
			return err
		}
	}
	return k.hub.run(ctx, command{
		name: parts.Kamaji, path: path,
		args: []string{
			"manager", "--datastore=" + dataStore, "--pod-namespace=" + KamajiNamespace, "--serviceaccount-name=kamaji",
			"--webhook-service-name=kamaji-webhook-service", "--webhook-ca-path=" + in("ca.crt"), "--tmp-directory=" + filepath.Join(tmp, "kamaji"),
			"--max-concurrent-tcp-reconciles=2", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0",
			"--disable-telemetry",
		},
		// Go's clients use no proxy for loopback, so this proxy sees only requests for Services.
		env: []string{"KUBECONFIG=" + k.hub.KubeconfigFile(), "TMPDIR=" + tmp, "HOME=" + tmp, "HTTPS_PROXY=" + k.proxy.url(), "NO_PROXY=",
			"no_proxy="},
		ready: k.webhooksAnswer,
	})
}

// webhooksAnswer is an error until somebody with our certificate listens on Kamaji's port.
func (k *Kamaji) webhooksAnswer(ctx context.Context) error {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: answerTimeout}, Config: k.keys.authority.trusted()}
	conn, err := d.DialContext(ctx, "tcp", kamajiAddress)
	if err != nil {
		return err
	}
	return conn.Close()
}

// stopTenants ends what the runner runs. The rest are parts of the cluster.
func (k *Kamaji) stopTenants() {
	if k.runner != nil {
		k.runner.stop()
	}
	if k.proxy != nil {
		_ = k.proxy.server.Close()
	}
}

// TenantOptions say what a tenant is to be.
type TenantOptions struct {
	Labels map[string]string
	// Version of Kubernetes; NewestTenant if empty. It is what Kamaji says: what runs is our kube-apiserver.
	Version string
	// PodCIDR is Kamaji's default if empty.
	PodCIDR string
	// Address and Port are where its API server is to be reached, and ServiceType is how it is exposed.
	Address     string
	Port        int
	ServiceType corev1.ServiceType
}

// NewestTenant is the newest version that Kamaji's webhook allows.
const NewestTenant = "v1.30.2"

// CreateTenant makes a TenantControlPlane that asks for its API server on a free port of loopback. Kamaji does the rest.
func (k *Kamaji) CreateTenant(ctx context.Context, namespace, name string, o TenantOptions) error {
	var err error
	if o.Port, err = FreePort(); err != nil {
		return err
	}
	o.Address, o.ServiceType = "127.0.0.1", corev1.ServiceTypeClusterIP
	return k.hub.Client.Create(ctx, NewTenant(namespace, name, o))
}

// NewTenant returns a TenantControlPlane as a person would write it.
func NewTenant(namespace, name string, o TenantOptions) *unstructured.Unstructured {
	version := cmp.Or(o.Version, NewestTenant)
	network := map[string]any{"address": o.Address, "port": int64(o.Port)}
	if o.PodCIDR != "" {
		network["podCidr"] = o.PodCIDR
	}
	u := newObject(tenantKind.GroupVersion().String(), tenantKind.Kind, namespace, name, o.Labels)
	u.Object["spec"] = map[string]any{
		"controlPlane": map[string]any{
			"deployment": map[string]any{"replicas": int64(1)}, "service": map[string]any{"serviceType": string(o.ServiceType)},
		},
		"kubernetes": map[string]any{"version": version, "kubelet": map[string]any{
			"cgroupfs": "systemd", "preferredAddressTypes": []any{"InternalIP"}, // nobody resolves the names of nodes
		}},
		"networkProfile": network,
		"addons":         map[string]any{"coreDNS": map[string]any{}, "kubeProxy": map[string]any{}},
	}
	return u
}

// Tenant waits until Kamaji says that a tenant is Ready, and returns it as a cluster, with the authority that Kamaji keeps in a
// Secret. What is started on it is the caller's to stop, before the management cluster; the tenant itself lives on.
func (k *Kamaji) Tenant(ctx context.Context, namespace, name string) (*Cluster, error) {
	tcp := newObject(tenantKind.GroupVersion().String(), tenantKind.Kind, namespace, name, nil)
	if err := poll(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		if err := k.hub.Client.Get(ctx, client.ObjectKeyFromObject(tcp), tcp); err != nil {
			return err
		}
		word, _, _ := unstructured.NestedString(tcp.Object, "status", "kubernetesResources", "version", "status")
		if word != "Ready" {
			return fmt.Errorf("TenantControlPlane %s is %q", name, word)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	data := func(secret string) (map[string][]byte, error) {
		s := &corev1.Secret{}
		err := k.hub.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-" + secret}, s)
		return s.Data, err
	}
	ca, err := data("ca")
	if err != nil {
		return nil, err
	}
	admin, err := data("admin-kubeconfig")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Name: name, dir: filepath.Join(k.dir, "on-"+namespace+"-"+name), died: make(chan error, 1)}
	if c.authority, err = parseAuthority(ca["ca.crt"], ca["ca.key"]); err != nil {
		return nil, err
	}
	c.probe = c.authority.prober()
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.connect(admin["super-admin.conf"], k.hub.Client.Scheme()); err != nil {
		return nil, err
	}
	c.server = c.Config.Host
	return c, nil
}
