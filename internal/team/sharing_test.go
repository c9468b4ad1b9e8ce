// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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

// TestYield: a namespace that another Team names stays on the clusters, whatever becomes of this Team, and all else goes.
func TestYield(t *testing.T) {
	naming := func(namespace, name string, namespaces ...string) hubv1.Team {
		out := claimant(namespace, name, 1)
		for _, n := range namespaces {
			out.Spec.Namespaces = append(out.Spec.Namespaces, hubv1.TeamNamespace{Name: n})
		}
		return out
	}
	own := naming("flux-system", "dev", "own", "both", "afar", "claimed")
	all := []hubv1.Team{own, naming("flux-system", "qa", "both"), naming("platform", "dev", "afar"), naming("tenant", "grabs", "claimed")}
	const objects = `{"objects":[{"kind":"Namespace","metadata":{"name":"own"}},{"kind":"Namespace","metadata":{"annotations":{"a":"b"},"name":"both"}},` +
		`{"kind":"Namespace","metadata":{"name":"afar"}},{"kind":"Namespace","metadata":{"name":"claimed"}},{"kind":"RoleBinding","metadata":{"name":"both"}}]}`
	spec := &hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "chart"}, {Name: "team", AddonBody: hubv1.AddonBody{Manifests: &apiextensionsv1.JSON{Raw: []byte(objects)}}}}}
	got, err := team.Yield(&own, spec, all, platform)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"annotations":{"a":"b"}`, `"annotations":{"a":"b","helm.sh/resource-policy":"keep"}`,
		`{"name":"afar"}`, `{"annotations":{"helm.sh/resource-policy":"keep"},"name":"afar"}`).Replace(objects)
	if d := cmp.Diff(want, string(got.Addons[1].Manifests.Raw)); d != "" || string(spec.Addons[1].Manifests.Raw) != objects {
		t.Errorf("it yields other things, or changes what it was given:\n%s", d)
	}
	spec.Addons[1].Manifests.Raw = []byte("{")
	if _, err := team.Yield(&own, spec, all, platform); err == nil || !strings.Contains(err.Error(), "read the objects of Team dev") {
		t.Errorf("the error is %v", err)
	}
}
