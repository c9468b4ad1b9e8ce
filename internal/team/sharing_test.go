// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/team"
)

func TestShared(t *testing.T) {
	on := func(of hubv1.Team, env string, namespaces ...string) hubv1.Team {
		if of.Spec.SelectAll = env == ""; env != "" {
			of.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
		}
		for _, n := range namespaces {
			of.Spec.Namespaces = append(of.Spec.Namespaces, hubv1.TeamNamespace{Name: n})
		}
		return of
	}
	older := on(claimant("platform", "older", 60), "qa", "apps", "team-<< cluster.name >>")
	younger := on(claimant("flux-system", "younger", 10), "", "apps", "own", "team-<< cluster.name >>")
	elsewhere := on(claimant("flux-system", "elsewhere", 5), "dev", "apps")
	outside := on(claimant("tenant", "outside", 600), "", "apps")
	all := []hubv1.Team{younger, outside, older, elsewhere}
	clusters := []hubv1.ClusterRegistration{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "d1", Labels: map[string]string{"env": "dev"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "q1", Labels: map[string]string{"env": "qa"}}},
	}
	const theirs = ": Team platform/older has that namespace on cluster fleet/q1: name another one, or select other clusters"
	for _, c := range []struct {
		of       hubv1.Team
		clusters []hubv1.ClusterRegistration
		want     []string
	}{
		{older, clusters, nil},
		{younger, clusters, []string{"spec.namespaces[apps]" + theirs, "spec.namespaces[team-<< cluster.name >>]" + theirs}},
		{younger, clusters[:1], nil},
		{younger, nil, nil},
		{elsewhere, clusters, []string{
			"spec.namespaces[apps]: Team flux-system/younger has that namespace on cluster fleet/d1: name another one, or select other clusters",
		}},
	} {
		if d := cmp.Diff(c.want, team.Shared(&c.of, all, c.clusters, platform)); d != "" {
			t.Errorf("%s on %d clusters:\n%s", c.of.Name, len(c.clusters), d)
		}
	}
}
