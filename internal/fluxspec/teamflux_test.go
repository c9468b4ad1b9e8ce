// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// TestTeamBorrowsNothing: a team without a word about its sources gets neither Flux's keys, nor its identity in a cloud, nor its workers for
// long.
func TestTeamBorrowsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, body string
		want       []string
	}{
		"Decryption":        {"Kustomization", teamKs + "decryption: {provider: sops}", []string{"decryption.secretRef: Team dev-team: without it, Flux decrypts with keys of its own", "decryption.serviceAccountName: Team dev-team: "}},
		"DecryptionByCloud": {"Kustomization", teamKs + "decryption: {provider: sops, secretRef: {name: keys}}", []string{"decryption.serviceAccountName: Team dev-team: without it, Flux asks a cloud's key service as itself"}},
		"DecryptionOfOwn":   {"Kustomization", teamKs + "decryption: {provider: sops, secretRef: {name: keys}, serviceAccountName: keys}", nil},
		"LongTimeout":       {"Kustomization", teamKs + "timeout: 8760h\nwait: true", []string{"timeout: Team dev-team: Flux's workers serve all teams, so this is at most 30m, and not 8760h; ask who keeps the Team"}},
		"OftenKs":           {"Kustomization", teamKs + "interval: 1s\nretryInterval: 1s", []string{"interval: Team dev-team: ", "retryInterval: Team dev-team: Flux's workers serve all teams, so this is at least 10s, and not 1s"}},
		"BoundsKs":          {"Kustomization", teamKs + "interval: 10s\nretryInterval: 10s\ntimeout: 30m", nil},
		"LongActions":       {"HelmRelease", teamChart + "install: {timeout: 31m}\nupgrade: {timeout: 31m, strategy: {name: RetryOnFailure, retryInterval: 1s}}\nuninstall: {timeout: 2h}", []string{"install.timeout: ", "uninstall.timeout: ", "upgrade.strategy.retryInterval: ", "upgrade.timeout: "}},
		"OftenCharts":       {"HelmRelease", "chart: {spec: {chart: podinfo, interval: 1s, sourceRef: {kind: HelmRepository, name: podinfo}}}", []string{"chart.spec.interval: "}},
		"Manifests":         {"Manifests", "objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]\ninterval: 1s\ntimeout: 24h", []string{"interval: ", "timeout: "}},
		"OciOfACloud":       {"OCIRepository", "url: oci://123456789012.dkr.ecr.eu-central-1.amazonaws.com/x, provider: aws", []string{"provider: Team dev-team: with aws, Flux logs in with its own identity; write serviceAccountName"}},
		"OciOfTheTeam":      {"OCIRepository", "url: oci://123456789012.dkr.ecr.eu-central-1.amazonaws.com/x, provider: aws, serviceAccountName: x", nil},
		"OciGeneric":        {"OCIRepository", "url: oci://ghcr.io/x/y, provider: generic", nil},
		"GitOfAzure":        {"GitRepository", "url: https://dev.azure.com/x, provider: azure", []string{"provider: "}},
		"GitHub":            {"GitRepository", "url: https://github.com/x/y, provider: github, secretRef: {name: app}", nil},
		"HelmOfACloud":      {"HelmRepository", "url: oci://x.azurecr.io/x, type: oci, provider: azure", []string{"provider: Team dev-team: with azure, Flux logs in with its own identity; an OCIRepository can name a ServiceAccount of the team's"}},
		"BucketOfACloud":    {"Bucket", "endpoint: s3.amazonaws.com, bucketName: x, provider: aws", []string{"provider: "}},
		"BucketSTS":         {"Bucket", "endpoint: s3.example.org, bucketName: x, sts: {provider: ldap, endpoint: 'http://10.0.0.1'}", []string{"sts: Team dev-team: sts may send Flux anywhere"}},
		"OftenSource":       {"GitRepository", "url: https://git.example.org/x, interval: 1s, timeout: 60m", []string{"interval: ", "timeout: "}},
	} {
		author := fluxspec.Author{Namespace: "dev-team", Team: devTeam()}
		var got []fluxspec.Problem
		if strings.HasSuffix(tc.kind, "Repository") || tc.kind == "Bucket" {
			got = fluxspec.CheckSource(tc.kind, body(t, "{"+tc.body+"}"), author)
		} else {
			got = fluxspec.Check(tc.kind, body(t, tc.body), author)
		}
		t.Run(name, func(t *testing.T) { wantProblems(t, got, tc.want) })
	}
}

// TestTeamPlaces: a source of a team is on the public internet, or at a host that the Team names.
func TestTeamPlaces(t *testing.T) {
	for _, url := range []string{
		"http://169.254.169.254/latest", "http://127.0.0.1:9000/x", "http://127.1/x", "http://0x7f000001/x", "http://2130706433/x", "http://10.1.2.3/x",
		"http://172.16.0.1/x", "http://192.168.1.1/x", "http://100.64.0.1/x", "http://0.0.0.0/x", "http://[::1]:80/x", "http://[fd00::1]/x", "http://[fe80::1]/x",
		"http://[::ffff:10.0.0.1]/x", "http://[64:ff9b::a00:1]/x", "http://localhost/x", "http://a.localhost/x", "http://source-controller/x",
		"http://source-controller.flux-system.svc/x", "http://source-controller.flux-system.svc./x", "http://source-controller.flux-system.SVC.cluster.local/x",
		"http://x.y.svc.example.org/x", "http://metadata.google.internal/x", "http://metadata/x", "http://nas.local/x", "https://user@10.0.0.1/x",
	} {
		r := devTeam()
		refused := func() bool {
			return len(fluxspec.CheckSource("HelmRepository", map[string]any{"url": url}, fluxspec.Author{Namespace: "dev-team", Team: r})) > 0
		}
		if !refused() {
			t.Errorf("%s is not refused", url)
		}
		if r.Allow = []string{url}; !refused() == strings.Contains(url, "%") {
			t.Errorf("%s is refused, and the Team names it", url)
		}
		if r.Allow = []string{"https://*.example.org/*", "http://*.*.*.*/*", "http://*.svc/*"}; !refused() {
			t.Errorf("%s is not refused, and the Team names other hosts", url)
		}
	}
	for _, url := range []string{"https://charts.example.org/x", "https://8.8.8.8/x", "https://[2606:4700::1]/x"} {
		if got := fluxspec.CheckSource("HelmRepository", map[string]any{"url": url}, fluxspec.Author{Namespace: "dev-team", Team: devTeam()}); len(got) > 0 {
			t.Errorf("%s: %v", url, got)
		}
	}
	// A platform's set goes where it likes.
	if got := fluxspec.CheckSource("HelmRepository", map[string]any{"url": "http://charts.default.svc"}, fluxspec.Author{Namespace: "flux-system", Platform: true}); len(got) > 0 {
		t.Error(got)
	}
}
