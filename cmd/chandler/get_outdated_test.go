// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/must"
)

// outdatedFleet are the objects of testdata/outdated. The names of what the hub makes for Flux are those of internal/identity, which never
// change.
func outdatedFleet(t *testing.T) string {
	t.Helper()
	raw := must.Read(t, filepath.Join("testdata", "outdated", "fleet.yaml"))
	return strings.NewReplacer("$GIT", "ingress-apps-ebffae1e", "$CHART", "chandler-nginx-d49565e9ae").Replace(strings.TrimSpace(string(raw)))
}

// TestGetOutdated: what `chandler get outdated` prints.
func TestGetOutdated(t *testing.T) {
	saved := now
	now = func() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }
	t.Cleanup(func() { now = saved })
	for name, args := range map[string]string{
		"all":          "",
		"current":      "ingress --show-current",
		"wide":         "flux-system/ingress -o wide --no-headers",
		"namespace":    "-n platform",
		"json":         "ingress -o json",
		"yaml":         "logs -o yaml",
		"nothing":      "-n nowhere",
		"nothing-json": "-n nowhere -o json",
		"missing":      "other logs",
		"wrong-output": "-o name",
		"wrong-both":   "-A -n fleet",
		"wrong-name":   "a/b/c",
		"wrong-place":  "a/b -n c",
	} {
		t.Run(name, func(t *testing.T) {
			clitest.NewSmallHub(t, outdatedFleet(t))
			out, errs, code := runSmall(t, strings.TrimSpace("get outdated "+args+" --platform-namespaces flux-system,platform"))
			text := strings.TrimSpace("$ chandler get outdated "+args) + "\n" + out
			if errs != "" {
				text += "--- stderr\n" + errs + "\n"
			}
			golden(t, "outdated/"+name+".txt", text+fmt.Sprintf("--- exit code %d\n", code))
			if name == "json" || name == "nothing-json" {
				if err := holds(t, "get outdated")(out); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestGetOutdatedWithFewRights: who may not read everything gets what he may, and is told what is missing.
func TestGetOutdatedWithFewRights(t *testing.T) {
	h := clitest.NewSmallHub(t, outdatedFleet(t))
	h.May = func(path string) bool { return strings.HasSuffix(path, "/namespaces/flux-system/addonsets") }
	out, errs, code := runSmall(t, "get outdated -n flux-system --platform-namespaces flux-system")
	if code != 0 || !strings.Contains(out, "ingress   routes") || strings.Contains(out, "2h") {
		t.Errorf("exit code %d, and it prints\n%s", code, out)
	}
	for _, what := range []string{"ConfigMap flux-system/ingress-values", "the ClusterRegistrations", "Flux's sources, which say since when"} {
		if !strings.Contains(errs, "you may not read "+what) {
			t.Errorf("it does not say that one may not read %s:\n%s", what, errs)
		}
	}
}

// TestGetOutdatedAsksNoUpstream: it reads each list once, and of Flux's objects only those that have news.
func TestGetOutdatedAsksNoUpstream(t *testing.T) {
	h := clitest.NewSmallHub(t, outdatedFleet(t))
	if _, errs, code := runSmall(t, "get outdated --platform-namespaces flux-system,platform"); code != 0 {
		t.Fatal(errs)
	}
	if got := h.Lines("source.toolkit.fluxcd.io"); len(got) != 1 || !strings.Contains(got[0], "/gitrepositories/") {
		t.Errorf("of Flux it reads %q", got)
	}
	if got := h.Lines("clusterregistrations"); len(got) != 1 {
		t.Errorf("it lists the clusters by %q", got)
	}
}
