// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterOptions say what a cluster consists of.
type ClusterOptions struct {
	// Name is for logs and errors.
	Name string
	// Dir is an existing folder for logs and kubeconfigs.
	Dir string
	// CRDPaths are folders or files of CRDs to install.
	CRDPaths []string
	// ControllerManager runs a kube-controller-manager. Without it, a deleted namespace never goes away, and nothing
	// is garbage-collected by ownerReferences.
	ControllerManager bool
	// NoWorkloads leaves out the controllers that make pods, for a cluster whose Deployments the runner runs, as
	// Kamaji's.
	NoWorkloads bool
	// Nodes makes pods look as if they ran: it starts kube-controller-manager, kube-scheduler, and kwok with one
	// node.
	Nodes bool
	// Address is where the API server listens; loopback if it is empty. Pods have a loopback of their own, and need another.
	Address string
	// Kubelets prepares for real ones at Address, which package realnode starts: an API server that they and pods can talk
	// to, with all controllers and a scheduler, as ControllerManager and Nodes have them otherwise.
	Kubelets bool
	// Audit writes every mutating request into a log, and every request of the hub; see Writes and HubRequests.
	Audit bool
	// Trusts is a cluster whose ServiceAccounts may log in to this one, with tokens for the audience Audience: as users
	// <IssuerPrefix>system:serviceaccount:<namespace>:<name>.
	Trusts *Cluster
	// unseeded starts with an empty etcd.
	unseeded bool
	// Scheme for Client; client-go's if nil.
	Scheme *runtime.Scheme
}

// Cluster is a cluster that runs.
type Cluster struct {
	Name   string
	Config *rest.Config
	// Client reads and writes as the administrator.
	Client client.Client

	dir       string
	auditLog  string
	server    string
	etcd      string // the URL that etcd serves on
	authority *authority
	apiServer command
	probe     *http.Client
	died      chan error
	charts    int // the port of the chart that its hub serves

	mu        sync.Mutex
	processes []*Process
	kamaji    *Kamaji  // nil if it does not run here
	loops     []func() // each ends one, and waits for that
}

// StartCluster starts etcd and kube-apiserver, and what the options ask for beside them.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	c := &Cluster{Name: o.Name, dir: filepath.Join(o.Dir, o.Name), died: make(chan error, 1)}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %s: %w", o.Name, err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o ClusterOptions) error {
	if err := c.startControlPlane(ctx, o); err != nil {
		return err
	}
	if o.Kubelets {
		return c.serveKubelets(ctx)
	}
	if o.ControllerManager || o.Nodes {
		if err := c.startControllerManager(ctx, o); err != nil {
			return err
		}
	}
	if o.Nodes {
		return c.StartNodes(ctx)
	}
	return nil
}

// Wait returns when a part of the cluster ends unexpectedly, and says which, or when the context ends.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case err := <-c.died:
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	case <-ctx.Done():
	}
	select { // both at once: a part that died is the news
	case err := <-c.died:
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	default:
		return ctx.Err()
	}
}

// Stop ends everything that belongs to the cluster, at once, because nothing of it is kept. It removes the folder
// too.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Clients go before their servers, so that none logs errors about a lost server.
	if c.kamaji != nil {
		c.kamaji.stopTenants()
		defer c.kamaji.unlock()
	}
	for _, end := range slices.Backward(c.loops) {
		end()
	}
	for _, p := range slices.Backward(c.processes) {
		p.Kill()
	}
	return os.RemoveAll(c.dir)
}

// KubeconfigFile is the path of the administrator's kubeconfig. It goes when the cluster is stopped.
func (c *Cluster) KubeconfigFile() string { return filepath.Join(c.dir, "admin.conf") }

// run starts a part of the cluster, which ends with it.
func (c *Cluster) run(ctx context.Context, cmd command) error {
	cmd.dir = c.dir
	p, err := start(ctx, cmd)
	if err != nil {
		return err
	}
	c.mu.Lock()
	// A part that is started again takes the place of the old one.
	c.processes = append(slices.DeleteFunc(c.processes, func(old *Process) bool { return old.Name == p.Name }), p)
	c.mu.Unlock()
	go func() {
		if err := p.Err(); !p.stopped.Load() {
			select {
			case c.died <- err:
			default: // one is enough
			}
		}
	}()
	return nil
}

// loop runs a function of this process as a part of the cluster, which ends with it.
func (c *Cluster) loop(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f(ctx); ctx.Err() == nil {
			select {
			case c.died <- fmt.Errorf("a loop ended: %w", err):
			default:
			}
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loops = append(c.loops, func() { cancel(); <-ended })
}

// Processes returns the parts of the cluster that run as processes of their own.
func (c *Cluster) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// process returns a running part, nil if there is none.
func (c *Cluster) process(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if p.Name == name {
			return p
		}
	}
	return nil
}
