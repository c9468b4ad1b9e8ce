// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests: a real management cluster with real Flux controllers and the hub's own binary, and
// real workload API servers. What a test asserts is what a user sees, read back from the workload cluster where it is about
// that.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/localfleet"
	"github.com/chandler-hub/chandler/internal/localfleet/parts"
)

var (
	scheme    = runtime.NewScheme()
	workDir   string
	hubBinary string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, hubv1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme, sourcev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "chandler-e2e-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	workDir = dir
	if hubBinary, err = localfleet.BuildHub(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stopShared()
	code := m.Run()
	if code == 0 && everyTestRan() {
		code = rights.compare()
	}
	return code
}

// hub is a management cluster with the hub on it.
type hub struct {
	*localfleet.Cluster
	args       []string
	kubeconfig string // another way for the hub to its API server; empty for none
	process    *localfleet.Process
}

// hubArgs make the hub quick enough for a test, and let it reach loopback.
var hubArgs = []string{"--allow-target-cidrs=127.0.0.0/8", "--secret-namespaces=*", "--unregister-delay=1s", "--chart-retention=1s", "--probe-interval=5s"}

type hubOptions struct {
	name     string
	flux     *localfleet.FluxOptions // nil: Flux's CRDs, and no controllers
	origins  bool                    // Kamaji's and Cluster API's CRDs
	args     []string
	noHub    bool
	managers bool
}

func startHub(t *testing.T, o hubOptions) *hub {
	t.Helper()
	crds, err := localfleet.FluxCRDs()
	check(t, err)
	crds = append(crds, filepath.Join("..", "config", "crd", "bases"))
	if o.origins {
		more, err := localfleet.CRDs(parts.Kamaji, parts.ClusterAPI)
		check(t, err)
		crds = append(crds, more...)
	}
	c, err := localfleet.StartCluster(t.Context(), localfleet.ClusterOptions{
		Name: o.name, Dir: workDir, CRDPaths: crds, Scheme: scheme, Audit: true, ControllerManager: o.managers,
	})
	check(t, err)
	h := &hub{Cluster: c, args: o.args}
	for _, arg := range hubArgs {
		flag, _, _ := strings.Cut(arg, "=")
		if !slices.ContainsFunc(o.args, func(own string) bool { return strings.HasPrefix(own, flag+"=") }) {
			h.args = append(h.args, arg)
		}
	}
	t.Cleanup(func() {
		if h.process != nil {
			h.process.Stop()
		}
		rights.collect(t, c)
		if err := c.Stop(); err != nil {
			t.Logf("stop %s: %v", o.name, err)
		}
	})
	if o.flux != nil {
		check(t, c.StartFlux(t.Context(), *o.flux))
	} else {
		check(t, client.IgnoreAlreadyExists(c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flux-system"}})))
	}
	t.Cleanup(func() {
		if t.Failed() {
			h.dump(t)
		}
	})
	if !o.noHub {
		h.start(t)
	}
	return h
}

func (h *hub) start(t *testing.T) {
	t.Helper()
	// Not t.Context(): the hub must outlive it for the dump.
	start := func() (*localfleet.Process, error) { return h.StartHub(t.Context(), hubBinary, h.args...) }
	if h.kubeconfig != "" {
		start = func() (*localfleet.Process, error) {
			return h.StartHubThrough(t.Context(), h.kubeconfig, hubBinary, h.args...)
		}
	}
	p, err := start()
	check(t, err)
	h.process = p
}

func (h *hub) stop() {
	h.process.Stop()
	h.process = nil
}

// serve starts a server of charts, with the chart settings, and one of Git repositories. They end with the test.
func serve(t *testing.T) (*localfleet.ChartServer, *localfleet.GitServer) {
	t.Helper()
	charts, err := localfleet.NewChartServer()
	check(t, err)
	git, err := localfleet.NewGitServer()
	check(t, err)
	t.Cleanup(func() { _, _ = charts.Close(), git.Close() })
	check(t, charts.Publish(os.DirFS("testdata"), "charts/settings"))
	return charts, git
}

// workload clusters are shared by all tests: they start slowly, and tests use namespaces of their own.
var shared struct {
	mu       sync.Mutex
	clusters map[string]*localfleet.Cluster
}

func workload(t *testing.T, name string) *localfleet.Cluster {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if c := shared.clusters[name]; c != nil {
		return c
	}
	c, err := localfleet.StartCluster(context.Background(), localfleet.ClusterOptions{Name: name, Dir: workDir, Scheme: scheme, ControllerManager: true, Nodes: name == "with-nodes"})
	check(t, err)
	if shared.clusters == nil {
		shared.clusters = map[string]*localfleet.Cluster{}
	}
	shared.clusters[name] = c
	return c
}

func stopShared() {
	for _, c := range shared.clusters {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon waits until f returns nil. It is the only way in which these tests wait.
func soon(t *testing.T, what string, f func() error) {
	t.Helper()
	within(t, 90*time.Second, what, f)
}

func within(t *testing.T, limit time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		case <-tick.C:
		}
	}
}

// apply creates or updates every object of some YAML, with server-side apply, as `kubectl apply --server-side` does.
func apply(t *testing.T, c client.Client, text string) {
	t.Helper()
	check(t, applyAll(t.Context(), c, text))
}

func applyAll(ctx context.Context, c client.Client, text string) error {
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		raw := runtime.RawExtension{}
		if err := d.Decode(&raw); err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return err
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil { // not into a map, which would round large numbers
			return err
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
}

func namespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	check(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
}

// configMap returns the data of a ConfigMap on a cluster.
func configMap(ctx context.Context, c *localfleet.Cluster, namespace, name string) (map[string]string, error) {
	cm := &corev1.ConfigMap{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)
	return cm.Data, err
}

func wantData(ctx context.Context, c *localfleet.Cluster, namespace, name, key, value string) error {
	data, err := configMap(ctx, c, namespace, name)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	if data[key] != value {
		return fmt.Errorf("%s: %s of ConfigMap %s/%s is %q, want %q", c.Name, key, namespace, name, data[key], value)
	}
	return nil
}

func wantGone(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%T %s is still there", obj, obj.GetName())
	}
	return err
}

func wantNoConfigMap(ctx context.Context, c *localfleet.Cluster, namespace, name string) error {
	return wantGone(ctx, c.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// condition returns an error unless an object's condition has a status; reason may be empty.
func condition(ctx context.Context, c client.Client, obj client.Object, typ string, status metav1.ConditionStatus, reason string) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	conditions, generation := conditionsOf(obj)
	for _, cond := range conditions {
		if cond.Type != typ {
			continue
		}
		if cond.Status != status || reason != "" && cond.Reason != reason || generation < obj.GetGeneration() {
			return fmt.Errorf("%s %s is %s (%s: %s) at generation %d of %d, want %s %s", obj.GetName(), typ, cond.Status, cond.Reason, cond.Message, generation, obj.GetGeneration(), status, reason)
		}
		return nil
	}
	return fmt.Errorf("%s has no condition %s", obj.GetName(), typ)
}

func conditionsOf(obj client.Object) ([]metav1.Condition, int64) {
	switch o := obj.(type) {
	case *hubv1.ClusterRegistration:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *hubv1.AddonSet:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *hubv1.AddonDelivery:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *kustomizev1.Kustomization:
		return o.Status.Conditions, o.Status.ObservedGeneration
	}
	return nil, 0
}

func registration(namespace, name string) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func addonSet(namespace, name string) *hubv1.AddonSet {
	return &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// ours lists every object on the hub that the hub made, in all namespaces, as kind namespace/name.
func ours(ctx context.Context, c client.Client) ([]string, error) {
	var out []string
	for kind, gv := range map[string]string{
		"ClusterRegistration": "chandler.dev/v1alpha1", "AddonDelivery": "chandler.dev/v1alpha1", "ControllerRevision": "apps/v1",
		"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Kustomization": "kustomize.toolkit.fluxcd.io/v1", "HelmChart": "source.toolkit.fluxcd.io/v1",
		"HelmRepository": "source.toolkit.fluxcd.io/v1", "GitRepository": "source.toolkit.fluxcd.io/v1", "Secret": "v1",
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: kind + "List"}}
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if kind == "ClusterRegistration" || o.Labels["app.kubernetes.io/managed-by"] == "chandler" {
				out = append(out, fmt.Sprintf("%s %s/%s", kind, o.Namespace, o.Name))
			}
		}
	}
	return out, nil
}

func wantNothingOfOurs(ctx context.Context, c client.Client) error {
	left, err := ours(ctx, c)
	if err == nil && len(left) > 0 {
		err = errors.New("left on the hub: " + strings.Join(left, ", "))
	}
	return err
}
