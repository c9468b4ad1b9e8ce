// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const readyTimeout = 5 * time.Minute

// Node is the node, which runs.
type Node struct {
	*localfleet.Cluster
	dir string
}

// Start starts a cluster, and a node that joins it, in the place that this process is in. Both end with the cluster.
func Start(ctx context.Context, o localfleet.ClusterOptions) (*Node, error) {
	if !Inside() {
		return nil, errors.New("this process is in no place for a node: see node.Main")
	}
	o.Dir, o.Address, o.Kubelets = Dir(), Address, true
	n := &Node{dir: filepath.Join(Dir(), "node")}
	if err := n.writeConfig(); err != nil {
		return nil, err
	}
	var err error
	if n.Cluster, err = localfleet.StartCluster(ctx, o); err != nil {
		return nil, err
	}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if err := n.startRuntime(ctx); err != nil {
		return err
	}
	if err := localfleet.SideBySide(
		func() error { return n.startKubelet(ctx) },
		func() error { return n.startProxy(ctx) },
	); err != nil {
		return err
	}
	return n.startDNS(ctx)
}

// in is a path in the node's folder.
func (n *Node) in(name string) string { return filepath.Join(n.dir, name) }

func (n *Node) writeConfig() error {
	for _, dir := range []string{"cni", "cni-bin", "kubelet"} {
		if err := os.MkdirAll(n.in(dir), 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"containerd.toml": containerdConfig, "cni/pods.conflist": cniConfig, "kube-proxy.yaml": proxyConfig, "no-resolver": "",
	} {
		if err := os.WriteFile(n.in(name), []byte(strings.ReplaceAll(content, "{dir}", n.dir)), 0o600); err != nil {
			return err
		}
	}
	for _, plugin := range []string{parts.Bridge, parts.HostLocal, parts.Loopback} {
		path, err := parts.Path(plugin)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, n.in("cni-bin/"+plugin)); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) startRuntime(ctx context.Context) error {
	path, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	err = n.Run(ctx, localfleet.Program{
		Name: "containerd", Path: path, Args: []string{"--config", n.in("containerd.toml")},
		Ready: func(ctx context.Context) error { _, err := n.ctr(ctx, "version"); return err },
	})
	if err != nil {
		return err
	}
	coreDNS, err := parts.Path(parts.CoreDNS)
	if err != nil {
		return err
	}
	return n.Load(ctx,
		Image{Ref: pauseImage, Files: map[string]string{"/pause": filepath.Join(Dir(), "pause")}, Entrypoint: []string{"/pause"}, User: "65535"},
		Image{Ref: coreDNSImage, Files: map[string]string{"/coredns": coreDNS}, Entrypoint: []string{"/coredns"}})
}

// Load gives images to the node, as if it had pulled them.
func (n *Node) Load(ctx context.Context, images ...Image) error {
	for _, image := range images {
		if err := n.load(ctx, image); err != nil {
			return fmt.Errorf("load %s: %w", image.Ref, err)
		}
	}
	return nil
}

func (n *Node) load(ctx context.Context, image Image) error {
	file, err := os.CreateTemp(n.dir, "image")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(image.Write(file), file.Close()); err != nil {
		return err
	}
	_, err = n.ctr(ctx, "images", "import", file.Name())
	return err
}

// ctr talks to containerd, about what the kubelet sees of it.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address", containerdSocket, "--namespace", "k8s.io"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func (n *Node) startKubelet(ctx context.Context) error {
	path, err := parts.Path(parts.Kubelet)
	if err != nil {
		return err
	}
	kubeconfig, err := n.Kubeconfig("system:node:"+Name, "system:nodes")
	if err != nil {
		return err
	}
	config := strings.NewReplacer("{dir}", n.dir, "{ca}", n.AuthorityFile()).Replace(kubeletConfig)
	if err := errors.Join(
		os.WriteFile(n.in("kubelet.conf"), kubeconfig, 0o600),
		os.WriteFile(n.in("kubelet.yaml"), []byte(config), 0o600),
	); err != nil {
		return err
	}
	return n.Run(ctx, localfleet.Program{
		Name: parts.Kubelet, Path: path,
		Args: []string{"--config=" + n.in("kubelet.yaml"), "--kubeconfig=" + n.in("kubelet.conf"), "--hostname-override=" + Name,
			"--node-ip=" + Address, "--root-dir=" + n.in("kubelet"), "--cert-dir=" + n.in("kubelet")},
		Ready: n.ready,
	})
}

// ready wants the node to take pods.
func (n *Node) ready(ctx context.Context) error {
	node := &corev1.Node{}
	if err := n.Client.Get(ctx, client.ObjectKey{Name: Name}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("the node is not Ready: %s", condition.Message)
		}
	}
	if len(node.Status.Conditions) == 0 || len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the node has taints %v", node.Spec.Taints)
	}
	return nil
}

func (n *Node) startProxy(ctx context.Context) error {
	path, err := parts.Path(parts.KubeProxy)
	if err != nil {
		return err
	}
	kubeconfig, err := n.Kubeconfig("system:kube-proxy")
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.in("kube-proxy.conf"), kubeconfig, 0o600); err != nil {
		return err
	}
	return n.Run(ctx, localfleet.Program{
		Name: parts.KubeProxy, Path: path, Args: []string{"--config=" + n.in("kube-proxy.yaml")},
		Ready: n.Answers("http://" + net.JoinHostPort(Address, "10256") + "/livez"),
	})
}

func (n *Node) startDNS(ctx context.Context) error {
	if err := n.Apply(ctx, coreDNS); err != nil {
		return err
	}
	return n.Available(ctx, client.ObjectKey{Namespace: "kube-system", Name: "coredns"})
}

// Available waits until all pods of a Deployment are of its newest template, and available.
func (n *Node) Available(ctx context.Context, key client.ObjectKey) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		if last = n.Client.Get(ctx, key, d); last != nil {
			return false, nil
		}
		s, want := d.Status, *d.Spec.Replicas
		last = fmt.Errorf("%d of %d pods are up to date, and %d available", s.UpdatedReplicas, want, s.AvailableReplicas)
		return s.ObservedGeneration >= d.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want, nil
	})
	if err != nil {
		return fmt.Errorf("Deployment %s: %w: %w", key, err, last)
	}
	return nil
}
