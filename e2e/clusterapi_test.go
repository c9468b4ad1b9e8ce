// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// capiFleet is a hub beside Cluster API: its own core manager, with a small provider that gives the workload clusters out.
type capiFleet struct {
	*hub
	api              *localfleet.ClusterAPI
	one, two, tenant *localfleet.Cluster
	charts           *localfleet.ChartServer
	color            string // of the set for plain Clusters
	leaving          *running
	theirs           string // what was Cluster API's before
}

// capiSet delivers a chart and manifests to the Clusters that are labelled for it. $COLOR is an expression or a value.
const capiSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: $NAME, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {via: $NAME}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  addons:
    - {name: ca-chart, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: '$COLOR'}}}
    - {name: ca-objects, manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: ca-objects}, data: {pods: '<< cluster.podCIDRs[0] >>', of: << origin.metadata.name >>}}]}}
`

// plainCluster is a Cluster with its infrastructure and its control plane, as somebody without a ClusterClass writes them.
const plainCluster = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: LocalCluster
metadata: {name: $NAME, namespace: $NAMESPACE}
spec: {}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: LocalControlPlane
metadata: {name: $NAME, namespace: $NAMESPACE}
spec: {version: v1.36.3, replicas: 1}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: $NAME, namespace: $NAMESPACE, labels: {via: plain}}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.44.0.0/16]}, services: {cidrBlocks: [10.108.0.0/16]}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: LocalCluster, name: $NAME}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: LocalControlPlane, name: $NAME}
`

// TestClusterAPI follows Clusters through their life, as Cluster API itself leads it.
func TestClusterAPI(t *testing.T) {
	beside(t)
	f := startClusterAPI(t)
	step(t, "add-ons arrive when the control plane is initialized, and not before", f.initialized)
	step(t, "both versions read alike", f.bothVersions)
	step(t, "the kubeconfig is rotated", f.rotated)
	step(t, "an add-on reads a Secret beside the Cluster", f.values)
	step(t, "the Cluster is paused", f.paused)
	step(t, "clusterctl moves it", f.moved)
	step(t, "variables of a topology", f.topology)
	step(t, "a Kamaji control plane registers once", f.kamaji)
	f.unregister(t) // meanwhile others leave, and the hub is started again
	step(t, "a Cluster is deleted while there is no hub, and the kubeconfig is gone before it", f.deletedUnseen)
	step(t, "its namespace is deleted", f.namespaceDeleted)
	step(t, "one was unregistered by a command, and comes back", f.unregistered)
	step(t, "it is deleted, while the hub looks", f.deleted)
	step(t, "it is drained before it is deleted", f.drained)
}

func startClusterAPI(t *testing.T) *capiFleet {
	ctx := t.Context()
	f := &capiFleet{one: workload(t, "workload-a"), two: workload(t, "workload-b"), tenant: workload(t, "workload-c")}
	f.hub = startHub(t, hubOptions{
		name: "hub-capi", flux: &localfleet.FluxOptions{}, origins: true, managers: true, noHub: true, args: []string{"--probe-interval=2s", "--removal-delay=1s"},
	})
	var err error
	f.api, err = f.StartClusterAPI(ctx)
	check(t, err)
	f.start(t)
	f.charts, _ = serve(t)
	raw, err := os.ReadFile(filepath.Join("..", "config", "policies", "origins.yaml"))
	check(t, err)
	apply(t, f.Client, string(raw))
	f.paint(t, "blue")
	return f
}

// set is a set for the Clusters with a label.
func (f *capiFleet) set(name, color string) string {
	return strings.NewReplacer("$NAME", name, "$COLOR", color, "$CHARTS", f.charts.URL()).Replace(capiSet)
}

// paint changes what plain Clusters get.
func (f *capiFleet) paint(t *testing.T, color string) {
	t.Helper()
	f.color = color
	apply(t, f.Client, f.set("plain", color))
}

// create applies a Cluster, and what belongs to it, in a namespace of its own name.
func (f *capiFleet) create(t *testing.T, name, text string) {
	t.Helper()
	namespace(t, f.Client, name)
	text = strings.NewReplacer("$NAMESPACE", name, "$NAME", name).Replace(text)
	// Its webhooks refuse a Cluster until they know its class.
	soon(t, "Cluster "+name+" is accepted", func() error { return applyAll(t.Context(), f.Client, text) })
}

// capiObject returns an object to read or to patch; each has the name of its namespace.
func capiObject(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": name, "name": name}}}
}

func capiClusterOf(name string) *unstructured.Unstructured {
	return capiObject("cluster.x-k8s.io/v1beta2", "Cluster", name)
}

func (f *capiFleet) register(t *testing.T, name string) {
	t.Helper()
	check(t, patched(capiClusterOf(name), `{"metadata":{"labels":{"chandler.dev/register":"true"}}}`)(t.Context(), f.Client))
}

// delivered wants both add-ons in the API of a workload cluster.
func (f *capiFleet) delivered(ctx context.Context, c *localfleet.Cluster, name, color string) error {
	return errors.Join(wantData(ctx, c, "ca-chart", "ca-chart", "color", color), wantData(ctx, c, "default", "ca-objects", "of", name), wantData(ctx, c, "default", "ca-objects", "pods", "10.44.0.0/16"))
}

func (f *capiFleet) undelivered(ctx context.Context, c *localfleet.Cluster) error {
	return errors.Join(wantNoConfigMap(ctx, c, "ca-chart", "ca-chart"), wantNoConfigMap(ctx, c, "default", "ca-objects"))
}

func (f *capiFleet) ready(ctx context.Context, name string) error {
	return condition(ctx, f.Client, registration(name, name), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason)
}

// reached wants a Cluster to have a boolean of status.initialization.
func (f *capiFleet) reached(ctx context.Context, c client.Client, name, field string) error {
	u := capiClusterOf(name)
	if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return err
	}
	if there, _, _ := unstructured.NestedBool(u.Object, "status", "initialization", field); !there {
		return fmt.Errorf("status.initialization of Cluster %s has no %s: %v", name, field, u.Object["status"])
	}
	return nil
}

func (f *capiFleet) initialized(t *testing.T) {
	ctx := t.Context()
	f.api.Serve("c1", "c1", f.one)
	f.create(t, "c1", strings.Replace(plainCluster, "kind: LocalControlPlane\nmetadata: {", "kind: LocalControlPlane\nmetadata: {annotations: {cluster.x-k8s.io/paused: ''}, ", 1))
	old := capiObject("cluster.x-k8s.io/v1beta1", "Cluster", "c1")
	check(t, patched(old, `{"metadata":{"labels":{"chandler.dev/register":"true"}}}`)(ctx, f.Client))
	soon(t, "its infrastructure is there", func() error { return f.reached(ctx, f.Client, "c1", "infrastructureProvisioned") })
	reg := registration("c1", "c1")
	soon(t, "the registration waits for the control plane", func() error {
		if err := condition(ctx, f.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.KubeConfigNotReadyReason); err != nil {
			return err
		}
		m := conditionOf(reg, hubv1.KubeConfigValidCondition).Message
		if want := `the control plane of Cluster "c1" is not initialized yet`; !strings.Contains(m, want) {
			return fmt.Errorf("it says %q, want %q", m, want)
		}
		return nil
	})
	check(t, f.undelivered(ctx, f.one))

	check(t, patched(capiObject("controlplane.cluster.x-k8s.io/v1beta2", "LocalControlPlane", "c1"), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)(ctx, f.Client))
	soon(t, "Cluster API calls it initialized", func() error { return f.reached(ctx, f.Client, "c1", "controlPlaneInitialized") })
	soon(t, "the add-ons arrive", func() error { return f.delivered(ctx, f.one, "c1", f.color) })
	soon(t, "the registration is Ready", func() error { return f.ready(ctx, "c1") })
}

// bothVersions reads a Cluster as the manager's conversion webhook serves it, in each version.
func (f *capiFleet) bothVersions(t *testing.T) {
	ctx := t.Context()
	type reading struct{ kubeconfig, network, maintenance string }
	var seen []reading
	check(t, patched(capiClusterOf("c1"), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)(ctx, f.Client))
	for _, version := range []string{"v1beta1", "v1beta2"} {
		u := capiObject("cluster.x-k8s.io/"+version, "Cluster", "c1")
		check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(u), u))
		if got := u.GetAPIVersion(); got != "cluster.x-k8s.io/"+version {
			t.Fatalf("asked for %s, got %s", version, got)
		}
		source, err := origin.ClusterAPI.KubeConfig(u)
		check(t, err)
		seen = append(seen, reading{fmt.Sprint(source), fmt.Sprint(origin.ClusterAPI.Network(u)), origin.ClusterAPI.Maintenance(u).Reason})
	}
	if seen[0] != seen[1] {
		t.Errorf("v1beta1 is read as %v, v1beta2 as %v", seen[0], seen[1])
	}
	if seen[0].maintenance != hubv1.ClusterAPIPausedReason || !strings.Contains(seen[0].network, "10.44.0.0/16") {
		t.Errorf("v1beta1 is read as %v", seen[0])
	}
	check(t, patched(capiClusterOf("c1"), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)(ctx, f.Client))
}

func (f *capiFleet) rotated(t *testing.T) {
	ctx := t.Context()
	s := secret("c1", "c1-kubeconfig", nil)
	check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(s), s))
	if s.Type != "cluster.x-k8s.io/secret" || s.Labels["cluster.x-k8s.io/cluster-name"] != "c1" {
		t.Errorf("the Secret is of type %s, with labels %v", s.Type, s.Labels)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
	check(t, err)
	before, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	check(t, before.List(ctx, &corev1.NamespaceList{}))
	check(t, f.api.Rotate(ctx, "c1", "c1"))
	soon(t, "the old credentials are refused", func() error {
		if err := before.List(ctx, &corev1.NamespaceList{}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("with the old credentials: %v", err)
		}
		return nil
	})
	f.paint(t, "green")
	soon(t, "a change arrives with the new ones", func() error { return f.delivered(ctx, f.one, "c1", "green") })
	soon(t, "the registration is Ready", func() error { return f.ready(ctx, "c1") })
}

// besideSet gives the chart a value from a Secret that lies beside each Cluster.
const besideSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: ca-beside, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {via: plain}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  addons:
    - name: ca-beside
      helmRelease:
        interval: 1h
        chart: {spec: {chart: settings, sourceRef: {name: charts}}}
        valuesFrom: [{kind: Secret, name: << cluster.name >>-database, valuesKey: password, targetPath: color, from: Cluster}]
`

// values has a chart read a Secret of the Cluster's namespace, as Cluster API's providers and external-secrets write them.
func (f *capiFleet) values(t *testing.T) {
	ctx := t.Context()
	apply(t, f.Client, strings.ReplaceAll(besideSet, "$CHARTS", f.charts.URL()))
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system",
		Name: identity.Delivery("ca-beside", client.ObjectKey{Namespace: "c1", Name: "c1"})}}
	soon(t, "the delivery says that nothing is shared", func() error {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		const want = `no Secret "c1-database" in namespace "c1", where the cluster is registered, is shared with namespace "flux-system"`
		if len(d.Status.Addons) != 1 || !strings.Contains(d.Status.Addons[0].Message, want) {
			return fmt.Errorf("it says %+v", d.Status.Addons)
		}
		return nil
	})
	s := secret("c1", "c1-database", map[string][]byte{"password": []byte("first"), "host": []byte("db.example.org")})
	check(t, f.Client.Create(ctx, s))
	original := capiObject("v1", "Secret", "c1")
	original.SetName(s.Name)
	check(t, patched(original, `{"metadata":{"annotations":{"chandler.dev/share-with":"flux-system"}}}`)(ctx, f.Client))
	soon(t, "the value arrives on the cluster", func() error { return wantData(ctx, f.one, "ca-beside", "ca-beside", "color", "first") })
	copied := secret("flux-system", identity.Copy("chandler", client.ObjectKey{Namespace: "c1", Name: "c1"}, d.Name, "Secret", "c1-database"), nil)
	check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(copied), copied))
	if len(copied.Data) != 1 || string(copied.Data["password"]) != "first" {
		t.Errorf("the copy has the keys %v", slices.Collect(maps.Keys(copied.Data)))
	}
	check(t, patched(original, `{"stringData":{"password":"second"}}`)(ctx, f.Client))
	soon(t, "a rotated value arrives by itself", func() error { return wantData(ctx, f.one, "ca-beside", "ca-beside", "color", "second") })
	check(t, patched(original, `{"metadata":{"annotations":{"chandler.dev/share-with":null}}}`)(ctx, f.Client))
	soon(t, "the copy goes when its original is not shared any more", func() error { return wantGone(ctx, f.Client, copied) })
	check(t, wantData(ctx, f.one, "ca-beside", "ca-beside", "color", "second"))
	check(t, patched(original, `{"metadata":{"annotations":{"chandler.dev/share-with":"flux-system"}}}`)(ctx, f.Client))
	soon(t, "and comes again with it", func() error { return f.Client.Get(ctx, client.ObjectKeyFromObject(copied), copied) })
	check(t, f.Client.Delete(ctx, addonSet("flux-system", "ca-beside")))
	soon(t, "the copy goes with the set", func() error {
		return errors.Join(wantGone(ctx, f.Client, copied), wantNoConfigMap(ctx, f.one, "ca-beside", "ca-beside"))
	})
}

func (f *capiFleet) paused(t *testing.T) {
	ctx := t.Context()
	reg := registration("c1", "c1")
	check(t, patched(capiClusterOf("c1"), `{"spec":{"paused":true}}`)(ctx, f.Client))
	soon(t, "the registration says so", func() error {
		return condition(ctx, f.Client, reg, hubv1.MaintenanceCondition, metav1.ConditionTrue, hubv1.ClusterAPIPausedReason)
	})
	soon(t, "and is Ready", func() error { return f.ready(ctx, "c1") })
	// Nobody writes it anew while the Cluster is paused, and the hub has a copy.
	check(t, f.Client.Delete(ctx, secret("c1", "c1-kubeconfig", nil)))
	f.paint(t, "red")
	soon(t, "a change arrives all the same", func() error { return f.delivered(ctx, f.one, "c1", "red") })
	check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
	if c := conditionOf(reg, hubv1.MaintenanceCondition); c.Status != metav1.ConditionTrue {
		t.Errorf("in the meantime, condition Maintenance became %+v", c)
	}
	for _, typ := range []string{hubv1.SuspendedCondition, hubv1.StalledCondition} {
		if c := conditionOf(reg, typ); c.Status == metav1.ConditionTrue {
			t.Errorf("condition %s says %s: %s", typ, c.Reason, c.Message)
		}
	}
	check(t, patched(capiClusterOf("c1"), `{"spec":{"paused":false}}`)(ctx, f.Client))
	soon(t, "it says so no more", func() error {
		if err := f.ready(ctx, "c1"); err != nil {
			return err
		}
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
			return err
		}
		if c := conditionOf(reg, hubv1.MaintenanceCondition); c.Type != "" {
			return fmt.Errorf("condition Maintenance says %s", c.Message)
		}
		return f.Client.Get(ctx, client.ObjectKey{Namespace: "c1", Name: "c1-kubeconfig"}, &corev1.Secret{})
	})
}
