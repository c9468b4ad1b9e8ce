// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests. They run a real management cluster with real Flux controllers, the hub's
// own binary, and real workload API servers. A test asserts what a user sees, and reads it back from the workload
// cluster if it is about the workload cluster.
//
// A file's name begins with its theme: registration (how a cluster comes to the hub), clusterapi, journey (the whole
// way of an add-on), delivery (what reaches a cluster, and when), removal (what leaves a cluster, and what holds it),
// faults (of clusters, of the hub's API server and of the hub), policies, install, upgrade, metrics, commandline. The
// shared code is in harness and in package expect.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

var (
	scheme    = hubscheme.New()
	workDir   string
	hubBinary string
)

// The functions that every package of end-to-end tests uses, under the names that they have in this one.
var (
	check             = expect.NoError
	soon              = expect.Soon
	within            = expect.Within
	step              = expect.Step
	apply             = expect.Apply
	applyAll          = expect.ApplyAll
	namespace         = expect.Namespace
	wantGone          = expect.Gone
	condition         = expect.Condition
	conditionOf       = expect.ConditionOf
	ours              = expect.Ours
	approveHeld       = expect.ApproveHeld
	wantNothingOfOurs = expect.NothingOfOurs
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
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
	flag.Parse()
	if n := flag.Lookup("test.parallel").Value.(flag.Getter).Get().(int); n > atOnce {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
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
	// withoutRights are the spans in which the test took the hub's rights away.
	withoutRights []span
}

// hubArgs make the hub fast enough for a test, and let it reach loopback.
var hubArgs = []string{"--allow-target-cidrs=127.0.0.0/8", "--secret-namespaces=*", "--deselection-delay=1s", "--removal-delay=1s", "--chart-retention=1s", "--probe-interval=5s"}

type hubOptions struct {
	name     string
	flux     *localfleet.FluxOptions // nil: Flux's CRDs, and no controllers
	origins  bool                    // Kamaji's and Cluster API's CRDs
	args     []string
	noHub    bool
	managers bool
	// bare starts neither the hub nor its CRDs; the test installs them. The cluster has ServiceMonitors, and a node
	// on which the hub's pods seem to run.
	bare bool
}

func startHub(t *testing.T, o hubOptions) *hub {
	t.Helper()
	crds, err := localfleet.FluxCRDs()
	check(t, err)
	if o.bare {
		more, err := localfleet.CRDs(parts.Prometheus)
		check(t, err)
		crds = append(crds, more...)
	} else {
		crds = append(crds, filepath.Join("..", "config", "crd", "bases"))
	}
	if o.origins {
		more, err := localfleet.CRDs(parts.Kamaji, parts.ClusterAPI)
		check(t, err)
		crds = append(crds, more...)
	}
	c, err := localfleet.StartCluster(t.Context(), localfleet.ClusterOptions{
		Name: o.name, Dir: workDir, CRDPaths: crds, Scheme: scheme, Audit: true, ControllerManager: o.managers, Nodes: o.bare,
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
		rights.collect(t, h)
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
	if !o.noHub && !o.bare {
		h.start(t)
	}
	return h
}

// installCRDs installs CRDs that the hub finds only after it has started. envtest itself would give the API server
// only ten seconds.
func installCRDs(t *testing.T, h *hub, paths ...string) {
	t.Helper()
	_, err := envtest.InstallCRDs(h.Config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: expect.Patience})
	check(t, err)
}

func (h *hub) start(t *testing.T) {
	t.Helper()
	// This is not t.Context(), because the hub must outlive it for the dump.
	var err error
	if h.kubeconfig == "" {
		h.process, err = h.StartHub(t.Context(), hubBinary, h.args...)
	} else {
		h.process, err = h.RunHub(t.Context(), localfleet.HubOptions{Binary: hubBinary, Kubeconfig: h.kubeconfig, Args: h.args})
	}
	check(t, err)
}

func (h *hub) stop() {
	h.process.Stop()
	h.process = nil
}

// reconcileNow has Flux reconcile what the hub delivers to some clusters, as `flux reconcile` does. The intervals of these tests are an
// hour: Flux, when it looks every few seconds, and the API server that stores its statuses take most of a test's processor time.
func (h *hub) reconcileNow(ctx context.Context, clusters ...string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation,
		time.Now().Format(time.RFC3339Nano)))
	for _, kind := range []string{"HelmRelease", "Kustomization"} {
		list := fluxObjects(kind)
		if err := h.Client.List(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			if !slices.Contains(clusters, list.Items[i].Labels[hubv1.ClusterLabel]) {
				continue
			}
			if err := h.Client.Patch(ctx, &list.Items[i], patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// fluxObjects returns an empty list for the metadata of Flux's HelmReleases or Kustomizations.
func fluxObjects(kind string) *metav1.PartialObjectMetadataList {
	gv := map[string]string{"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Kustomization": "kustomize.toolkit.fluxcd.io/v1"}[kind]
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: kind + "List"}}
}

// serve starts a server for charts, with the chart settings, and one for Git repositories. Both end with the test.
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

// atOnce is how many tests run in parallel at most, as far as -test.parallel allows. A test is a fleet of a dozen
// processes, which mostly wait, and take up to 2 GiB.
const atOnce = 4

// shared are the workload clusters. They start slowly, so tests use them one after the other, with namespaces of
// their own. Tests that run in parallel share none: each runs in a lane of its own, and each lane has its own
// clusters.
var shared struct {
	mu       sync.Mutex
	lanes    [atOnce]string // the test that is in each; empty for none
	clusters map[string]*localfleet.Cluster
}

// beside lets a test run in parallel with others. A test calls it first, so that its lane becomes free only after
// everything else of the test has ended. Tests that do not call it run alone, in the first lane, before those that
// do.
func beside(t *testing.T) {
	t.Helper()
	t.Parallel()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	lane := slices.Index(shared.lanes[:], "")
	shared.lanes[lane] = t.Name()
	t.Cleanup(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.lanes[lane] = ""
	})
}

// workload returns the workload cluster of a name in the lane of a test. The one named with-nodes has a node.
func workload(t *testing.T, name string) *localfleet.Cluster {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	shared.mu.Lock()
	key := name
	if lane := slices.Index(shared.lanes[:], test); lane > 0 {
		key = fmt.Sprintf("%s-%d", name, lane)
	}
	c := shared.clusters[key]
	shared.mu.Unlock() // a start takes a while, and the cluster is of this lane alone
	if c != nil {
		return c
	}
	c, err := localfleet.StartCluster(context.Background(), localfleet.ClusterOptions{Name: key, Dir: workDir, Scheme: scheme, ControllerManager: true, Nodes: name == "with-nodes"})
	check(t, err)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.clusters == nil {
		shared.clusters = map[string]*localfleet.Cluster{}
	}
	shared.clusters[key] = c
	return c
}

func stopShared() {
	for _, c := range shared.clusters {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// kubeconfigOf returns the administrator's kubeconfig of a cluster.
func kubeconfigOf(t *testing.T, c *localfleet.Cluster) []byte {
	t.Helper()
	raw, err := c.Kubeconfig("kubernetes-admin", "system:masters")
	check(t, err)
	return raw
}

// register creates a labelled Secret with the administrator's kubeconfig of a cluster, so that the hub registers it.
// labels are further labels of the Secret.
func register(t *testing.T, hub client.Client, namespaceName, name string, of *localfleet.Cluster, labels map[string]string) *corev1.Secret {
	t.Helper()
	return registerBy(t, hub, namespaceName, name, kubeconfigOf(t, of), labels)
}

// registerBy registers whatever cluster a kubeconfig leads to.
func registerBy(t *testing.T, hub client.Client, namespaceName, name string, kubeconfig []byte, labels map[string]string) *corev1.Secret {
	t.Helper()
	namespace(t, hub, namespaceName)
	s := secret(namespaceName, name, map[string][]byte{"value": kubeconfig})
	s.Labels = map[string]string{hubv1.RegisterLabel: "true"}
	maps.Copy(s.Labels, labels)
	check(t, hub.Create(t.Context(), s))
	return s
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

func wantNoConfigMap(ctx context.Context, c *localfleet.Cluster, namespace, name string) error {
	return wantGone(ctx, c.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

func registration(namespace, name string) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func addonSet(namespace, name string) *hubv1.AddonSet {
	return &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// get reads a page of a process on this machine.
func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(raw), err
}
