// SPDX-License-Identifier: Apache-2.0

package workloadidentity_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

const (
	eks = "arn:aws:eks:eu-central-1:123456789012:cluster/prod"
	aks = "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/fleet/providers/Microsoft.ContainerService/managedClusters/prod"
	gke = "projects/fleet/locations/europe-west1/clusters/prod"
)

// ca is a certificate that expired long ago: whether it is still good is for the connection to find out.
const ca = `-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIBATAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDEwR0ZXN0MB4X
DTIwMDEwMTAwMDAwMFoXDTIxMDEwMTAwMDAwMFowDzENMAsGA1UEAxMEdGVzdDBZ
-----END CERTIFICATE-----
`

func TestCheck(t *testing.T) {
	with := func(change func(*hubv1.WorkloadIdentity)) *hubv1.WorkloadIdentity {
		w := &hubv1.WorkloadIdentity{Provider: "generic", Address: "https://prod.example.org:6443", ServiceAccountName: "deployer"}
		change(w)
		return w
	}
	aws := &hubv1.WorkloadIdentity{Provider: "aws", Cluster: eks, ServiceAccountName: "deployer"}
	lifted := kubeconfig.Rules{AllowMissingCA: true, AllowHTTP: true, ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("198.51.100.1:6443")}}
	cases := map[string]struct {
		in     *hubv1.WorkloadIdentity
		rules  kubeconfig.Rules
		want   map[string]string
		reason string
		says   string
	}{
		"AWS":             {in: aws, want: map[string]string{"provider": "aws", "cluster": eks, "serviceAccountName": "deployer"}},
		"Azure":           {in: &hubv1.WorkloadIdentity{Provider: "azure", Cluster: aks, ServiceAccountName: "a"}, want: map[string]string{"provider": "azure", "cluster": aks, "serviceAccountName": "a"}},
		"GCP":             {in: &hubv1.WorkloadIdentity{Provider: "gcp", Cluster: gke, ServiceAccountName: "a"}, want: map[string]string{"provider": "gcp", "cluster": gke, "serviceAccountName": "a"}},
		"Generic":         {in: with(func(w *hubv1.WorkloadIdentity) { w.Audiences = []string{"a", "b"} }), rules: lifted, want: map[string]string{"provider": "generic", "address": "https://prod.example.org:6443", "serviceAccountName": "deployer", "audiences": "a\nb"}},
		"NoAccount":       {in: with(func(w *hubv1.WorkloadIdentity) { w.ServiceAccountName = "" }), rules: lifted, reason: "WorkloadIdentityInvalid", says: "serviceAccountName: is missing"},
		"ClusterOfOther":  {in: &hubv1.WorkloadIdentity{Provider: "gcp", Cluster: eks, ServiceAccountName: "a"}, reason: "WorkloadIdentityInvalid", says: "projects/<project>"},
		"MissingCA":       {in: with(func(*hubv1.WorkloadIdentity) {}), reason: "CAMissing", says: "caBundle: is missing"},
		"MissingCAOfEKS":  {in: &hubv1.WorkloadIdentity{Provider: "aws", Cluster: eks, Address: "https://prod.example.org", ServiceAccountName: "a"}, want: map[string]string{"provider": "aws", "cluster": eks, "address": "https://prod.example.org", "serviceAccountName": "a"}},
		"BadCA":           {in: with(func(w *hubv1.WorkloadIdentity) { w.CABundle = ca }), reason: "CAInvalid", says: "write it as PEM"},
		"Base64CA":        {in: with(func(w *hubv1.WorkloadIdentity) { w.CABundle = "LS0tLS1CRUdJTg==" }), reason: "CAInvalid", says: "write it as PEM"},
		"Loopback":        {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://127.0.0.1:6443" }), rules: lifted, reason: "AddressForbidden", says: "workloadIdentity.address"},
		"LoopbackOfAzure": {in: &hubv1.WorkloadIdentity{Provider: "azure", Cluster: aks, Address: "https://localhost", ServiceAccountName: "a"}, reason: "AddressForbidden"},
		"Metadata":        {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://169.254.169.254" }), rules: lifted, reason: "AddressForbidden"},
		"Service":         {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://vault.secrets.svc:8200" }), rules: lifted, reason: "AddressForbidden"},
		"ServiceOfDomain": {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://vault.secrets.svc.corp:8200" }), rules: lifted, reason: "AddressForbidden"},
		"LocalName":       {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://a.localhost:6443" }), rules: lifted, reason: "AddressForbidden"},
		"MetadataName":    {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://metadata.google.internal" }), rules: lifted, reason: "AddressForbidden"},
		// It may be a domain, and the hub resolves no name here: docs/workload-identity.md says so.
		"ShortService": {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://vault.secrets:8200" }), rules: lifted, want: map[string]string{"provider": "generic", "address": "https://vault.secrets:8200", "serviceAccountName": "deployer"}},
		"Hub":          {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://kubernetes.default.svc" }), rules: lifted, reason: "TargetIsHub"},
		"HubByAddress": {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://198.51.100.1:6443" }), rules: lifted, reason: "TargetIsHub"},
		"HTTP":         {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "http://prod.example.org" }), rules: lifted, reason: "ServerInvalid"},
		"Path":         {in: with(func(w *hubv1.WorkloadIdentity) { w.Address = "https://prod.example.org/k8s/clusters/c-1" }), rules: lifted, reason: "ServerInvalid", says: "without a path"},
		"AudienceOfHub": {in: with(func(w *hubv1.WorkloadIdentity) {
			w.Audiences = []string{"x", "https://kubernetes.default.svc.cluster.local"}
		}), rules: lifted, reason: "WorkloadIdentityInvalid", says: "audiences[1]"},
		"AudienceOfHubIP": {in: with(func(w *hubv1.WorkloadIdentity) { w.Audiences = []string{"https://198.51.100.1:6443"} }), rules: lifted, reason: "WorkloadIdentityInvalid", says: "audiences[0]"},
		"TwoAudiences":    {in: with(func(w *hubv1.WorkloadIdentity) { w.Audiences = []string{"a\nhttps://kubernetes.default.svc"} }), rules: lifted, reason: "WorkloadIdentityInvalid", says: "audiences[0]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := workloadidentity.Check(tc.in, tc.rules)
			var refused *kubeconfig.Error
			switch {
			case tc.reason == "" && err != nil:
				t.Fatal(err)
			case tc.reason == "":
				must.Equal(t, tc.want, got.Data)
			case !errors.As(err, &refused) || refused.Reason != tc.reason || !strings.Contains(err.Error(), tc.says):
				t.Errorf("got %v, want %s with %q", err, tc.reason, tc.says)
			}
		})
	}
}

// TestFingerprints: the fingerprint follows everything that Flux logs in by; what names the cluster only the name.
func TestFingerprints(t *testing.T) {
	base := hubv1.WorkloadIdentity{Provider: "aws", Cluster: eks, ServiceAccountName: "deployer"}
	for name, tc := range map[string]struct {
		change      func(*hubv1.WorkloadIdentity)
		same, still bool // the fingerprint, and the cluster
	}{
		"Nothing":        {func(*hubv1.WorkloadIdentity) {}, true, true},
		"ServiceAccount": {func(w *hubv1.WorkloadIdentity) { w.ServiceAccountName = "other" }, false, true},
		"Address":        {func(w *hubv1.WorkloadIdentity) { w.Address = "https://prod.example.org" }, false, true},
		"Audiences":      {func(w *hubv1.WorkloadIdentity) { w.Audiences = []string{"a"} }, false, true},
		"Cluster":        {func(w *hubv1.WorkloadIdentity) { w.Cluster += "-2" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := base
			tc.change(&changed)
			a, err := workloadidentity.Check(&base, kubeconfig.Rules{})
			b, err2 := workloadidentity.Check(&changed, kubeconfig.Rules{})
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			if got := a.Fingerprint() == b.Fingerprint(); got != tc.same {
				t.Errorf("same fingerprint: %t", got)
			}
			if got := workloadidentity.Cluster(&base) == workloadidentity.Cluster(&changed); got != tc.still {
				t.Errorf("same cluster: %t", got)
			}
		})
	}
	generic := hubv1.WorkloadIdentity{Provider: "generic", Address: "https://A.example.org"}
	if moved := (hubv1.WorkloadIdentity{Provider: "generic", Address: "https://b.example.org"}); workloadidentity.Cluster(&generic) == workloadidentity.Cluster(&moved) {
		t.Error("without a name, another address is another cluster")
	}
}

func TestRefusal(t *testing.T) {
	platform := func(ns string) bool { return ns == "flux-system" || ns == "platform" }
	for name, tc := range map[string]struct {
		registration, set string
		refused           bool
	}{
		"PlatformBoth":       {"platform", "flux-system", false},
		"PlatformOne":        {"flux-system", "flux-system", false},
		"TenantsOwn":         {"team-a", "team-a", false},
		"TenantsForPlatform": {"team-a", "flux-system", true},
		"TenantsForOther":    {"team-a", "team-b", true},
	} {
		t.Run(name, func(t *testing.T) {
			if why := workloadidentity.Refusal(tc.registration, tc.set, platform); (why != "") != tc.refused {
				t.Errorf("got %q", why)
			}
		})
	}
}
