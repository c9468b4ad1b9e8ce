// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const (
	writesRounds = 3
	restful      = 0.05 // of a core
)

// writesBed is a bed, and what was written there.
type writesBed struct {
	*bed
	out   io.Writer
	there int // HelmReleases that fill it
	made  int // batches so far, for their names
}

// way is one way to write an object.
type way struct {
	name string
	// small has it write an object of few fields. prepared objects are there before.
	small, prepared bool
	// watched has the hub's informers open meanwhile.
	watched bool
	write   func(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error
}

// WriteCost is what one way to write costs, at one fill: the least, the median and the most of several rounds.
type WriteCost struct {
	Way       string     `json:"way"`
	Fill      int        `json:"fill"`
	APIServer [3]float64 `json:"api_server_ms"`
	Etcd      [3]float64 `json:"etcd_ms"`
	Writer    [3]float64 `json:"writer_ms"`
	Rate      [3]float64 `json:"writes_per_s"`
}

func create(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	_, err := c.Create(ctx, o, metav1.CreateOptions{FieldManager: "bench"})
	return err
}

func remove(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	return c.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
}

func apply(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	_, err := c.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "bench", Force: true})
	return err
}

func reapply(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	if err := unstructured.SetNestedField(o.Object, "changed", "spec", "values", "color"); err != nil {
		return err
	}
	return apply(ctx, c, o)
}

func patch(body string, sub ...string) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
	return func(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error {
		_, err := c.Patch(ctx, o.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "bench"}, sub...)
		return err
	}
}

const readyStatus = `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","reason":"InstallSucceeded",` +
	`"message":"applied","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

var ways = []way{
	{name: "create, few fields", small: true, write: create},
	{name: "apply, few fields", small: true, write: apply},
	{name: "create", write: create},
	{name: "apply", write: apply},
	{name: "create, with the hub's informers", watched: true, write: create},
	{name: "apply, with the hub's informers", watched: true, write: apply},
	{name: "change by apply", prepared: true, write: reapply},
	{name: "change by merge patch", prepared: true, write: patch(`{"spec":{"values":{"color":"changed"}}}`)},
	{name: "status by merge patch", prepared: true, write: patch(readyStatus, "status")},
	{name: "status by merge patch, with the hub's informers", prepared: true, watched: true, write: patch(readyStatus, "status")},
}

// benchWrites measures what the API server and etcd spend on a write, by the way it is written, with few and with many objects there. What
// counts is processor time, which hardly depends on what else the machine does; the rates do.
// fills are how many HelmReleases are there already.
func benchWrites(ctx context.Context, n int, fills []int) (err error) {
	crds, err := localfleet.FluxCRDs()
	if err != nil {
		return err
	}
	root, err := parts.Root()
	if err != nil {
		return err
	}
	bare, err := startBed(ctx, append(crds, filepath.Join(root, "config", "crd", "bases")), rawNamespace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	b := &writesBed{bed: bare, out: os.Stdout}
	return b.all(ctx, n, fills)
}

func (b *writesBed) all(ctx context.Context, n int, fills []int) error {
	var costs []*WriteCost
	for _, fill := range fills {
		if err := b.fill(ctx, fill); err != nil {
			return err
		}
		here := make([]*WriteCost, len(ways))
		rounds := make([][4][]float64, len(ways))
		for range writesRounds { // of all ways in turn, so that what changes with time changes all of them
			for i, w := range ways {
				m, err := b.measure(ctx, w, n)
				if err != nil {
					return fmt.Errorf("%s, %d objects there: %w", w.name, fill, err)
				}
				for j := range m {
					rounds[i][j] = append(rounds[i][j], m[j])
				}
			}
		}
		for i, w := range ways {
			here[i] = &WriteCost{Way: w.name, Fill: fill, APIServer: spread(rounds[i][0]), Etcd: spread(rounds[i][1]),
				Writer: spread(rounds[i][2]), Rate: spread(rounds[i][3])}
		}
		b.print(fill, here)
		costs = append(costs, here...)
	}
	line, err := json.Marshal(map[string]any{"cpus": runtime.NumCPU(), "writes": n, "costs": costs})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "%s\n", line)
	return err
}

// spread returns the least, the median and the most.
func spread(values []float64) [3]float64 {
	slices.Sort(values)
	return [3]float64{values[0], values[len(values)/2], values[len(values)-1]}
}

func (b *writesBed) print(fill int, costs []*WriteCost) {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%d HELMRELEASES THERE\tAPI SERVER\tETCD\tWRITER\tRATE (MEDIANS; LEAST TO MOST)\n", fill)
	for _, c := range costs {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f/s (%.0f to %.0f)\n", c.Way, ms(c.APIServer), ms(c.Etcd), ms(c.Writer),
			c.Rate[1], c.Rate[0], c.Rate[2])
	}
	_ = w.Flush()
}

func ms(v [3]float64) string { return fmt.Sprintf("%.2f ms (%.2f to %.2f)", v[1], v[0], v[2]) }

var releases = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}

// release returns a HelmRelease as the hub makes one, or one of few fields.
func release(name string, small bool) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"}}
	o.SetNamespace(rawNamespace)
	o.SetName(name)
	spec := map[string]any{"interval": "10m", "chartRef": map[string]any{"kind": "HelmChart", "name": "settings"}}
	o.Object["spec"] = spec
	if small {
		return o
	}
	o.SetLabels(map[string]string{
		hubv1.AddonLabel: "cert-manager", hubv1.ClusterKeyLabel: "d89def33f0a934a4", "app.kubernetes.io/managed-by": "chandler",
		"chandler.dev/addonset": "bench", "chandler.dev/cluster": name,
	})
	o.SetAnnotations(map[string]string{
		hubv1.RegistrationAnnotation: "fleet/" + name, hubv1.ClusterUIDAnnotation: "b8a9f0f2-6b60-4f1c-9e1e-3f6a2c1b7d55",
		hubv1.HashAnnotation: "2f0ffd4a5a359682", hubv1.DeliveryAnnotation: "bench-" + name, "event.toolkit.fluxcd.io/addon": "cert-manager",
		"event.toolkit.fluxcd.io/addonset": "flux-system/bench", "event.toolkit.fluxcd.io/workload-cluster": "fleet/" + name,
	})
	for k, v := range map[string]any{
		"releaseName": "cert-manager", "targetNamespace": "cert-manager", "storageNamespace": "cert-manager",
		"kubeConfig":     map[string]any{"secretRef": map[string]any{"name": name + "-kubeconfig"}},
		"driftDetection": map[string]any{"mode": "enabled"},
		"install":        map[string]any{"createNamespace": true, "strategy": map[string]any{"name": "RetryOnFailure"}},
		"upgrade":        map[string]any{"strategy": map[string]any{"name": "RetryOnFailure"}},
		"values": map[string]any{"color": "v0", "cluster": name, "region": "eu", "replicas": int64(3),
			"resources": map[string]any{"limits": map[string]any{"cpu": "100m", "memory": "128Mi"}}},
	} {
		spec[k] = v
	}
	return o
}

func (b *writesBed) fill(ctx context.Context, to int) error {
	var objects []*unstructured.Unstructured
	for ; b.there < to; b.there++ {
		objects = append(objects, release(fmt.Sprintf("there-%06d", b.there), false))
	}
	_, err := b.write(ctx, objects, create)
	return err
}

func (b *writesBed) write(ctx context.Context, objects []*unstructured.Unstructured,
	do func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error) (time.Duration, error) {
	c, begin := b.raw.client.Resource(releases).Namespace(rawNamespace), time.Now()
	err := each(rawWriters, objects, func(o *unstructured.Unstructured) error { return do(ctx, c, o) })
	return time.Since(begin), err
}

// measure writes n objects, and returns what each costs the API server, etcd and this process in milliseconds, and how many were written in
// a second.
func (b *writesBed) measure(ctx context.Context, w way, n int) (m [4]float64, err error) {
	b.made++
	objects := make([]*unstructured.Unstructured, n)
	for i := range objects {
		objects[i] = release(fmt.Sprintf("batch-%03d-%05d", b.made, i), w.small)
	}
	if w.prepared {
		if _, err := b.write(ctx, objects, apply); err != nil {
			return m, err
		}
	}
	if w.watched {
		stop, err := b.raw.watch(ctx, b.cluster.Config, hubscheme.New())
		if err != nil {
			return m, err
		}
		defer stop()
	}
	if err := b.settle(ctx); err != nil {
		return m, err
	}
	before, err := processorTime(b.cluster.Processes())
	if err != nil {
		return m, err
	}
	took, err := b.write(ctx, objects, w.write)
	if err != nil {
		return m, err
	}
	after, err := processorTime(b.cluster.Processes())
	if err != nil {
		return m, err
	}
	for i, name := range []string{parts.KubeAPIServer, parts.Etcd, thisProcess} {
		m[i] = float64((after[name] - before[name]).Microseconds()) / 1000 / float64(n)
	}
	m[3] = float64(n) / took.Seconds()
	_, err = b.write(ctx, objects, remove)
	return m, err
}

// settle waits until the API server has nothing to do any more.
func (b *writesBed) settle(ctx context.Context) error {
	const look = time.Second
	before, err := processorTime(b.cluster.Processes())
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server does not come to rest: %w", context.Cause(ctx))
		case <-time.After(look):
		}
		after, err := processorTime(b.cluster.Processes())
		if err != nil {
			return err
		}
		if float64(after[parts.KubeAPIServer]-before[parts.KubeAPIServer]) < restful*float64(look) {
			return nil
		}
		before = after
	}
}
