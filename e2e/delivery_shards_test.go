// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/shard"
	"github.com/chandler-hub/chandler/test/facade"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const shardsSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: shards, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {shards: "yes"}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
    - name: sh
      kustomization: {path: ./shards, sourceRef: {name: fleet}, postBuild: {substitute: {name: "sh-<< cluster.name >>", color: %s}}}
`

const shardDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: $COMPONENT-$SHARD, namespace: flux-system}
spec:
  selector: {matchLabels: {app: $COMPONENT-$SHARD}}
  template:
    metadata: {labels: {app: $COMPONENT-$SHARD}}
    spec:
      containers: [{name: manager, image: "example.org/$COMPONENT:v1", args: [--watch-label-selector=sharding.fluxcd.io/key=$SHARD]}]
`

// shardedFleet is a hub whose Flux has a kustomize-controller for each of two shards.
type shardedFleet struct {
	*hub
	cluster *localfleet.Cluster
	git     *localfleet.GitServer
	names   []string
}

// place is where a cluster's add-on is: its Flux object, which is never made again, and the object on the cluster.
type place struct {
	shard     string
	flux, own types.UID
}

// TestShards adds a second shard: about half of the clusters move to it, nothing is made again, and each shard serves its own.
func TestShards(t *testing.T) {
	beside(t)
	ctx := t.Context()
	f := startShards(t)
	f.apply(t, fmt.Sprintf(shardsSet, "blue"))
	for _, name := range f.names {
		soon(t, "the add-on arrives on "+name, func() error { return f.has(ctx, name, "blue") })
	}
	before := f.places(t)
	for name, p := range before {
		if p.shard != "a" {
			t.Errorf("%s is on shard %q, and there is only a", name, p.shard)
		}
	}

	// Without the flag the hub finds the shards of Flux, as it starts where none are published yet. The Flux of this test runs beside the cluster:
	// its Deployments say what it serves.
	f.stop()
	f.args = nil
	check(t, f.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubconfig.DefaultNamespace, Name: hubconfig.ConfigMapName}}))
	for _, component := range []string{"kustomize-controller", "helm-controller"} {
		for _, s := range []string{"a", "b"} {
			apply(t, f.Client, strings.NewReplacer("$COMPONENT", component, "$SHARD", s).Replace(shardDeployment))
		}
	}
	f.start(t)
	soon(t, "some clusters move to the new shard", func() error { return f.moved(ctx) })
	f.apply(t, fmt.Sprintf(shardsSet, "green"))
	for _, name := range f.names {
		soon(t, "a change arrives on "+name, func() error { return f.has(ctx, name, "green") })
	}
	after := f.places(t)
	on := map[string][]string{}
	for name, p := range after {
		on[p.shard] = append(on[p.shard], name)
		if was := before[name]; p.flux != was.flux || p.own != was.own {
			t.Errorf("%s: something was made again: %+v before, %+v now", name, was, p)
		}
	}
	t.Logf("clusters by shard: %v", on)

	f.StopFluxShard("a")
	f.apply(t, fmt.Sprintf(shardsSet, "red"))
	for _, name := range on["b"] {
		soon(t, "the other shard goes on with "+name, func() error { return f.has(ctx, name, "red") })
	}
	for _, name := range on["a"] {
		if err := f.has(ctx, name, "green"); err != nil {
			t.Errorf("nobody serves shard a: %v", err)
		}
	}
}

func startShards(t *testing.T) *shardedFleet {
	t.Helper()
	f := &shardedFleet{cluster: workload(t, "workload-a")}
	f.hub = startHub(t, hubOptions{name: "hub-shards", flux: &localfleet.FluxOptions{Shards: []string{"a", "b"}}, args: []string{"--flux-shards=a"}})
	_, f.git = serve(t)
	_, err := f.git.Commit("fleet", map[string]string{
		"shards/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${name}\", namespace: default}\ndata: {color: \"${color}\"}\n",
	})
	check(t, err)
	namespace(t, f.Client, "fleet")
	// One API server plays six clusters: what is tried here is which Flux controller comes to it.
	many, err := facade.New(f.cluster.Config)
	check(t, err)
	t.Cleanup(many.Close)
	for i := range 6 {
		name := fmt.Sprintf("c%d", i)
		f.names = append(f.names, name)
		kubeconfig, err := many.KubeConfig(name)
		check(t, err)
		registerBy(t, f.Client, "fleet", name, kubeconfig, map[string]string{"shards": "yes"})
	}
	return f
}

func (f *shardedFleet) apply(t *testing.T, text string) {
	t.Helper()
	apply(t, f.Client, strings.ReplaceAll(text, "$GIT", f.git.URL("fleet")))
}

func (f *shardedFleet) has(ctx context.Context, name, color string) error {
	return wantData(ctx, f.cluster, "default", "sh-"+name, "color", color)
}

func (f *shardedFleet) kustomizations(ctx context.Context) (map[string]*kustomizev1.Kustomization, error) {
	list := &kustomizev1.KustomizationList{}
	err := f.Client.List(ctx, list, client.InNamespace("flux-system"))
	out := map[string]*kustomizev1.Kustomization{}
	for i := range list.Items {
		out[list.Items[i].Labels[hubv1.ClusterLabel]] = &list.Items[i]
	}
	return out, err
}

func (f *shardedFleet) places(t *testing.T) map[string]place {
	t.Helper()
	list, err := f.kustomizations(t.Context())
	check(t, err)
	out := map[string]place{}
	for _, name := range f.names {
		cm := &corev1.ConfigMap{}
		check(t, f.cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "sh-" + name}, cm))
		out[name] = place{list[name].Labels[shard.Label], list[name].UID, cm.UID}
	}
	return out
}

// moved wants clusters on both shards.
func (f *shardedFleet) moved(ctx context.Context) error {
	list, err := f.kustomizations(ctx)
	on := map[string]int{}
	for _, k := range list {
		on[k.Labels[shard.Label]]++
	}
	if on["a"] == 0 || on["b"] == 0 {
		err = errors.Join(err, fmt.Errorf("clusters by shard: %v", on))
	}
	return err
}
