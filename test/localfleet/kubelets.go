// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"net"
	"path/filepath"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// apiServerIP is the first of the range of Services, which the API server takes for itself.
var apiServerIP = net.IPv4(10, 96, 0, 1)

// forKubelets returns the flags of an API server with real nodes: it keeps the endpoint of Service kubernetes, holds
// kubelets to what is theirs, and logs in to them for logs and exec. It does not look at their certificates, which they sign themselves.
func (c *Cluster) forKubelets() ([]string, error) {
	certificate, key, err := c.authority.user("kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(c.dir, name) }
	return []string{
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--kubelet-client-certificate=" + in("kubelet-client.crt"), "--kubelet-client-key=" + in("kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP",
		}, writeFiles(map[string][]byte{
			in("kubelet-client.crt"): certificate, in("kubelet-client.key"): key,
		})
}

// serveKubelets starts what makes pods and gives them to nodes. Each controller has an identity of its own, as in production.
func (c *Cluster) serveKubelets(ctx context.Context) error {
	return SideBySide(
		func() error {
			return c.StartControllerManager(ctx, "--root-ca-file="+c.AuthorityFile(), "--use-service-account-credentials=true")
		},
		func() error { return c.startKubernetes(ctx, parts.KubeScheduler, c.KubeconfigFile()) },
	)
}

// AuthorityFile is the path of the certificate that the API server's is issued by. It goes when the cluster is stopped.
func (c *Cluster) AuthorityFile() string { return filepath.Join(c.dir, "ca.crt") }

// Program is a program that runs as a part of a cluster, and ends with it.
type Program struct {
	Name, Path string
	Args, Env  []string
	// Ready returns nil when the program serves; nil Ready means at once.
	Ready func(context.Context) error
}

// Run starts a program, and waits until it is ready.
func (c *Cluster) Run(ctx context.Context, p Program) error {
	return c.run(ctx, command{name: p.Name, path: p.Path, args: p.Args, env: p.Env, ready: p.Ready})
}

// Answers returns a readiness check that wants status 200 of a URL.
func (c *Cluster) Answers(url string) func(context.Context) error { return answers(c.probe, url) }
