// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// Only the controllers that something here depends on. The others would cost time and memory in each cluster.
var (
	controllers = []string{"namespace-controller", "garbage-collector-controller", "serviceaccount-controller",
		"clusterrole-aggregation-controller"}
	workloadControllers = []string{
		"deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller", "job-controller",
		"endpointslice-controller",
	}
	// podControllers are for clusters on which pods seem to run: without this one, a quota of pods lets none in.
	podControllers = []string{"resourcequota-controller"}
)

func (c *Cluster) startControllerManager(ctx context.Context, o ClusterOptions) error {
	controllers := controllers
	if !o.NoWorkloads {
		controllers = slices.Concat(controllers, workloadControllers)
	}
	if o.Nodes {
		controllers = slices.Concat(controllers, podControllers)
	}
	return c.StartControllerManager(ctx, "--controllers="+strings.Join(controllers, ","))
}

// StartControllerManager starts a kube-controller-manager with the identity that it has in production, by which
// policies tell it from people.
func (c *Cluster) StartControllerManager(ctx context.Context, args ...string) error {
	kubeconfig, err := c.Kubeconfig("system:kube-controller-manager", "system:masters")
	if err != nil {
		return err
	}
	file := filepath.Join(c.dir, parts.KubeControllerManager+".conf")
	if err := writeFiles(map[string][]byte{file: kubeconfig}); err != nil {
		return err
	}
	return c.startKubernetes(ctx, parts.KubeControllerManager, file, append([]string{
		"--kube-api-qps=200", "--kube-api-burst=200", "--service-account-private-key-file=" + filepath.Join(c.dir, "service-accounts.key"),
	}, args...)...)
}

// startKubernetes starts a part of the control plane that works through the API server.
func (c *Cluster) startKubernetes(ctx context.Context, name, kubeconfig string, args ...string) error {
	path, err := parts.Path(name)
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	return c.run(ctx, command{
		name: name, path: path,
		args: append([]string{
			"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--profiling=false",
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			"--tls-cert-file=" + filepath.Join(c.dir, "apiserver.crt"), "--tls-private-key-file=" + filepath.Join(c.dir, "apiserver.key"),
		}, args...),
		ready: answers(c.probe, fmt.Sprintf("https://127.0.0.1:%d/healthz", port)),
	})
}

// StartNodes has pods run, in appearance, on a cluster with a controller manager: kube-scheduler binds them to a node, and
// kwok says for its kubelet that they are Ready. A cluster without nodes looks like a new tenant before its workers join.
func (c *Cluster) StartNodes(ctx context.Context) error {
	return SideBySide(
		func() error { return c.startKubernetes(ctx, parts.KubeScheduler, c.KubeconfigFile()) },
		func() error { return c.JoinNode(ctx) },
	)
}

// JoinNode adds a node that kwok plays, to a cluster that has a scheduler: what a tenant gets when its first worker joins.
func (c *Cluster) JoinNode(ctx context.Context) error {
	return SideBySide(
		func() error { return c.startKwok(ctx) },
		func() error { return c.addNode(ctx, "node-0") },
	)
}

// leaseSeconds is how long a node's lease is valid, as with a kubelet. kwok renews it four times as often. Without a
// lease, a controller manager that watches nodes, as Kamaji's does, marks a node NotReady 50 seconds after it joined,
// and all its pods not ready for good.
const leaseSeconds = 40

func (c *Cluster) startKwok(ctx context.Context) error {
	path, err := parts.Path(parts.Kwok)
	if err != nil {
		return err
	}
	stages, err := parts.Files(parts.KwokStages)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(stages, "*.yaml"))
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	return c.run(ctx, command{
		name: parts.Kwok, path: path,
		args: []string{
			"--kubeconfig=" + c.KubeconfigFile(), "--config=" + strings.Join(files, ","), "--server-address=" + address,
			"--manage-all-nodes", "--node-ip=127.0.0.1", "--cidr=10.244.0.0/16",
			fmt.Sprintf("--node-lease-duration-seconds=%d", leaseSeconds),
		},
		env:   []string{"HOME=" + c.dir}, // it reads a configuration from there too
		ready: answers(c.probe, "http://"+address+"/readyz"),
	})
}

// addNode makes a node that is big enough for everything, and waits until kwok has made it Ready.
func (c *Cluster) addNode(ctx context.Context, name string) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("1000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name, "type": "kwok"}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	if err := c.Client.Create(ctx, node); err != nil {
		return err
	}
	// The API server taints a new node as not ready. The controller that would remove the taint waits for a
	// heartbeat, which a busy machine could miss.
	if err := c.Client.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"taints":null}}`))); err != nil {
		return err
	}
	return poll(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("node " + name + " is not Ready")
	})
}
