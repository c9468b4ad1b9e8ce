// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
)

// TestSupport: the versions that the page calls tested are those that the tests run with.
func TestSupport(t *testing.T) {
	page := read(t, "support.md")
	for module, row := range map[string]string{
		"kubernetes":           "| Kubernetes of the management cluster | %s; ",
		"kubernetes-1.30":      "the main paths with %s |",
		"flux2":                "| Flux | %s: ",
		"source-controller":    "source-controller %s, ",
		"kustomize-controller": "kustomize-controller %s, ",
		"helm-controller":      "helm-controller %s |",

		"flux-2.7/source-controller":    "| Flux 2.7, the main paths | source-controller %s, ",
		"flux-2.7/kustomize-controller": "kustomize-controller %s, ",
		"flux-2.7/helm-controller":      "helm-controller %s | |",

		"kamaji":              "| Kamaji | %s |",
		"cluster-api":         "| Cluster API | %s, ",
		"cluster-inventory":   "| ClusterProfile (SIG Multicluster) | %s |",
		"helm":                "| Helm, to install the hub | %s |",
		"kustomize":           "| kustomize, to install the hub | %s |",
		"kyverno":             "| Kyverno and Flagger, in the examples | %s and ",
		"flagger":             " and %s | |",
		"prometheus-operator": "| Prometheus operator, for alerts | %s |",
	} {
		raw := must.Read(t, "../hack/tools/"+module+"/go.mod")
		// The first that a go.mod requires is what it is for.
		m := regexp.MustCompile(`(?m)^(?:require )?\s*[a-z0-9.]+/\S+ v(\S+)`).FindSubmatch(raw)
		if m == nil {
			t.Fatalf("hack/tools/%s/go.mod requires nothing", module)
		}
		if want := strings.Replace(row, "%s", string(m[1]), 1); !strings.Contains(page, want) {
			t.Errorf("docs/support.md has no %q", want)
		}
	}
}
