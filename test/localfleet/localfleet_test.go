// SPDX-License-Identifier: Apache-2.0

package localfleet_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// fleet is what the test runs on.
type fleet struct {
	hub, workload *localfleet.Cluster
	charts        *localfleet.ChartServer
	git           *localfleet.GitServer
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	log.SetLogger(logr.Discard())
	crds, err := localfleet.FluxCRDs()
	check(t, err)
	dir, scheme := t.TempDir(), hubscheme.New()
	began := time.Now()
	clusters, err := localfleet.StartClusters(t.Context(),
		localfleet.ClusterOptions{Name: "hub", Dir: dir, CRDPaths: crds, Scheme: scheme, Audit: true, ControllerManager: true},
		localfleet.ClusterOptions{Name: "workload", Dir: dir, Nodes: true},
	)
	check(t, err)
	f := &fleet{hub: clusters[0], workload: clusters[1]}
	t.Cleanup(func() {
		for _, c := range clusters {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Logf("two clusters after %s", time.Since(began).Round(time.Millisecond))
	check(t, f.hub.StartFlux(t.Context(), localfleet.FluxOptions{NoCrossNamespaceRefs: true}))
	t.Logf("Flux after %s", time.Since(began).Round(time.Millisecond))
	f.charts, err = localfleet.NewChartServer()
	check(t, err)
	f.git, err = localfleet.NewGitServer()
	check(t, err)
	t.Cleanup(func() { _, _ = f.charts.Close(), f.git.Close() })
	return f
}

// TestFleet has Flux on one cluster deliver to another, as the hub will have it do.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the parts that `make tools` builds")
	}
	f := startFleet(t)
	f.publish(t, "1.0.0")
	f.commit(t, "one")
	f.deliver(t)
	t.Run("objects arrive", func(t *testing.T) { f.wantData(t, "1.0.0", "one") })
	t.Run("pods run", f.wantRunning)
	t.Run("changes arrive", func(t *testing.T) {
		f.publish(t, "1.1.0")
		f.commit(t, "two")
		f.wantData(t, "1.1.0", "two")
	})
	t.Run("an API server goes and comes back", f.wantRestarted)
	t.Run("no part has ended unasked", f.wantAlive)
	t.Run("in parallel", func(t *testing.T) { // they wait for time to pass
		t.Run("a namespace is finally deleted", f.wantNamespaceGone)
		t.Run("a token can be revoked", f.wantRevoked)
		t.Run("writes are counted", f.wantWrites)
	})
}

// publish makes a version of a chart with a Deployment, and a ConfigMap that tells the version.
func (f *fleet) publish(t *testing.T, version string) {
	t.Helper()
	check(t, f.charts.Publish(fstest.MapFS{
		"web/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: web\nkubeVersion: '>=1.30.0-0'\nversion: " + version + "\n")},
		"web/values.yaml": {Data: []byte("replicas: 1\n")},
		"web/templates/all.yaml": {Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: from-helm}
data: {version: {{ .Chart.Version }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.org/web}]}
`)},
	}, "web"))
}

func (f *fleet) commit(t *testing.T, color string) {
	t.Helper()
	_, err := f.git.Commit("fleet", map[string]string{
		"base/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git, namespace: default}\ndata: {color: " + color + "}\n",
	})
	check(t, err)
}

// deliver creates the sources, the kubeconfig Secret and the two objects that use them on the hub.
func (f *fleet) deliver(t *testing.T) {
	t.Helper()
	kubeconfig, err := f.workload.Kubeconfig("kubernetes-admin", "system:masters")
	check(t, err)
	minute := metav1.Duration{Duration: time.Minute}
	second := metav1.Duration{Duration: time.Second}
	target := &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: "workload", Key: "value"}}
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: localfleet.FluxNamespace, Name: name}
	}
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: named("workload"), Data: map[string][]byte{"value": kubeconfig}},
		&sourcev1.HelmRepository{ObjectMeta: named("charts"), Spec: sourcev1.HelmRepositorySpec{URL: f.charts.URL(), Interval: second}},
		&sourcev1.HelmChart{ObjectMeta: named("web"), Spec: sourcev1.HelmChartSpec{
			Chart: "web", Version: "1.x", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: "HelmRepository", Name: "charts"}, Interval: second,
		}},
		&sourcev1.GitRepository{ObjectMeta: named("fleet"), Spec: sourcev1.GitRepositorySpec{
			URL: f.git.URL("fleet"), Interval: second, Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		}},
		&helmv2.HelmRelease{ObjectMeta: named("web"), Spec: helmv2.HelmReleaseSpec{
			KubeConfig: target, Interval: minute, ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "HelmChart", Name: "web"},
			TargetNamespace: "web", StorageNamespace: "web", Install: &helmv2.Install{CreateNamespace: true},
		}},
		&kustomizev1.Kustomization{ObjectMeta: named("fleet"), Spec: kustomizev1.KustomizationSpec{
			KubeConfig: target, Interval: minute, Path: "./base", Prune: true,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"},
		}},
	} {
		if err := f.hub.Client.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T: %v", obj, err)
		}
	}
}

// wantData waits until both add-ons on the workload cluster tell what is expected.
func (f *fleet) wantData(t *testing.T, version, color string) {
	for _, want := range []struct{ namespace, name, key, value string }{
		{"web", "from-helm", "version", version}, {"default", "from-git", "color", color},
	} {
		soon(t, want.name+" on the workload cluster", func(ctx context.Context) error {
			cm := &corev1.ConfigMap{}
			if err := f.workload.Client.Get(ctx, client.ObjectKey{Namespace: want.namespace, Name: want.name}, cm); err != nil {
				return err
			}
			if got := cm.Data[want.key]; got != want.value {
				return fmt.Errorf("%s is %q, want %q", want.key, got, want.value)
			}
			return nil
		})
	}
}

// wantRunning scales a Deployment, and waits for its pods and then for Helm, which waits for them too.
func (f *fleet) wantRunning(t *testing.T) {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "web"}}
	// Helm makes a release's objects one after the other: the ConfigMap can be there before the Deployment.
	soon(t, "the Deployment is scaled", func(ctx context.Context) error {
		return f.workload.Client.Patch(ctx, web, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`)))
	})
	soon(t, "two available replicas", func(ctx context.Context) error {
		if err := f.workload.Client.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		if web.Status.AvailableReplicas != 2 || web.Status.ObservedGeneration < web.Generation {
			return fmt.Errorf("status is %+v", web.Status)
		}
		return nil
	})
	release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: localfleet.FluxNamespace, Name: "web"}}
	soon(t, "the HelmRelease is Ready", func(ctx context.Context) error {
		if err := f.hub.Client.Get(ctx, client.ObjectKeyFromObject(release), release); err != nil {
			return err
		}
		for _, c := range release.Status.Conditions {
			if c.Type == meta.ReadyCondition && c.Status == metav1.ConditionTrue && c.ObservedGeneration == release.Generation {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", release.Status.Conditions)
	})
}

func (f *fleet) wantNamespaceGone(t *testing.T) {
	t.Parallel()
	clusters := []*localfleet.Cluster{f.hub, f.workload}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	for _, c := range clusters {
		check(t, c.Client.Create(t.Context(), ns.DeepCopy()))
		check(t, c.Client.Delete(t.Context(), ns))
	}
	for _, c := range clusters {
		soon(t, "the namespace is gone from "+c.Name, func(ctx context.Context) error {
			err := c.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns)
			if err == nil {
				return fmt.Errorf("it is %s", ns.Status.Phase)
			}
			return client.IgnoreNotFound(err)
		})
	}
}

func (f *fleet) wantRestarted(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "from-git"}}
	f.workload.StopAPIServer()
	if err := f.workload.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("want the connection refused, got %v", err)
	}
	check(t, f.workload.StartAPIServer(t.Context()))
	check(t, f.workload.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
}

func (f *fleet) wantAlive(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []*localfleet.Cluster{f.hub, f.workload} {
		if err := c.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func (f *fleet) wantWrites(t *testing.T) {
	t.Parallel()
	config := *f.hub.Config
	config.UserAgent = "counted"
	c, err := client.New(&config, client.Options{})
	check(t, err)
	began := time.Now()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "counted"}}
	check(t, c.Create(t.Context(), cm))
	check(t, c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)) // not a write
	check(t, c.Delete(t.Context(), cm))
	writes, err := f.hub.Writes("counted", began)
	check(t, err)
	if len(writes) != 2 || writes[0].Verb != "create" || writes[1].Verb != "delete" {
		t.Errorf("want a create and a delete, got %d writes: %v", len(writes), writes)
	}
}

func (f *fleet) wantRevoked(t *testing.T) {
	t.Parallel()
	kubeconfig, err := f.workload.TokenKubeconfig(t.Context(), "rotated")
	check(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	check(t, err)
	c, err := client.New(config, client.Options{})
	check(t, err)
	nodes := &corev1.NodeList{}
	check(t, c.List(t.Context(), nodes))
	if len(nodes.Items) == 0 {
		t.Error("the cluster has no nodes")
	}
	check(t, f.workload.Revoke(t.Context(), "rotated"))
	soon(t, "the token is refused", func(ctx context.Context) error {
		if err := c.List(ctx, nodes); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("want Unauthorized, got %v", err)
		}
		return nil
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is far more than anything takes here, also where much else runs.
const patience = 4 * time.Minute

// soon waits until f returns nil, and logs how long that took.
func soon(t *testing.T, what string, f func(context.Context) error) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		// The last error before the deadline says more than the deadline.
		err := f(ctx)
		if err == nil {
			t.Logf("%s after %s", what, time.Since(began).Round(10*time.Millisecond))
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, patience, last)
		case <-tick.C:
		}
	}
}
