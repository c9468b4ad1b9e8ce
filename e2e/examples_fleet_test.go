// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// manyClusters is the fleet of the examples about many clusters.
type manyClusters struct {
	*exampleFleet
	clusters map[string]*localfleet.Cluster
}

// TestFleetExamples runs examples/multi-cluster.
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

// leave removes the release, a cluster, the application, the team, and at last the infrastructure.
func (f *manyClusters) leave(t *testing.T) {
	ctx := t.Context()
	f.drop(t, addonSet("kaizen", "vote-1-0"), registration("fleet", "asia-dev"))
	asia := f.clusters["asia-dev"]
	check(t, errors.Join(wantNoConfigMap(ctx, f.clusters["emea-dev"], "kaizen-dev-1-0", "vote"), wantNoConfigMap(ctx, asia, "kaizen-dev", "vote"),
		wantNoNamespace(ctx, asia, "chandler-kaizen"), wantNoNamespace(ctx, asia, "ingress")))
	check(t, f.has(ctx, "kaizen-dev", "vote", "question", map[string]string{"emea-dev": "Tea or coffee?"}))
	f.drop(t, addonSet("kaizen", "vote"))
	check(t, wantNoConfigMap(ctx, f.clusters["emea-qa"], "kaizen-qa", "vote"))
	f.drop(t, &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "kaizen"}}, addonSet("flux-system", "infrastructure"))
	for name, c := range f.clusters {
		check(t, errors.Join(wantNoNamespace(ctx, c, "chandler-kaizen"), wantNoNamespace(ctx, c, "ingress")))
		// The team's namespaces stay with what is in them, and the next test may have this cluster.
		_, env, _ := strings.Cut(name, "-")
		for _, ns := range []string{"kaizen-" + env, "kaizen-" + env + "-1-0"} {
			check(t, c.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		}
	}
}
