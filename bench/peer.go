// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// peer is another project's controller that makes objects for each cluster of a fleet. What is measured of it is what
// the hub does as well: the objects on the management cluster, and not what comes of them on the clusters.
type peer struct {
	// made are the kinds of what it makes for each cluster, and label has the cluster's name there.
	made  []schema.GroupVersionResource
	label string
	// crds are parts of the local fleet whose CRDs it needs beside its own.
	crds []string
	// args returns its arguments, and env its environment; dir is a folder for its files.
	args func(dir string) ([]string, error)
	env  []string
	// input returns the object that stands for a cluster, and inputs is its kind. rules returns what sends add-ons to all
	// of them; the color is a value of the first one.
	input  func(name string) *unstructured.Unstructured
	inputs schema.GroupVersionResource
	rules  func(addons int, color string) []*unstructured.Unstructured
}

// peers are those that can be measured, by name.
func peers() map[string]peer {
	return map[string]peer{"resourceset": resourceSet(), "caaph": addonProvider()}
}

// PeerOptions say which peer to measure. Its binary and its CRDs come from a checkout of its own (README.md).
type PeerOptions struct {
	Name, Binary, CRDs, Args string
}

// peerFlags are the flags that say which.
func peerFlags() *PeerOptions {
	o := &PeerOptions{}
	flag.StringVar(&o.Name, "peer", "",
		"measure another project's controller instead: "+strings.Join(slices.Sorted(maps.Keys(peers())), " or ")+" (README.md)")
	flag.StringVar(&o.Binary, "peer-binary", "", "with -peer: its binary, from a checkout of its own")
	flag.StringVar(&o.CRDs, "peer-crds", "", "with -peer: the folder of its CRDs")
	flag.StringVar(&o.Args, "peer-args", "", "with -peer: more arguments for it, separated by spaces")
	return o
}

// PeerResult is what was measured of a peer. Times are in seconds, and rates in objects a second.
type PeerResult struct {
	Parameters
	Peer           string  `json:"peer"`
	CPUs           int     `json:"cpus"`
	FanoutSeconds  float64 `json:"fanout_s"`
	RawPerSecond   float64 `json:"raw_per_s"`
	FanoutRatio    float64 `json:"fanout_ratio"`
	NewClusterP50  float64 `json:"new_cluster_p50_s"`
	NewClusterMost float64 `json:"new_cluster_max_s"`
	ChangeSeconds  float64 `json:"change_s"`
}

// peerRun is one measurement of a peer.
type peerRun struct {
	peer
	*bed
	p        Parameters
	observer *observer
	result   PeerResult
}

const (
	peerArrivals = 10
	peerLog      = "peer.log"
)

// benchPeer starts an API server and a peer, and measures it.
func benchPeer(ctx context.Context, out io.Writer, p Parameters, o PeerOptions) (err error) {
	kind, ok := peers()[o.Name]
	if !ok {
		return fmt.Errorf("-peer=%s: there are %s", o.Name, strings.Join(slices.Sorted(maps.Keys(peers())), ", "))
	}
	crds, err := localfleet.CRDs(kind.crds...)
	if err != nil {
		return err
	}
	bare, err := startBed(ctx, append(crds, o.CRDs), sets, rawNamespace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	r := &peerRun{peer: kind, bed: bare, p: p, result: PeerResult{Parameters: p, Peer: o.Name, CPUs: runtime.NumCPU()}}
	if r.observer, err = observe(watching, bare.cluster.Config, kind.made, kind.label); err != nil {
		return err
	}
	stop, err := r.start(ctx, o)
	if err != nil {
		return err
	}
	if err := errors.Join(r.measure(ctx), stop()); err != nil {
		log, _ := os.ReadFile(filepath.Join(r.dir, peerLog)) // the first error says more
		return errors.Join(err, fmt.Errorf("the end of the peer's log:\n%s", log[max(0, len(log)-4000):]))
	}
	if err := r.bare(ctx); err != nil {
		return err
	}
	return r.result.write(out)
}

// start starts the peer. What it returns stops it.
func (r *peerRun) start(ctx context.Context, o PeerOptions) (stop func() error, err error) {
	args, err := r.args(r.dir)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(r.dir, peerLog))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, o.Binary, append(args, strings.Fields(o.Args)...)...)
	cmd.Env = slices.Concat(os.Environ(), []string{"KUBECONFIG=" + r.cluster.KubeconfigFile()}, r.env)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, r.dir
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 30*time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, errors.Join(err, log.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return func() error {
		defer cancel()
		select {
		case err := <-ended:
			return errors.Join(fmt.Errorf("%s ended by itself: %w", o.Binary, err), log.Close())
		default:
		}
		cancel()
		err := <-ended // context.Canceled if the peer ends with 0 (exec.Cmd.Wait), and otherwise with what it ends
		if exit := new(exec.ExitError); err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &exit) {
			return errors.Join(err, log.Close())
		}
		return log.Close()
	}, nil
}

// measure has the fleet get its add-ons, clusters come one after the other, and one add-on change everywhere.
func (r *peerRun) measure(ctx context.Context) error {
	for _, name := range names("c", r.p.Clusters) {
		if err := r.admit(ctx, name); err != nil {
			return err
		}
	}
	objects := r.p.Clusters * r.p.Addons
	begin := time.Now()
	if err := r.applyRules(ctx, "v0"); err != nil {
		return err
	}
	if err := r.observer.until(ctx, "fan-out", func() bool { return r.observer.count() >= objects }); err != nil {
		return err
	}
	r.result.FanoutSeconds = r.observer.last().Sub(begin).Seconds()
	var took []float64
	for _, name := range names("one", peerArrivals) {
		begin := time.Now()
		if err := r.admit(ctx, name); err != nil {
			return err
		}
		served := func() bool { _, ok := r.observer.complete(name, r.p.Addons); return ok }
		if err := r.observer.until(ctx, name+" has its objects", served); err != nil {
			return err
		}
		last, _ := r.observer.complete(name, r.p.Addons)
		took = append(took, last.Sub(begin).Seconds())
	}
	r.result.NewClusterP50, r.result.NewClusterMost = percentile(took, 0.5), slices.Max(took)
	there := r.observer.changes()
	begin = time.Now()
	if err := r.applyRules(ctx, "v1"); err != nil {
		return err
	}
	all := there + r.p.Clusters + peerArrivals
	if err := r.observer.until(ctx, "a change everywhere", func() bool { return r.observer.changes() >= all }); err != nil {
		return err
	}
	r.result.ChangeSeconds = r.observer.last().Sub(begin).Seconds()
	return nil
}

// admit creates the object that stands for a cluster, with its status.
func (r *peerRun) admit(ctx context.Context, name string) error {
	o := r.input(name)
	status := o.Object["status"]
	if err := r.cluster.Client.Create(ctx, o); err != nil || status == nil {
		return err
	}
	o.Object["status"] = status
	return r.cluster.Client.Status().Update(ctx, o)
}

func (r *peerRun) applyRules(ctx context.Context, color string) error {
	for _, o := range r.rules(r.p.Addons, color) {
		//nolint:staticcheck // Apply of the typed client wants an apply configuration, which these kinds do not have.
		if err := r.cluster.Client.Patch(ctx, o, client.Apply, client.FieldOwner("bench"), client.ForceOwnership); err != nil {
			return err
		}
	}
	return nil
}

// bare has a bare client write what the peer made into another namespace, with informers for the same kinds.
func (r *peerRun) bare(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(r.raw.client, 0, sets, nil)
	for _, kind := range append(slices.Clone(r.made), r.inputs) {
		factory.ForResource(kind).Informer()
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("watch %s: %w", kind, context.Cause(ctx))
		}
	}
	var objects []manifest
	for _, kind := range r.made {
		some := metav1.ListOptions{Limit: int64(sampled(r.p.Clusters*r.p.Addons) / len(r.made))}
		list, err := r.raw.client.Resource(kind).Namespace(sets).List(ctx, some)
		if err != nil {
			return err
		}
		for i := range list.Items {
			objects = append(objects, manifest{kind, bareCopy(&list.Items[i])})
		}
	}
	var err error
	if r.result.RawPerSecond, err = r.raw.apply(ctx, objects); err != nil {
		return err
	}
	r.result.FanoutRatio = float64(r.p.Clusters*r.p.Addons) / r.result.FanoutSeconds / r.result.RawPerSecond
	return nil
}

func (r *PeerResult) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "PEER\tCLUSTERS\tADD-ONS\tFAN-OUT\tOVER A BARE CLIENT\tONE MORE CLUSTER (P50; MOST)\tA CHANGE EVERYWHERE\n")
	_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%.1f s\t%.2f\t%.1f s; %.1f s\t%.1f s\n", r.Peer, r.Clusters, r.Addons, r.FanoutSeconds, r.FanoutRatio,
		r.NewClusterP50, r.NewClusterMost, r.ChangeSeconds)
	if err := w.Flush(); err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}
