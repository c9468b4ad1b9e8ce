// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chandler-hub/chandler/internal/localfleet/parts"
)

// ClusterOptions say what a cluster consists of.
type ClusterOptions struct {
	// Name is for logs and errors.
	Name string
	// Dir is an existing folder for logs and kubeconfigs.
	Dir string
	// CRDPaths are folders or files of CRDs to install.
	CRDPaths []string
	// ControllerManager runs a kube-controller-manager: without it a namespace is never finally deleted, and ownerReferences
	// collect nothing.
	ControllerManager bool
	// Nodes makes pods run, in appearance: kube-controller-manager, kube-scheduler, and kwok with one node.
	Nodes bool
	// Audit writes every mutating request into a log, see Writes.
	Audit bool
	// Scheme for Client; client-go's if nil.
	Scheme *runtime.Scheme
}

// Cluster is a cluster that runs.
type Cluster struct {
	Name   string
	Config *rest.Config
	// Client reads and writes as the administrator.
	Client client.Client

	env       *envtest.Environment
	dir       string
	auditLog  string
	processes []*Process
}

// StartCluster starts etcd and kube-apiserver, and what the options ask for beside them.
func StartCluster(ctx context.Context, o ClusterOptions) (c *Cluster, err error) {
	etcd, err := parts.Path(parts.Etcd)
	if err != nil {
		return nil, err
	}
	apiserver, err := parts.Path(parts.KubeAPIServer)
	if err != nil {
		return nil, err
	}
	c = &Cluster{Name: o.Name, dir: filepath.Join(o.Dir, o.Name)}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	c.env = &envtest.Environment{
		ControlPlane:             envtest.ControlPlane{Etcd: &envtest.Etcd{Path: etcd}, APIServer: &envtest.APIServer{Path: apiserver}},
		CRDDirectoryPaths:        o.CRDPaths,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  30 * time.Second,
	}
	if o.Audit {
		if err := c.audit(); err != nil {
			return nil, err
		}
	}
	if c.Config, err = c.env.Start(); err != nil {
		_ = c.env.Stop()
		return nil, fmt.Errorf("start cluster %s: %w", o.Name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	c.Config.QPS = -1
	scheme := o.Scheme
	if scheme == nil {
		scheme = clientgoscheme.Scheme
	}
	if c.Client, err = client.New(c.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if o.ControllerManager || o.Nodes {
		if err = c.startControllerManager(ctx); err != nil {
			return nil, err
		}
	}
	if o.Nodes {
		if err = c.startNodes(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Stop ends everything that belongs to the cluster.
func (c *Cluster) Stop() error {
	for i := len(c.processes) - 1; i >= 0; i-- {
		c.processes[i].Stop()
	}
	return c.env.Stop()
}

// kubeconfigFile writes the administrator's kubeconfig into the cluster's folder, for a part that wants a file.
func (c *Cluster) kubeconfigFile() (string, error) {
	raw, err := c.Kubeconfig("kubernetes-admin", "system:masters")
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, "admin.conf")
	return path, os.WriteFile(path, raw, 0o600)
}

// run starts a part of the cluster.
func (c *Cluster) run(ctx context.Context, cmd command) error {
	cmd.dir = c.dir
	p, err := start(ctx, cmd)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	c.processes = append(c.processes, p)
	return nil
}
