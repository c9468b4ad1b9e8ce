// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/localfleet/parts"
)

// controllers are those that something here depends on. The others would cost time and memory in each cluster.
var controllers = []string{
	"namespace-controller", "garbage-collector-controller", "serviceaccount-controller", "deployment-controller", "replicaset-controller", "endpointslice-controller",
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	path, err := parts.Path(parts.KubeControllerManager)
	if err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigFile()
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	return c.run(ctx, command{
		name: "kube-controller-manager", path: path,
		args: []string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			"--cert-dir=" + filepath.Join(c.dir, "controller-manager"),
			"--controllers=" + strings.Join(controllers, ","),
			"--kube-api-qps=200", "--kube-api-burst=200", "--namespace-sync-period=5s",
			"--service-account-private-key-file=" + filepath.Join(c.env.ControlPlane.APIServer.CertDir, "sa-signer.key"),
		},
	})
}

// startNodes starts the scheduler and kwok, with one node that is big enough for everything.
func (c *Cluster) startNodes(ctx context.Context) error {
	scheduler, err := parts.Path(parts.KubeScheduler)
	if err != nil {
		return err
	}
	kwok, err := parts.Path(parts.Kwok)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.dir, "admin.conf")
	port, err := freePort()
	if err != nil {
		return err
	}
	if err := c.run(ctx, command{name: "kube-scheduler", path: scheduler, args: []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + filepath.Join(c.dir, "scheduler"),
	}}); err != nil {
		return err
	}
	if err := c.run(ctx, command{name: "kwok", path: kwok, args: []string{
		"--kubeconfig=" + kubeconfig, "--manage-all-nodes=true", "--node-ip=127.0.0.1", "--cidr=10.0.0.0/16",
	}, env: []string{"HOME=" + c.dir}}); err != nil {
		return err
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	return c.Client.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-0", Labels: map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/hostname": "node-0", "type": "kwok"}},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	})
}
