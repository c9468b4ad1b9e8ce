// SPDX-License-Identifier: Apache-2.0

// Command drift measures what Flux's drift detection costs: the processor time of Flux's controllers and of both API
// servers for each check of a HelmRelease and of a Kustomization. The hub does not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandler-hub/chandler/test/localfleet"
)

const (
	kustomizeAPI = "kustomize.toolkit.fluxcd.io/v1"
	helmAPI      = "helm.toolkit.fluxcd.io/v2"
	sourceAPI    = "source.toolkit.fluxcd.io/v1"
	namespace    = localfleet.FluxNamespace
)

type options struct {
	releases, objects int
	interval, measure time.Duration
}

func main() {
	log.SetLogger(logr.Discard())
	var o options
	flag.IntVar(&o.releases, "releases", 40, "HelmReleases, and as many Kustomizations")
	flag.IntVar(&o.objects, "objects", 20, "objects of each")
	flag.DurationVar(&o.interval, "interval", 20*time.Second, "how often Flux looks")
	flag.DurationVar(&o.measure, "measure", 2*time.Minute, "how long each of the three measurements takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drift:", err)
		os.Exit(1)
	}
}

// bed is the test bed: one management cluster with Flux, one workload cluster, and the add-ons.
type bed struct {
	options
	management, workload *localfleet.Cluster
	charts               *localfleet.ChartServer
	git                  *localfleet.GitServer
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "chandler-drift-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bed{options: o}
	crds, err := localfleet.FluxCRDs()
	if err != nil {
		return err
	}
	clusters, err := localfleet.StartClusters(ctx, localfleet.ClusterOptions{Name: "management", Dir: dir, CRDPaths: crds},
		localfleet.ClusterOptions{Name: "workload", Dir: dir})
	if err != nil {
		return err
	}
	b.management, b.workload = clusters[0], clusters[1]
	defer func() { err = errors.Join(err, b.management.Stop(), b.workload.Stop()) }()
	if err := b.serve(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.charts.Close(), b.git.Close()) }()
	if err := b.management.StartFlux(ctx, localfleet.FluxOptions{}); err != nil {
		return err
	}
	if err := b.deliver(ctx); err != nil {
		return err
	}
	return b.measureAll(ctx)
}

// serve publishes a chart and a folder of ConfigMaps.
func (b *bed) serve() (err error) {
	if b.charts, err = localfleet.NewChartServer(); err != nil {
		return err
	}
	const one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"%s-%s\"}\ndata: {color: blue, text: \"what a chart's " +
		"object may hold, give or take a few hundred bytes\"}\n---\n"
	chart := fstest.MapFS{
		"many/Chart.yaml": {Data: []byte("apiVersion: v2\nname: many\nversion: 1.0.0\n")},
		"many/templates/all.yaml": {Data: fmt.Appendf(nil, "{{ range $i := until %d }}\n"+one+"{{ end }}", b.objects,
			"{{ $.Release.Name }}", "{{ $i }}")},
	}
	if err := b.charts.Publish(chart, "many"); err != nil {
		return err
	}
	if b.git, err = localfleet.NewGitServer(); err != nil {
		return err
	}
	var all strings.Builder
	for i := range b.objects {
		fmt.Fprintf(&all, one, "${name}", fmt.Sprint(i))
	}
	_, err = b.git.Commit("fleet", map[string]string{"many/all.yaml": all.String()})
	return err
}

// deliver creates the objects that the hub would create, and waits until all are Ready.
func (b *bed) deliver(ctx context.Context) error {
	kubeconfig, err := b.workload.Kubeconfig("kubernetes-admin", "system:masters")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kubeconfig"},
		Data: map[string][]byte{"value": kubeconfig}}
	if err := b.management.Client.Create(ctx, secret); err != nil {
		return err
	}
	objects := []*unstructured.Unstructured{
		object(sourceAPI, "HelmRepository", "charts", map[string]any{"url": b.charts.URL(), "interval": "1h"}),
		object(sourceAPI, "HelmChart", "many",
			map[string]any{"chart": "many", "interval": "1h", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}),
		object(sourceAPI, "GitRepository", "fleet", map[string]any{"url": b.git.URL("fleet"), "interval": "1h",
			"ref": map[string]any{"branch": "main"}}),
	}
	reference := map[string]any{"secretRef": map[string]any{"name": secret.Name}}
	for i := range b.releases {
		name := fmt.Sprintf("one-%02d", i)
		objects = append(objects,
			object(helmAPI, "HelmRelease", name, map[string]any{
				"interval": "2h", "kubeConfig": reference, "chartRef": map[string]any{"kind": "HelmChart", "name": "many"},
				"releaseName": name, "targetNamespace": "default",
				"storageNamespace": "default", "driftDetection": map[string]any{"mode": "enabled"},
			}),
			object(kustomizeAPI, "Kustomization", name, map[string]any{
				"interval": "2h", "kubeConfig": reference, "path": "./many", "prune": true, "targetNamespace": "default",
				"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"},
				"postBuild": map[string]any{"substitute": map[string]any{"name": "git-" + name}},
			}))
	}
	for _, o := range objects {
		if err := b.management.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	for _, o := range objects {
		if err := b.ready(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec,
	}}
}

func (b *bed) ready(ctx context.Context, o *unstructured.Unstructured) error {
	for ; ; time.Sleep(200 * time.Millisecond) {
		if err := b.management.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if m, _ := c.(map[string]any); m["type"] == "Ready" && m["status"] == "True" {
				return nil
			}
		}
	}
}

// every sets the interval of all objects of a kind.
func (b *bed) every(ctx context.Context, apiVersion, kind string, interval time.Duration) error {
	for i := range b.releases {
		o := object(apiVersion, kind, fmt.Sprintf("one-%02d", i), nil)
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"interval":%q}}`, interval))
		if err := b.management.Client.Patch(ctx, o, patch); err != nil {
			return err
		}
	}
	return nil
}
