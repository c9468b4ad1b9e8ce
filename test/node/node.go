// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
)

const readyTimeout = 5 * time.Minute

// Node is the node, which runs.
type Node struct {
	*localfleet.Cluster
	*machine
	release context.CancelFunc // ends what has NetworkPolicies hold
}

// Start starts a cluster, and a node that joins it, in the place that this process is in. Both end with the cluster.
func Start(ctx context.Context, o localfleet.ClusterOptions) (*Node, error) {
	if !Inside() {
		return nil, errors.New("this process is in no place for a node: see node.Main")
	}
	o.Dir, o.Address, o.Kubelets = Dir(), Address, true
	cluster, err := localfleet.StartCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	n := &Node{Cluster: cluster,
		machine: &machine{name: Name, address: Address, dir: filepath.Join(Dir(), "node"), cgroup: "/", owner: cluster}}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if err := errors.Join(n.writeConfig(), n.connect(pods)); err != nil {
		return err
	}
	if err := n.startRuntime(ctx); err != nil {
		return err
	}
	if err := localfleet.SideBySide(
		func() error { return n.join(ctx) },
		func() error { return n.route(ctx) },
	); err != nil {
		return err
	}
	var enforced context.Context
	enforced, n.release = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.enforce(enforced); err != nil {
		return err
	}
	return n.startDNS(ctx)
}

// Stop ends the node and the cluster.
func (n *Node) Stop() error {
	if n.release != nil {
		n.release()
	}
	return n.Cluster.Stop()
}

// join has the node be one of the cluster.
func (n *Node) join(ctx context.Context) error {
	kubeconfig, err := n.Kubeconfig("system:node:"+Name, "system:nodes")
	if err != nil {
		return err
	}
	// It resolves nothing but names of the cluster.
	if err := n.write(map[string]string{"kubelet.conf": string(kubeconfig), "resolv.conf": ""}); err != nil {
		return err
	}
	ready := func(ctx context.Context) error { return ready(ctx, n.Client, Name) }
	return n.startKubelet(ctx, n.AuthorityFile(), ready, "--kubeconfig="+n.in("kubelet.conf"))
}

// ready wants a node to take pods.
func ready(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
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

// route has Services lead to their pods.
func (n *Node) route(ctx context.Context) error {
	kubeconfig, err := n.Kubeconfig("system:kube-proxy")
	if err != nil {
		return err
	}
	return n.startProxy(ctx, pods, kubeconfig)
}

func (n *Node) startDNS(ctx context.Context) error {
	image, err := coreDNSImage(dnsImage)
	if err != nil {
		return err
	}
	if err := n.Load(ctx, image); err != nil {
		return err
	}
	if err := n.Apply(ctx, coreDNS); err != nil {
		return err
	}
	return n.Available(ctx, client.ObjectKey{Namespace: "kube-system", Name: "coredns"})
}

// Available waits until all pods of a Deployment are of its newest template, and available.
func (n *Node) Available(ctx context.Context, key client.ObjectKey) error {
	return await(ctx, fmt.Sprintf("Deployment %s is available", key), func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := n.Client.Get(ctx, key, d); err != nil {
			return err
		}
		s, want := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration < d.Generation || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want {
			return fmt.Errorf("%d of %d pods are up to date, and %d available", s.UpdatedReplicas, want, s.AvailableReplicas)
		}
		return nil
	})
}

// await waits until a check returns nil. The error is the check's last one.
func await(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, err, last)
	}
	return nil
}
