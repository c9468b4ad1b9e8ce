// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestCompletion: names come from the live hub, and a hub that is not there completes nothing.
func TestCompletion(t *testing.T) {
	h := newListedHub(t)
	h.add(t, "{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: berlin, namespace: stores}}")
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
