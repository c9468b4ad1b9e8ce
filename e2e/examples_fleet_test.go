// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// manyClusters is the fleet of the examples about many clusters.
type manyClusters struct {
	*exampleFleet
	clusters map[string]*localfleet.Cluster
}

// TestFleetExamples runs examples/multi-cluster, and that half of examples/hub-spoke that brings a cluster its own Flux.
func TestFleetExamples(t *testing.T) {
	beside(t)
	f := &manyClusters{startExamples(t, "hub-fleet"), map[string]*localfleet.Cluster{
		"emea-dev": workload(t, "workload-a"), "asia-dev": workload(t, "workload-b"), "emea-qa": workload(t, "workload-c")}}
	for name, c := range f.clusters {
		f.connect(t, name, c)
	}
	step(t, "multi-cluster: an environment", f.environment)
	step(t, "multi-cluster: a cluster and a group of clusters join", f.join)
	step(t, "multi-cluster: a team, an application, a release", f.team)
	step(t, "multi-cluster: promotion", f.promote)
	step(t, "multi-cluster: each leaves", f.leave)
	step(t, "hub-spoke: a cluster with its own Flux", f.ownFlux) // meanwhile the others leave
	step(t, "multi-cluster: all have left", f.left)
}

// has wants a value in a ConfigMap of each of some clusters.
func (f *manyClusters) has(ctx context.Context, namespace, name, key string, want map[string]string) error {
	var errs []error
	for cluster, value := range want {
		errs = append(errs, wantData(ctx, f.clusters[cluster], namespace, name, key, value))
	}
	return errors.Join(errs...)
}

// environment begins with branch dev, and one cluster.
func (f *manyClusters) environment(t *testing.T) {
	ctx := t.Context()
	f.push(t, "multi-cluster/git/fleet", "platform/fleet", "dev")
	f.apply(t, "multi-cluster/hub", "infrastructure.yaml", "clusters/emea-dev.yaml")
	soon(t, "the first cluster has its infrastructure", func() error {
		return f.has(ctx, "ingress", "ingress", "host", map[string]string{"emea-dev": "emea-dev.example.org"})
	})
}

// join adds a cluster of another region to the environment, and then another environment with a cluster.
func (f *manyClusters) join(t *testing.T) {
	ctx := t.Context()
	f.apply(t, "multi-cluster/hub", "clusters/asia-dev.yaml")
	_, err := f.git.Merge("platform/fleet", "dev", "qa")
	check(t, err)
	f.apply(t, "multi-cluster/hub", "clusters/emea-qa.yaml")
	soon(t, "each has what its region says", func() error {
		return f.has(ctx, "ingress", "ingress", "logs", map[string]string{
			"emea-dev": "https://logs.eu.example.org", "asia-dev": "https://logs.ap.example.org", "emea-qa": "https://logs.eu.example.org"})
	})
	soon(t, "the set is Ready", func() error {
		return f.delivered(ctx, "flux-system", "infrastructure", "emea-dev", "asia-dev", "emea-qa")
	})
}

func (f *manyClusters) team(t *testing.T) {
	ctx := t.Context()
	f.push(t, "multi-cluster/git/kaizen", "kaizen/manifests", "dev")
	for _, branch := range []string{"qa", "release-1.0"} {
		_, err := f.git.Merge("kaizen/manifests", "dev", branch)
		check(t, err)
	}
	f.apply(t, "multi-cluster", "hub/kaizen.yaml", "team/vote.yaml")
	soon(t, "the application is in the namespace of each environment, with the settings of each region", func() error {
		return errors.Join(
			f.has(ctx, "kaizen-dev", "vote", "database", map[string]string{"emea-dev": "vote.eu.example.org", "asia-dev": "vote.ap.example.org"}),
			f.has(ctx, "kaizen-qa", "vote", "cluster", map[string]string{"emea-qa": "emea-qa"}))
	})
	f.apply(t, "multi-cluster/team", "vote-1-0.yaml")
	soon(t, "the release is beside it, in dev", func() error {
		return f.has(ctx, "kaizen-dev-1-0", "vote", "question", map[string]string{"emea-dev": "Cats or dogs?", "asia-dev": "Cats or dogs?"})
	})
	check(t, wantNoConfigMap(ctx, f.clusters["emea-qa"], "kaizen-qa-1-0", "vote"))
}

// promote changes the application in dev. It comes to qa with the merge, and never to the release.
func (f *manyClusters) promote(t *testing.T) {
	ctx := t.Context()
	files := f.push(t, "multi-cluster/git/kaizen", "kaizen/manifests", "dev")
	files["vote/base/vote.yaml"] = strings.ReplaceAll(files["vote/base/vote.yaml"], "Cats or dogs?", "Tea or coffee?")
	_, err := f.git.CommitTo("kaizen/manifests", "dev", files)
	check(t, err)
	f.pull(t, "kaizen")
	soon(t, "dev has it", func() error {
		return f.has(ctx, "kaizen-dev", "vote", "question", map[string]string{"emea-dev": "Tea or coffee?", "asia-dev": "Tea or coffee?"})
	})
	check(t, f.has(ctx, "kaizen-qa", "vote", "question", map[string]string{"emea-qa": "Cats or dogs?"}))
	_, err = f.git.Merge("kaizen/manifests", "dev", "qa")
	check(t, err)
	f.pull(t, "kaizen")
	soon(t, "qa has it after the merge", func() error {
		return f.has(ctx, "kaizen-qa", "vote", "question", map[string]string{"emea-qa": "Tea or coffee?"})
	})
	check(t, f.has(ctx, "kaizen-dev-1-0", "vote", "question", map[string]string{"emea-dev": "Cats or dogs?"}))
}

// leave removes the release and a cluster, and then begins with the application, the team and the infrastructure.
func (f *manyClusters) leave(t *testing.T) {
	ctx := t.Context()
	f.drop(t, addonSet("kaizen", "vote-1-0"), registration("fleet", "asia-dev"))
	asia := f.clusters["asia-dev"]
	check(t, errors.Join(wantNoConfigMap(ctx, f.clusters["emea-dev"], "kaizen-dev-1-0", "vote"), wantNoConfigMap(ctx, asia, "kaizen-dev", "vote"),
		wantNoNamespace(ctx, asia, "chandler-kaizen"), wantNoNamespace(ctx, asia, "ingress")))
	check(t, f.has(ctx, "kaizen-dev", "vote", "question", map[string]string{"emea-dev": "Tea or coffee?"}))
	for _, o := range f.rest() {
		check(t, f.Client.Delete(ctx, o))
	}
}

// rest is what is deleted last, at once: each of these waits for those before it.
func (f *manyClusters) rest() []client.Object {
	return []client.Object{addonSet("kaizen", "vote"), &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "kaizen"}},
		addonSet("flux-system", "infrastructure")}
}

// left wants nothing of the example on the clusters but the team's namespaces.
func (f *manyClusters) left(t *testing.T) {
	ctx := t.Context()
	f.drop(t, f.rest()...)
	check(t, wantNoConfigMap(ctx, f.clusters["emea-qa"], "kaizen-qa", "vote"))
	for name, c := range f.clusters {
		check(t, errors.Join(wantNoNamespace(ctx, c, "chandler-kaizen"), wantNoNamespace(ctx, c, "ingress")))
		// The team's namespaces stay with what is in them, and the next test may have this cluster.
		_, env, _ := strings.Cut(name, "-")
		for _, ns := range []string{"kaizen-" + env, "kaizen-" + env + "-1-0"} {
			check(t, c.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		}
	}
}

// ownFlux brings Flux to a cluster, and then a folder with Flux objects. The pods of Flux are kwok's, so the same controllers are started
// beside the cluster, as soon as it has their CRDs.
func (f *manyClusters) ownFlux(t *testing.T) {
	ctx := t.Context()
	edge := clustersWithNodes(t, "edge")["edge"]
	f.connect(t, "edge", edge)
	files := f.push(t, "hub-spoke/git/fleet", "platform/fleet", "main")
	flux, err := localfleet.FluxManifests()
	check(t, err)
	for name, content := range flux {
		files["flux/"+name] = content
	}
	_, err = f.git.Commit("platform/fleet", files)
	check(t, err)
	f.push(t, "hub-spoke/git/apps", "edge/apps", "main")
	f.apply(t, "hub-spoke/hub", "clusters.yaml", "own-flux.yaml")
	soon(t, "the cluster has Flux's controllers", func() error {
		var errs []error
		for _, name := range []string{parts.SourceController, parts.KustomizeController, parts.HelmController} {
			_, err := runs(ctx, edge, localfleet.FluxNamespace, name, 1)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	check(t, edge.StartFlux(ctx, localfleet.FluxOptions{}))
	soon(t, "its Flux applies what the objects in the folder say", func() error {
		_, err := runs(ctx, edge, "default", "default-podinfo", 1)
		return errors.Join(err, wantData(ctx, edge, "default", "settings", "greeting", "hello from the edge"))
	})
	soon(t, "the set is Ready", func() error { return f.delivered(ctx, "flux-system", "own-flux", "edge") })
	release := object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "flux-system", "podinfo")
	check(t, edge.Client.Get(ctx, client.ObjectKeyFromObject(release), release))
	if _, remote, _ := unstructured.NestedMap(release.Object, "spec", "kubeConfig"); remote {
		t.Error("the folder's HelmRelease has got a kubeconfig")
	}
	f.importClusters(t, "edge", edge)
	f.drop(t, addonSet("flux-system", "own-flux"))
	check(t, errors.Join(wantNoNamespace(ctx, edge, localfleet.FluxNamespace), wantNoConfigMap(ctx, edge, "default", "settings"),
		wantGone(ctx, edge.Client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default-podinfo"}})))
}
