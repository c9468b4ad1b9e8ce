// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/team"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func platform(ns string) bool { return ns == "flux-system" || ns == "platform" }

// claimant is a Team that is some minutes old at noon.
func claimant(namespace, name string, minutes int, hub ...string) hubv1.Team {
	out := hubv1.Team{}
	out.Namespace, out.Name, out.Spec.HubNamespaces = namespace, name, hub
	out.CreationTimestamp = metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute))
	return out
}

func TestClaims(t *testing.T) {
	plain := claimant("flux-system", "dev", 1)
	if got := team.Claims(&plain); !cmp.Equal(got, []string{"dev"}) {
		t.Error(got)
	}
	named := claimant("flux-system", "dev", 1, "a", "b")
	got := team.Claims(&named)
	if !cmp.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
	got[0] = "x"
	if named.Spec.HubNamespaces[0] != "a" {
		t.Error("whoever sorts the claims sorts the Team")
	}
}

func TestOf(t *testing.T) {
	going := claimant("flux-system", "going", 90, "left")
	going.DeletionTimestamp = new(metav1.NewTime(noon))
	broken := claimant("flux-system", "broken", 1)
	broken.Spec.Namespaces = []hubv1.TeamNamespace{{Name: "kube-system"}}
	all := []hubv1.Team{
		claimant("flux-system", "dev", 10),
		claimant("platform", "dev", 20, "dev"),
		claimant("flux-system", "tie", 5, "same"),
		claimant("flux-system", "also", 5, "same"),
		claimant("platform", "aaa", 5, "same"),
		claimant("tenant", "grabs", 60, "dev", "same", "free", "tenant"),
		claimant("flux-system", "vain", 60, "platform", "flux-system"),
		going, claimant("flux-system", "successor", 5, "left"),
		broken,
	}
	for namespace, want := range map[string]string{
		"dev":         "platform/dev",
		"same":        "flux-system/also",
		"free":        "",
		"tenant":      "",
		"platform":    "",
		"flux-system": "",
		"left":        "flux-system/going",
		"broken":      "flux-system/broken",
	} {
		for range len(all) {
			got := ""
			if o := team.Of(namespace, all, platform); o != nil {
				got = o.Namespace + "/" + o.Name
			}
			if got != want {
				t.Errorf("%s is governed by %q, want %q", namespace, got, want)
			}
			all = append(all[1:], all[0])
		}
	}
	if team.Of("dev", nil, platform) != nil {
		t.Error("nobody governs something")
	}
}

func TestRivals(t *testing.T) {
	older, younger := claimant("platform", "older", 60, "dev", "x"), claimant("flux-system", "younger", 10, "x", "platform", "own", "dev")
	outside := claimant("tenant", "outside", 600, "x")
	all := []hubv1.Team{younger, outside, older}
	const since = `: Team platform/older has it since 2026-11-21T11:00:00Z`
	for _, c := range []struct {
		of   hubv1.Team
		all  []hubv1.Team
		want []string
	}{
		{older, all, nil},
		{younger, all, []string{`"dev"` + since, `"platform": it is a platform namespace, and no Team governs one`, `"x"` + since}},
		{outside, all, []string{`"x": a Team counts only in a platform namespace, and "tenant" is none`}},
		// The list may be older than the Team.
		{older, []hubv1.Team{younger}, nil},
		{younger, []hubv1.Team{older}, []string{`"dev"` + since, `"platform": it is a platform namespace, and no Team governs one`, `"x"` + since}},
		{older, nil, nil},
	} {
		if d := cmp.Diff(c.want, team.Rivals(&c.of, c.all, platform)); d != "" {
			t.Errorf("%s of %d Teams:\n%s", c.of.Name, len(c.all), d)
		}
	}
}

// TestOneHasIt: of the Teams that claim a namespace, Of names the one that has no rivals for it.
func TestOneHasIt(t *testing.T) {
	all := []hubv1.Team{
		claimant("flux-system", "a", 5, "x", "y"), claimant("platform", "b", 5, "x"), claimant("flux-system", "c", 9, "y"), claimant("tenant", "d", 99, "x"),
	}
	for _, ns := range []string{"x", "y"} {
		var have []string
		for i := range all {
			claims, lost := team.Claims(&all[i]), strings.Join(team.Rivals(&all[i], all, platform), "\n")
			for _, c := range claims {
				if c == ns && !strings.Contains(lost, `"`+ns+`"`) {
					have = append(have, all[i].Name)
				}
			}
		}
		if o := team.Of(ns, all, platform); len(have) != 1 || have[0] != o.Name {
			t.Errorf("%s: %q have it, and %s governs it", ns, have, o.Name)
		}
	}
}

func TestSelector(t *testing.T) {
	staging := labels.Set{"env": "staging"}
	for spec, want := range map[string][2]bool{ // staging, and a cluster without labels
		"spec: {selectAll: true}":                                                                 {true, true},
		"spec: {selectAll: true, clusterSelector: {}}":                                            {true, true},
		"spec: {clusterSelector: {matchLabels: {env: staging}}}":                                  {true, false},
		"spec: {clusterSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}":       {false, true},
		"spec: {clusterSelector: {matchLabels: {env: prod}}}":                                     {false, false},
		"spec: {clusterSelector: {matchExpressions: [{key: env, operator: NotIn, values: [a]}]}}": {true, true},
	} {
		s, err := team.Selector(of(t, spec))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := [2]bool{s.Matches(staging), s.Matches(labels.Set{})}; got != want {
			t.Errorf("%s matches %v, want %v", spec, got, want)
		}
	}
	for spec, want := range map[string]string{
		"spec: {}":                    "selectAll: true",
		"spec: {clusterSelector: {}}": "selectAll: true",
		"spec: {selectAll: true, clusterSelector: {matchLabels: {env: staging}}}":             "not both",
		"spec: {clusterSelector: {matchExpressions: [{key: env, operator: Near}]}}":           "Near",
		"spec: {clusterSelector: {matchLabels: {env: '<< cluster.name >>'}}}":                 "label",
		"spec: {clusterSelector: {matchExpressions: [{key: env, operator: In, values: []}]}}": "values",
	} {
		if s, err := team.Selector(of(t, spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error with %q", spec, s, err, want)
		}
	}
}

func TestRules(t *testing.T) {
	got := team.Rules(plain(t, "dev", "namespaces: [{name: jobs}, {name: 'apps-<< cluster.name >>'}]"))
	want := &fluxspec.TeamRules{Name: "dev", Namespaces: []string{"jobs", "apps-<< cluster.name >>"}, MaxAddons: 50}
	must.Equal(t, want, got)
	got = team.Rules(plain(t, "dev", `namespaces: [{name: apps}], maxPriority: 7, addons: {max: 3},
  sources: {allow: ["https://git.example.org/*"], kinds: [Bucket], requireVerification: true}`))
	want = &fluxspec.TeamRules{Name: "dev", Namespaces: []string{"apps"}, Allow: []string{"https://git.example.org/*"}, Kinds: []string{"Bucket"},
		RequireVerification: true, MaxPriority: 7, MaxAddons: 3}
	must.Equal(t, want, got)
}
