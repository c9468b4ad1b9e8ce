// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
)

// teamFleet is what hub namespace shop has of cluster fleet/edge1, beside the smallFleet.
func teamFleet(t *testing.T) string {
	t.Helper()
	edge1 := types.NamespacedName{Namespace: "fleet", Name: "edge1"}
	return clitest.SmallFleet() + strings.NewReplacer("$DELIVERY", identity.Delivery("web", edge1), "$KEY", identity.ClusterKey("chandler", edge1)).Replace(`
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: web, namespace: shop, uid: s9, creationTimestamp: "2026-05-02T10:00:05Z"}
spec: {selectAll: true, addons: [{name: web}]}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonDelivery
metadata: {name: $DELIVERY, namespace: shop, uid: d9, creationTimestamp: "2026-05-02T10:00:05Z", labels: {chandler.dev/cluster: edge1, chandler.dev/addonset: web, chandler.dev/cluster-key: $KEY}}
spec: {registrationRef: {namespace: fleet, name: edge1}, addonSetRef: {name: web, uid: s9}, revisionName: web-4f24bf35d8-e3}
status:
  addonCounts: {total: 2, ready: 1, failed: 1, summary: 1/2}
  conditions: [{type: Ready, status: "False", reason: AddonsFailed, message: "1 of 2 add-ons failed: web", lastTransitionTime: "2026-05-02T10:00:00Z"}]
  addons:
    - {name: cache, kind: HelmRelease, object: edge1-cache-99, state: Ready, version: 1.0.0, appliedGeneration: 1}
    - {name: web, kind: HelmRelease, object: edge1-web-99, state: Failed, reason: InstallFailed, message: no such image, appliedGeneration: 1}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: edge1-web-99, namespace: shop, uid: h9, labels: {chandler.dev/cluster-key: $KEY, chandler.dev/addon: web}}
spec: {chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: web}}}}
status: {conditions: [{type: Ready, status: "False", reason: InstallFailed, message: no such image, lastTransitionTime: "2026-05-02T10:00:00Z"}]}`)
}

// mayTeam are the paths that a team's people may read in hub namespace shop: what `chandler create team` gives them.
var mayTeam = regexp.MustCompile(`/namespaces/shop/(addonsets|addondeliveries|helmreleases|kustomizations|helmcharts|configmaps|secrets|events|controllerrevisions)(/|$)`)

// TestTeamReadsItsOwn: who may read nothing but a hub namespace explains and lists what is his, and one line says what is left out.
func TestTeamReadsItsOwn(t *testing.T) {
	const (
		narrow    = "cannot list ClusterRegistrations: showing what the AddonDeliveries in namespace shop say\n"
		byDeliver = "cannot list ClusterRegistrations: showing the clusters of the AddonDeliveries in namespace shop\n"
		row       = "fleet   edge1   False   Unknown   -   1/2   AddonsFailed   30d   1 of 2 add-ons failed: web"
	)
	h := clitest.NewSmallHub(t, teamFleet(t))
	h.May = mayTeam.MatchString
	saved := now
	now = func() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }
	t.Cleanup(func() { now = saved })
	for args, tc := range map[string]struct {
		code      int
		out, errs []string
	}{
		"explain edge1 -n shop": {0, []string{"Cluster:       fleet/edge1", "Registration:  you may not read it", "cache   shop/web   Ready", "web     shop/web   Failed", "no such image"}, []string{narrow}},
		"explain edge1 web -n shop": {0, []string{"Add-on web of AddonSet shop/web has failed on cluster fleet/edge1: no such image.", "HelmRelease shop/edge1-web-99",
			"who set its fields is not known"}, []string{narrow}},
		"explain edge1 none -n shop":        {1, nil, []string{`there is no add-on "none"`, "there are cache, web"}},
		"explain edge2 -n shop":             {2, nil, []string{"list the ClusterRegistrations", "refused here"}},
		"explain edge1 -n flux-system":      {2, nil, []string{"refused here"}},
		"get clusters -n shop":              {0, []string{row}, []string{byDeliver}},
		"get clusters edge1 -n shop":        {0, []string{row}, []string{byDeliver}},
		"get clusters edge2 -n shop":        {2, nil, []string{"refused here"}},
		"get clusters -n shop -o name":      {0, []string{"clusterregistration.chandler.dev/edge1"}, []string{byDeliver}},
		"get clusters -n shop -o yaml":      {2, nil, []string{"refused here"}},
		"get clusters -n shop -l tier=prod": {2, nil, []string{"refused here"}},
		"get clusters -n flux-system":       {2, nil, []string{"refused here"}},
		"get clusters":                      {2, nil, []string{"write -n NAMESPACE"}},
		"get sets -n shop":                  {0, []string{"web"}, nil},
	} {
		out, errs, code := runSmall(t, args)
		checkOwn(t, args, out, errs, code, tc.code, tc.out, tc.errs)
	}
	// The namespace of the kubeconfig's context is that of who writes none.
	useNamespace(t, "shop")
	for args, want := range map[string][]string{
		"explain edge1": {"cache   shop/web   Ready"}, "explain fleet/edge1": {"cache   shop/web   Ready"},
		"get clusters": {row}, "get clusters fleet/edge1": {row}, "get sets": {"web"}, "get addons": {"fleet/edge1   web"},
	} {
		out, errs, code := runSmall(t, args)
		checkOwn(t, args, out, errs, code, 0, want, []string{"cannot list ", "showing "})
	}
	for _, line := range h.Lines("") {
		if !strings.HasPrefix(line, http.MethodGet) {
			t.Errorf("%s is no read", line)
		}
	}
}

// TestOwnerReadsHisClusters: who may read the namespace of his clusters, and no other, sees them by their registrations.
func TestOwnerReadsHisClusters(t *testing.T) {
	h := clitest.NewSmallHub(t, teamFleet(t))
	h.May = func(path string) bool { return strings.Contains(path, "/namespaces/fleet/") }
	out, errs, code := runSmall(t, "get clusters") // fleet is the namespace of the kubeconfig's context
	checkOwn(t, "get clusters", out, errs, code, 0, []string{"edge1", "edge2", "edge3", "v1.36.3"},
		[]string{"cannot list ClusterRegistrations in all namespaces: showing namespace fleet\n"})
	out, errs, code = runSmall(t, "explain edge1")
	checkOwn(t, "explain edge1", out, errs, code, 0, []string{"Kubernetes:  v1.36.3"},
		[]string{"cannot list ClusterRegistrations in all namespaces: showing namespace fleet\n"})
	// With his clusters' namespace and a Team's, he sees what that has there, though he may not read the Team.
	h.May = func(path string) bool {
		return strings.Contains(path, "/namespaces/fleet/") || mayTeam.MatchString(path)
	}
	out, errs, code = runSmall(t, "explain fleet/edge1 -n shop")
	checkOwn(t, "explain fleet/edge1 -n shop", out, errs, code, exit.Uncertain, nil, []string{"is not in namespace"})
	useNamespace(t, "shop")
	out, errs, code = runSmall(t, "explain fleet/edge1")
	checkOwn(t, "explain fleet/edge1", out, errs, code, 0, []string{"Kubernetes:  v1.36.3", "cache   shop/web   Ready", "web     shop/web   Failed",
		"Note: you may not list the AddonSets in namespace flux-system, so nothing is said about them"}, nil)
}

// useNamespace makes a namespace that of the kubeconfig's context.
func useNamespace(t *testing.T, namespace string) {
	t.Helper()
	raw := must.Read(t, os.Getenv("KUBECONFIG"))
	write(t, os.Getenv("KUBECONFIG"), strings.Replace(string(raw), "namespace: fleet", "namespace: "+namespace, 1))
}

var columns = regexp.MustCompile(` {3,}`)

func checkOwn(t *testing.T, args, out, errs string, code, want int, inOut, inErrs []string) {
	t.Helper()
	ok := code == want && (want != 0 || strings.Count(errs, "\n") <= 1)
	for _, text := range inOut {
		ok = ok && strings.Contains(columns.ReplaceAllString(out, "   "), columns.ReplaceAllString(text, "   "))
	}
	for _, text := range inErrs {
		ok = ok && strings.Contains(errs, text)
	}
	if !ok {
		t.Errorf("chandler %s ends with %d:\n%s\n%s\nwant %d, %q and %q", args, code, out, errs, want, inOut, inErrs)
	}
}
