// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCompletion: names come from the live hub, and a hub that is not there completes nothing.
func TestCompletion(t *testing.T) {
	h := clitest.NewListedHub(t)
	h.Add(t, "{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: berlin, namespace: stores}}")
	for words, want := range map[string]string{
		"get clusters ":                 "edge1\tin namespace stores\nfleet/berlin\tin namespace fleet\nnew\tin namespace fleet\nstores/berlin\tin namespace stores\n",
		"get clusters fle":              "fleet/berlin\tin namespace fleet\n",
		"get clusters -n stores b":      "berlin\tin namespace stores\n",
		"get clusters edge1 e":          "",
		"get sets ":                     "base\tin namespace flux-system\nmonitoring\tin namespace platform\n",
		"get addons n":                  "new\tin namespace fleet\n",
		"events cluster e":              "edge1\tin namespace stores\n",
		"events set ":                   "base\tin namespace flux-system\nmonitoring\tin namespace platform\n",
		"pause cluster stores/e":        "stores/edge1\tin namespace stores\n",
		"resume set mon":                "monitoring\tin namespace platform\n",
		"rollout approve b":             "base\tin namespace flux-system\n",
		"removals approve base ":        "",
		"events stores/berlin ":         "",
		"explain fleet/berlin w":        "web\n",
		"reconcile fleet/berlin ":       "dns\nweb\n",
		"explain e":                     "edge1\tin namespace stores\n",
		"get clusters --context none e": "",
		"get addons --set mon":          "monitoring\tin namespace platform\n",
		"get clusters -o ":              "wide\njson\nyaml\nname\n",
	} {
		out, _, err := runBoth(append([]string{"__complete"}, strings.Split(words, " ")...)...)
		out, directive, _ := strings.Cut(out, ":")
		if err != nil || out != want || !strings.HasPrefix(directive, "4") {
			t.Errorf("%q is completed by %q (%s), %v", words, out, directive, err)
		}
	}
}

// TestNamesAreCompleted: of clusters, and where both may stand, of sets too.
func TestNamesAreCompleted(t *testing.T) {
	h := clitest.NewSmallHub(t, clitest.SmallFleet())
	for _, u := range h.Objects {
		if u.GetKind() == "AddonSet" && u.GetName() == "base" {
			status, _, _ := unstructured.NestedMap(u.Object, "status", "rollout")
			status["waves"] = []any{map[string]any{"name": "rest"}, map[string]any{"name": "canary"}}
			if err := unstructured.SetNestedMap(u.Object, status, "status", "rollout"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for args, want := range map[string]string{
		"reconcile":             "edge1 edge2 edge3 elsewhere",
		"reconcile fleet/edge1": "cert-manager policies",
		"events":                "edge1 edge2 edge3 elsewhere base logs",
		"events set":            "base logs",
		"events cluster":        "edge1 edge2 edge3 elsewhere",
		"pause set":             "base logs",
		"resume cluster":        "edge1 edge2 edge3 elsewhere",
		"events edge3":          "cert-manager policies",
		"events cluster edge3":  "cert-manager policies",
		"explain edge1 x":       "",
		"rollout approve":       "base logs",
		"rollout approve base":  "canary rest",
		"rollout approve logs":  "",
		"unregister":            "edge1 edge2 edge3 elsewhere",
		"register":              "",
		"create set":            "",
	} {
		out, err := run(append(append([]string{"__complete"}, strings.Fields(args)...), "")...)
		var got []string
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, ":") {
				break
			}
			name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, and it completes\n%s", args, err, out)
		}
	}
}
