// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// startControlPlane starts etcd and kube-apiserver. It does not use envtest, because it needs more control of the two
// processes: they must die with this process, have logs, and be stopped and started again at their old address.
func (c *Cluster) startControlPlane(ctx context.Context, o ClusterOptions) error {
	var err error
	if c.authority, err = newAuthority(o.Name, ecdsaKey); err != nil {
		return err
	}
	if o.Address == "" {
		o.Address = "127.0.0.1"
	}
	c.authority.addresses = []net.IP{net.ParseIP(o.Address), apiServerIP}
	c.probe = c.authority.prober()
	there, missing, err := c.sow(ctx, o)
	if err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.configureAPIServer(o, c.etcd); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	kubeconfig, err := c.Kubeconfig("kubernetes-admin", "system:masters")
	if err != nil {
		return err
	}
	if err := c.connect(kubeconfig, o.Scheme); err != nil {
		return err
	}
	if err := c.waitForNamespace(ctx, metav1.NamespaceDefault); err != nil {
		return err
	}
	return c.installCRDs(there, missing)
}

// connect keeps the administrator's kubeconfig, and makes a client of it.
func (c *Cluster) connect(kubeconfig []byte, scheme *runtime.Scheme) (err error) {
	if err := writeFiles(map[string][]byte{c.KubeconfigFile(): kubeconfig}); err != nil {
		return err
	}
	if c.Config, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig); err != nil {
		return err
	}
	c.Config.QPS = -1 // tests and the demo are not to be slowed down by their own client
	c.Client, err = client.New(c.Config, client.Options{Scheme: scheme})
	return err
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	path, err := parts.Path(parts.Etcd)
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	c.etcd = fmt.Sprintf("http://127.0.0.1:%d", port)
	return c.run(ctx, command{
		name: parts.Etcd, path: path,
		args: []string{
			"--data-dir=" + filepath.Join(c.dir, "etcd"), "--listen-client-urls=" + c.etcd, "--advertise-client-urls=" + c.etcd,
			"--listen-peer-urls=http://127.0.0.1:0", // a single member has no peers
			"--unsafe-no-fsync=true",                // what is lost in a crash of the machine was thrown away anyway
			"--log-level=warn",
		},
		ready: answers(c.probe, c.etcd+"/health"),
	})
}

// configureAPIServer decides how the API server is run, and where.
func (c *Cluster) configureAPIServer(o ClusterOptions, etcd string) error {
	path, err := parts.Path(parts.KubeAPIServer)
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(c.dir, name) }
	certificate, key, err := c.authority.server(c.authority.cert.NotBefore, time.Now().Add(certificateLife))
	if err != nil {
		return err
	}
	signer, signerKey, err := c.authority.user("service-accounts", nil)
	if err != nil {
		return err
	}
	if err := writeFiles(map[string][]byte{
		in("ca.crt"): c.authority.pem(), in("apiserver.crt"): certificate, in("apiserver.key"): key,
		in("service-accounts.crt"): signer, in("service-accounts.key"): signerKey,
	}); err != nil {
		return err
	}
	c.server = fmt.Sprintf("https://%s:%d", o.Address, port)
	args := []string{
		"--etcd-servers=" + etcd, "--bind-address=" + o.Address, fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + in("apiserver.crt"), "--tls-private-key-file=" + in("apiserver.key"), "--client-ca-file=" + in("ca.crt"),
		"--cert-dir=" + c.dir,
		"--service-account-key-file=" + in("service-accounts.crt"), "--service-account-signing-key-file=" + in("service-accounts.key"),
		"--service-account-issuer=" + c.server, "--service-account-jwks-uri=" + c.server + "/openid/v1/jwks",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
	}
	more, err := c.forNodes(o)
	if err != nil {
		return err
	}
	args = append(args, more...)
	if o.Trusts != nil {
		trust, err := c.trust(o.Trusts)
		if err != nil {
			return err
		}
		args = append(args, trust)
	}
	if o.Audit {
		audit, err := c.audit()
		if err != nil {
			return err
		}
		args = append(args, audit...)
	}
	c.apiServer = command{name: parts.KubeAPIServer, path: path, args: args, ready: answers(c.probe, c.server+"/readyz")}
	return nil
}

// forNodes returns the flags that depend on what nodes the cluster has.
func (c *Cluster) forNodes(o ClusterOptions) ([]string, error) {
	if o.Kubelets {
		return c.forKubelets()
	}
	args := []string{
		"--authorization-mode=RBAC",
		"--endpoint-reconciler-type=none", // a write every ten seconds less
	}
	if !o.ControllerManager && !o.Nodes {
		// The plugin rejects pods whose ServiceAccount does not exist. Without a controller manager, no
		// ServiceAccount exists.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return args, nil
}

// waitForNamespace waits for one that the API server makes after it has become ready.
func (c *Cluster) waitForNamespace(ctx context.Context, name string) error {
	return poll(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		return c.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	})
}

// StartAPIServer starts the API server again after StopAPIServer, at its old address and with its old data.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	return c.run(ctx, c.apiServer)
}

// StopAPIServer makes the cluster unreachable: connections are refused.
func (c *Cluster) StopAPIServer() {
	if p := c.process(parts.KubeAPIServer); p != nil {
		p.Kill()
	}
}
