// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/reconcile"
)

// flux has a hub do as Flux does: it repeats the mark, and says that the object is Ready, or not.
func flux(h *clitest.SmallHub, notReady string) {
	h.Patched = func(u *unstructured.Unstructured) {
		status := map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "it works\n\x1b[2J", "lastTransitionTime": "2026-05-02T10:00:00Z"}
		if u.GetName() == notReady {
			status["status"], status["reason"] = "False", "UpgradeFailed"
		}
		_ = unstructured.SetNestedField(u.Object, u.GetAnnotations()["reconcile.fluxcd.io/requestedAt"], "status", "lastHandledReconcileAt")
		_ = unstructured.SetNestedSlice(u.Object, []any{status}, "status", "conditions")
	}
}

func TestReconcile(t *testing.T) {
	const release, kustomization = "cert-manager: HelmRelease flux-system/edge1-cert-manager-1fc32e0c: ", "policies: Kustomization flux-system/edge1-policies-1fc32e0c: "
	for _, c := range []struct {
		name, args, notReady string
		code                 int
		out, errs, patched   string
	}{
		{"all", "edge1", "", 0, release + "Ready (Succeeded: it works [2J)\n" + kustomization + "Ready (Succeeded: it works [2J)\n", "", "edge1-cert-manager-1fc32e0c edge1-policies-1fc32e0c"},
		{"one", "fleet/edge1 policies", "", 0, kustomization + "Ready (Succeeded: it works [2J)\n", "", "edge1-policies-1fc32e0c"},
		{"sources", "edge1 --with-source --wait=false", "", 0, "cert-manager: HelmRepository flux-system/jetstack: left out, Flux reads a HelmRepository of type oci only with its charts\n" +
			"policies: GitRepository sources/policies: Ready (Succeeded: it works [2J)\ncert-manager: HelmChart flux-system/flux-system-edge1-cert-manager: Ready (Succeeded: it works [2J)\n" +
			release + "asked for\n" + kustomization + "asked for\n", "", "policies flux-system-edge1-cert-manager edge1-cert-manager-1fc32e0c edge1-policies-1fc32e0c"},
		{"failed", "edge1", "edge1-policies-1fc32e0c", 1, release + "Ready (Succeeded: it works [2J)\n" + kustomization + "not Ready (UpgradeFailed: it works [2J)\n", "1 object is not Ready, or suspended", "edge1-cert-manager-1fc32e0c edge1-policies-1fc32e0c"},
		{"suspended", "edge3 cert-manager", "", 1, "cert-manager: HelmRelease flux-system/edge3-cert-manager-77aa: left out, the hub keeps it suspended: the cluster is paused\n", "1 object is not Ready, or suspended", ""},
		{"nothing", "edge2", "", 1, "", "chandler explain edge2 says why", ""},
		{"unknown", "edge1 nothing", "", 1, "",
			`has no add-on "nothing" with an object of Flux's: chandler get addons fleet/edge1 lists its add-ons`, ""},
		{"time", "edge1 policies --timeout 50ms", "nobody looks", 1, "", "the time is over; 1 object is not finished, such as policies: Kustomization", "edge1-policies-1fc32e0c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := clitest.NewSmallHub(t, clitest.SmallFleet())
			if flux(h, c.notReady); c.name == "time" {
				h.Patched = nil
			}
			out, errs, code := clitest.Ends(clitest.Root(reconcile.New(clitest.At(time.Time{}), nil)), strings.Fields("reconcile "+c.args)...)
			if out != c.out || code != c.code || !strings.Contains(errs, c.errs) {
				t.Errorf("exit code %d, %s, and it says\n%s\nwant\n%s", code, errs, out, c.out)
			}
			var patched []string
			for _, line := range h.Lines("PATCH") {
				if f := strings.Fields(line); len(f) != 4 || f[2] != "chandler-reconcile" || !strings.HasPrefix(f[3], `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"20`) {
					t.Errorf("it writes %s", line)
				}
				patched = append(patched, strings.Fields(line)[1])
			}
			if got := strings.Join(patched, " "); got != c.patched {
				t.Errorf("it patches %q, want %q", got, c.patched)
			}
		})
	}
}
