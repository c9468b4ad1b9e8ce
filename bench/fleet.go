// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/test/facade"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const (
	clusters = "fleet"       // the namespace of the registrations
	sets     = "flux-system" // that of the set, and of all that is made
)

// fleet is all running parts of a bench.
type fleet struct {
	dir        string
	management *localfleet.Cluster
	workload   *localfleet.Cluster
	facade     *facade.Facade
	observer   *observer
	unwatch    context.CancelFunc
	hub        *hub
	charts     *localfleet.ChartServer // only where Flux is there, as git
	git        *localfleet.GitServer
	// probeInterval is the hub's.
	probeInterval time.Duration
}

// hub is the process that the bench measures.
type hub struct {
	process        *localfleet.Process
	started        time.Time
	binary         string
	metrics, pprof string
	pause          time.Duration // between two scrapes
}

func startFleet(ctx context.Context, p Parameters) (_ *fleet, err error) {
	dir, err := os.MkdirTemp("", "chandler-bench-")
	if err != nil {
		return nil, err
	}
	f := &fleet{dir: dir, hub: &hub{pause: max(250*time.Millisecond, time.Duration(p.Clusters)*time.Millisecond/4)}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	if f.hub.binary, err = localfleet.BuildHub(ctx, dir); err != nil {
		return nil, err
	}
	crds, err := localfleet.FluxCRDs()
	if err != nil {
		return nil, err
	}
	root, err := parts.Root()
	if err != nil {
		return nil, err
	}
	started, err := localfleet.StartClusters(ctx,
		localfleet.ClusterOptions{Name: "management", Dir: dir, CRDPaths: append(crds, filepath.Join(root, "config", "crd", "bases")),
			Scheme: hubscheme.New()},
		localfleet.ClusterOptions{Name: "workload", Dir: dir, Scheme: hubscheme.New()})
	if err != nil {
		return nil, err
	}
	f.management, f.workload = started[0], started[1]
	for _, ns := range []string{clusters, sets, rawNamespace} {
		if err := f.management.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			return nil, err
		}
	}
	if f.facade, err = facade.New(f.workload.Config); err != nil {
		return nil, err
	}
	if p.Flux {
		if err := f.startFlux(ctx); err != nil {
			return nil, err
		}
	}
	watching, unwatch := context.WithCancel(ctx)
	f.unwatch = unwatch
	if f.observer, err = observe(watching, f.management.Config, kinds, hubv1.ClusterLabel); err != nil {
		return nil, err
	}
	f.probeInterval = p.ProbeInterval.Duration
	return f, f.startHub(ctx)
}

func (f *fleet) startHub(ctx context.Context) error {
	if err := f.hub.listen(); err != nil {
		return err
	}
	return f.launch(ctx, f.hub)
}

// listen chooses the addresses of the next process.
func (h *hub) listen() (err error) {
	if h.metrics, err = freeAddress(); err != nil {
		return err
	}
	h.pprof, err = freeAddress()
	return err
}

// launch starts a process of the hub, at the addresses that were chosen, and waits until it is ready. Later arguments count.
func (f *fleet) launch(ctx context.Context, h *hub, args ...string) (err error) {
	h.started = time.Now()
	h.process, err = f.management.StartHub(ctx, h.binary, append([]string{
		"--allow-target-cidrs=127.0.0.0/8", "--secret-namespaces=" + clusters, "--deselection-delay=1s", "--removal-delay=1s",
		"--probe-interval=" + f.probeInterval.String(), "--metrics-bind-address=" + h.metrics, "--pprof-bind-address=" + h.pprof,
	}, args...)...)
	return err
}

func freeAddress() (string, error) {
	port, err := localfleet.FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

func (f *fleet) stop() error {
	var errs []error
	if f.hub.process != nil {
		f.hub.process.Stop()
	}
	if f.unwatch != nil {
		f.unwatch()
	}
	for _, c := range []*localfleet.Cluster{f.management, f.workload} {
		if c != nil {
			errs = append(errs, c.Stop())
		}
	}
	if f.facade != nil {
		f.facade.Close()
	}
	if f.charts != nil {
		errs = append(errs, f.charts.Close(), f.git.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(f.dir))...)
}

// names returns the names of n clusters.
func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return out
}

// admit creates the Secrets of clusters, with the label if they are to be registered at once.
func (f *fleet) admit(ctx context.Context, names []string, labels map[string]string) error {
	return each(16, names, func(name string) error {
		kubeconfig, err := f.facade.KubeConfig(name)
		if err != nil {
			return err
		}
		return f.management.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: clusters, Name: name, Labels: labels}, Data: map[string][]byte{"value": kubeconfig},
		})
	})
}

func labels() map[string]string {
	return map[string]string{hubv1.RegisterLabel: "true", "fleet": "yes", "region": "eu"}
}

// register labels a cluster.
func (f *fleet) register(ctx context.Context, name string) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusters, Name: name}}
	return f.management.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true","fleet":"yes","region":"eu"}}}`, hubv1.RegisterLabel)))
}

// reachable waits until n registrations are Reachable.
func (f *fleet) reachable(ctx context.Context, n int) error {
	for {
		list := &hubv1.ClusterRegistrationList{}
		if err := f.management.Client.List(ctx, list); err != nil {
			return err
		}
		answering := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == hubv1.ReachableCondition && c.Status == metav1.ConditionTrue {
					answering++
				}
			}
		}
		if answering >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d clusters are reachable: %w", answering, n, context.Cause(ctx))
		case <-time.After(max(time.Second, time.Duration(n)*time.Millisecond)): // it reads the whole fleet
		}
	}
}

// each calls a function for every item, with the given number of workers, and returns the first error.
func each[T any](workers int, items []T, do func(T) error) error {
	return eachIndex(workers, len(items), func(i int) error { return do(items[i]) })
}

// eachIndex calls a function for every index below n, with the given number of workers, and returns the first error.
func eachIndex(workers, n int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(workers)
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}
