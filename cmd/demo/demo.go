// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// defaultTimeout is how long the add-ons may take to arrive.
const defaultTimeout = 5 * time.Minute

// options are the flags.
type options struct {
	// Out is where the demo prints.
	Out io.Writer
	// Hub is the hub's binary; if it is empty, the demo builds it.
	Hub string
	// Once ends the demo when all add-ons are Ready and have been read back.
	Once bool
	// Teams has two teams arrive after that.
	Teams bool
	// Rollout shows after that how a bad edit stops at the first cluster.
	Rollout bool
	// Timeout bounds the wait for the add-ons.
	Timeout time.Duration
}

// workload is one of the three clusters.
type workload struct {
	name   string
	origin string // how it is known on the management cluster
	*localfleet.Cluster
}

// fleet is all running parts of the demo.
type fleet struct {
	out       *screen
	dir       string
	hub       *localfleet.Cluster
	process   *localfleet.Process
	workloads []*workload
	charts    *localfleet.ChartServer
	git       *localfleet.GitServer
}

// run runs the demo until the context ends or, with options.Once, until everything is Ready. It leaves no process and
// no file behind.
func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "chandler-demo-")
	if err != nil {
		return err
	}
	f := &fleet{out: newScreen(o.Out), dir: dir}
	defer func() {
		f.out.line("Stopping everything …")
		err = errors.Join(err, f.stop(), os.RemoveAll(dir))
	}()
	started := time.Now()
	if err := f.start(ctx, o); err != nil {
		return interrupted(ctx, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.guard(ctx, cancel)
	if err := f.register(ctx); err != nil {
		return interrupted(ctx, err)
	}
	labelled := time.Now()
	if err := f.watch(ctx, o.Timeout); err != nil {
		return interrupted(ctx, err)
	}
	if err := f.readBack(ctx); err != nil {
		return interrupted(ctx, err)
	}
	f.out.linef("All add-ons were Ready %s after the clusters were labelled; the whole demo took %s.",
		time.Since(labelled).Round(100*time.Millisecond), time.Since(started).Round(time.Second))
	if o.Teams {
		if err := f.teams(ctx, o.Timeout); err != nil {
			return interrupted(ctx, err)
		}
	}
	if o.Rollout {
		if err := f.rollout(ctx, o.Timeout); err != nil {
			return interrupted(ctx, err)
		}
	}
	if o.Once {
		f.out.line("Without --once the fleet stays, and so does a page about it: what chandler ui shows.")
		return nil
	}
	f.explain(ctx)
	<-ctx.Done()
	return interrupted(ctx, nil)
}

// guard ends the demo if one of its parts dies.
func (f *fleet) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	for _, c := range append([]*localfleet.Cluster{f.hub}, f.clusters()...) {
		go func() {
			if err := c.Wait(ctx); ctx.Err() == nil {
				cancel(err)
			}
		}()
	}
	go func() {
		select {
		case <-f.process.Done():
			cancel(f.process.Err())
		case <-ctx.Done():
		}
	}()
}

func (f *fleet) clusters() []*localfleet.Cluster {
	out := make([]*localfleet.Cluster, len(f.workloads))
	for i, w := range f.workloads {
		out[i] = w.Cluster
	}
	return out
}

// interrupted makes Ctrl-C an ordinary end. If a part has died, it returns an error that names the part.
func interrupted(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.Canceled):
		return nil
	case cause != nil && !errors.Is(cause, context.DeadlineExceeded):
		return cause
	}
	return err
}

// start starts all clusters in parallel, and then Flux, Kamaji and the hub on the management cluster.
func (f *fleet) start(ctx context.Context, o options) error {
	f.out.line("Starting a management cluster and three workload clusters, all as processes of this machine: the real programs, but for")
	f.out.line("nodes, which kwok plays")
	f.workloads = []*workload{
		{name: "tenant1", origin: "Kamaji TenantControlPlane"},
		{name: "capi1", origin: "Cluster API Cluster"},
		{name: "edge1", origin: "kubeconfig Secret"},
	}
	starts := []func() error{func() error { return f.startHub(ctx, o) }, f.serve}
	for _, w := range f.workloads[1:] { // the first one is Kamaji's to make
		starts = append(starts, func() (err error) {
			begin := time.Now()
			w.Cluster, err = localfleet.StartCluster(ctx, localfleet.ClusterOptions{Name: w.name, Dir: f.dir, Nodes: true})
			if err == nil {
				f.out.done("workload cluster "+w.name, begin)
			}
			return err
		})
	}
	return localfleet.SideBySide(starts...)
}

func (f *fleet) startHub(ctx context.Context, o options) error {
	begin := time.Now()
	crds, err := localfleet.CRDs(parts.SourceController, parts.KustomizeController, parts.HelmController, parts.Kamaji, parts.ClusterAPI)
	if err != nil {
		return err
	}
	root, err := parts.Root()
	if err != nil {
		return err
	}
	f.hub, err = localfleet.StartCluster(ctx, localfleet.ClusterOptions{
		Name: "management", Dir: f.dir, CRDPaths: append(crds, filepath.Join(root, "config", "crd", "bases")), Scheme: hubscheme.New(),
		ControllerManager: true, NoWorkloads: true,
	})
	if err != nil {
		return err
	}
	f.out.done("management cluster", begin)
	return localfleet.SideBySide(
		func() error { return f.startTenant(ctx, f.workloads[0]) },
		func() error { return f.startControllers(ctx, o) },
	)
}

// startTenant starts Kamaji, creates a tenant, and joins a node to it.
func (f *fleet) startTenant(ctx context.Context, w *workload) error {
	begin := time.Now()
	kamaji, err := f.hub.StartKamaji(ctx, func(holder string) {
		f.out.linef("  Kamaji's port is fixed, and %s has it: waiting for that to end. Ctrl-C gives up", holder)
	})
	if err != nil {
		return err
	}
	f.out.done("Kamaji, with etcd for its tenants", begin)
	begin = time.Now()
	if err := f.hub.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	if err := kamaji.CreateTenant(ctx, namespace, w.name, localfleet.TenantOptions{}); err != nil {
		return err
	}
	if w.Cluster, err = kamaji.Tenant(ctx, namespace, w.name); err != nil {
		return err
	}
	if err := w.JoinNode(ctx); err != nil {
		return err
	}
	f.out.done("workload cluster "+w.name+", made by Kamaji", begin)
	return nil
}

// startControllers starts Flux and the hub.
func (f *fleet) startControllers(ctx context.Context, o options) error {
	begin := time.Now()
	if err := f.hub.StartFlux(ctx, localfleet.FluxOptions{}); err != nil {
		return err
	}
	f.out.done("source-, kustomize- and helm-controller", begin)
	begin = time.Now()
	binary, err := o.Hub, error(nil)
	if binary == "" {
		if binary, err = localfleet.BuildHub(ctx, f.dir); err != nil {
			return err
		}
	}
	if err := f.hub.ApplyPolicies(ctx); err != nil {
		return err
	}
	f.process, err = f.hub.StartHub(ctx, binary, "--allow-target-cidrs=127.0.0.0/8", "--secret-namespaces=fleet",
		"--deselection-delay=10s", "--log-level=info")
	if err != nil {
		return err
	}
	f.out.done("the hub", begin)
	return nil
}

// stop ends everything that was started. The hub goes first, because it would log errors about the others.
func (f *fleet) stop() error {
	if f.process != nil {
		f.process.Stop()
	}
	var workloads, rest []func() error
	for _, w := range f.workloads {
		if w.Cluster != nil {
			workloads = append(workloads, w.Stop)
		}
	}
	if f.hub != nil {
		rest = append(rest, f.hub.Stop)
	}
	if f.charts != nil {
		rest = append(rest, f.charts.Close)
	}
	if f.git != nil {
		rest = append(rest, f.git.Close)
	}
	// One after the other: a node of Kamaji's tenant lives in the management cluster's folder.
	return errors.Join(localfleet.SideBySide(workloads...), localfleet.SideBySide(rest...))
}
