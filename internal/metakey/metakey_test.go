// SPDX-License-Identifier: Apache-2.0

package metakey_test

import (
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/metakey"
)

func TestRefusal(t *testing.T) {
	const hub, flux, kubernetes = "a key of the hub", "a key of Flux,", "a key of Kubernetes"
	for key, want := range map[string]string{
		"team": "", "example.org/team": "", "cost.example.org/center": "", "fluxcd.io.example.org/x": "", "notfluxcd.io/x": "", "fluxcd.io": "",
		"app.kubernetes.io/name": "", "app.kubernetes.io/component": "",
		"event.toolkit.fluxcd.io/team":      "",
		hubv1.EventClusterAnnotation:        "written by the hub itself",
		hubv1.EventSetAnnotation:            "written by the hub itself",
		hubv1.EventAddonAnnotation:          "written by the hub itself",
		"chandler.dev/cluster-key":          hub,
		"x.chandler.dev/y":                  hub,
		"app.kubernetes.io/managed-by":      kubernetes,
		"app.kubernetes.io/instance":        kubernetes,
		"app.kubernetes.io/part-of":         kubernetes,
		"applyset.kubernetes.io/part-of":    kubernetes,
		"kubectl.kubernetes.io/x":           kubernetes,
		"cluster.x-k8s.io/paused":           kubernetes,
		"config.k8s.io/owning-inventory":    kubernetes,
		"kustomize.toolkit.fluxcd.io/prune": flux,
		"helm.toolkit.fluxcd.io/name":       flux,
		"source.toolkit.fluxcd.io/x":        flux,
		"toolkit.fluxcd.io/tenant":          flux,
		"reconcile.fluxcd.io/requestedAt":   flux,
		"sharding.fluxcd.io/key":            flux,
		"SHARDING.FLUXCD.io/key":            flux,
		"sharding.fluxcd.io/":               "no key that Kubernetes takes",
		"fluxcd.controlplane.io/reconcile":  "a key of the Flux Operator",
		"meta.helm.sh/release-name":         "a key of Helm",
		"helm.sh/hook":                      "a key of Helm",
		"argocd.argoproj.io/tracking-id":    "a key of Argo",
		"cleanup.kyverno.io/ttl":            "a key of Kyverno",
		"objectset.rio.cattle.io/hash":      "a key of Rancher",
		"two words":                         "no key that Kubernetes takes",
		"":                                  "no key that Kubernetes takes",
		"<< cluster.name >>":                "no key that Kubernetes takes",
	} {
		got := metakey.Refusal(key, false)
		if got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if got := metakey.Refusal("event.toolkit.fluxcd.io/team", true); !strings.Contains(got, "write it below annotations") {
		t.Errorf("as a label: %q", got)
	}
}

func TestMarks(t *testing.T) {
	for key, want := range map[string]bool{
		"kustomize.toolkit.fluxcd.io/name": true, "argocd.argoproj.io/instance": true, "app.kubernetes.io/instance": true, "chandler.dev/name": true,
		"app.kubernetes.io/name": false, "team": false, "toolkit.fluxcd.io": false, "sharding.fluxcd.io/key": false,
	} {
		if metakey.Marks(key) != want {
			t.Errorf("%s: want %t", key, want)
		}
	}
}
