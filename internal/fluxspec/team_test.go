// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
)

// devTeam may be in namespaces apps and <cluster>-db, and says nothing about sources.
func devTeam() *fluxspec.TeamRules {
	return &fluxspec.TeamRules{Name: "dev-team", Namespaces: []string{"apps", "<< cluster.name >>-db"}}
}

const (
	teamChart = "chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: podinfo}}}\n"
	teamKs    = "sourceRef: {kind: GitRepository, name: fleet}\n"
)

func TestTeamBodies(t *testing.T) {
	objects := func(text string) string { return "objects: [" + text + "]" }
	cases := map[string]struct {
		kind, body string
		want       []string // each path with a part of its message; none if it is good
	}{
		"Chart":               {"HelmRelease", teamChart, nil},
		"ItsNamespaces":       {"HelmRelease", teamChart + "targetNamespace: apps\nstorageNamespace: prod1-db", nil},
		"OtherNamespace":      {"HelmRelease", teamChart + "targetNamespace: kube-system", []string{`targetNamespace: Team dev-team: "kube-system" is not one of the Team's namespaces, apps, << cluster.name >>-db; ask who keeps the Team`}},
		"OtherStorage":        {"HelmRelease", teamChart + "storageNamespace: kube-system", []string{`storageNamespace: Team dev-team: "kube-system"`}},
		"HubsNamespace":       {"HelmRelease", teamChart + "targetNamespace: ''", []string{"targetNamespace: is empty"}},
		"OnlyTheEnd":          {"HelmRelease", teamChart + "targetNamespace: a-db", nil}, // each cluster tells
		"TooShort":            {"HelmRelease", teamChart + "targetNamespace: db", []string{"targetNamespace: "}},
		"NullNamespace":       {"HelmRelease", teamChart + "targetNamespace: null", []string{"targetNamespace: must not be null"}},
		"CreateNamespace":     {"HelmRelease", teamChart + "install: {createNamespace: true}", []string{"install.createNamespace: Team dev-team: its namespaces are made by the hub"}},
		"NoCreateNamespace":   {"HelmRelease", teamChart + "install: {createNamespace: false}", nil},
		"CRDs":                {"HelmRelease", teamChart + "install: {crds: Create}\nupgrade: {crds: CreateReplace}", []string{"install.crds: Team dev-team: CustomResourceDefinitions", "upgrade.crds: Team dev-team: CustomResourceDefinitions"}},
		"CRDsSkipped":         {"HelmRelease", teamChart + "install: {crds: Skip}\nupgrade: {crds: Skip}", nil},
		"CRDsByNull":          {"HelmRelease", teamChart + "install: {crds: null}", []string{"install.crds: Team dev-team: the default counts"}},
		"CRDsByNoInstall":     {"HelmRelease", teamChart + "install: null", []string{"install: Team dev-team: the default counts"}},
		"Impersonation":       {"HelmRelease", teamChart + "serviceAccountName: admin", []string{"serviceAccountName: Team dev-team: its add-ons come to the cluster as the Team's own ServiceAccount"}},
		"ImpersonationOfKs":   {"Kustomization", teamKs + "serviceAccountName: admin", []string{"serviceAccountName: Team dev-team"}},
		"KubeConfig":          {"Kustomization", teamKs + "kubeConfig: {secretRef: {name: admin}}", []string{"kubeConfig: is set by the hub"}},
		"ForeignSource":       {"Kustomization", "sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}", []string{"sourceRef.namespace: "}},
		"ForeignChart":        {"HelmRelease", "chartRef: {kind: HelmChart, name: x, namespace: flux-system}", []string{"chartRef.namespace: "}},
		"Kustomization":       {"Kustomization", teamKs + "path: ./a\ncomponents: [../b]\npatches: [{patch: x}]\npostBuild: {substituteFrom: [{kind: Secret, name: s}]}\ndecryption: {provider: sops, secretRef: {name: keys}, serviceAccountName: keys}", nil},
		"KsTarget":            {"Kustomization", teamKs + "targetNamespace: apps", nil},
		"KsNoTarget":          {"Kustomization", teamKs + "targetNamespace: ''", []string{"targetNamespace: is empty"}},
		"KsOtherTarget":       {"Kustomization", teamKs + "targetNamespace: kube-system", []string{"targetNamespace: Team dev-team"}},
		"Valued":              {"HelmRelease", teamChart + "valuesFrom: [{kind: Secret, name: s}]\npostRenderers: [{kustomize: {patches: [{patch: x}]}}]", nil},
		"Objects":             {"Manifests", objects("{apiVersion: v1, kind: Secret, metadata: {name: a}}, {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: apps}}, {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: ''}}"), nil},
		"OtherObjects":        {"Manifests", objects("{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kube-system}}"), []string{`objects[0].metadata.namespace: Team dev-team: "kube-system"`}},
		"NoTextNamespace":     {"Manifests", objects("{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: [kube-system]}}"), []string{"objects[0].metadata.namespace: must be a text"}},
		"ManifestsTarget":     {"Manifests", objects("{apiVersion: v1, kind: Secret, metadata: {name: a}}") + "\ntargetNamespace: default", []string{"targetNamespace: Team dev-team"}},
		"ManifestsNullTarget": {"Manifests", objects("{apiVersion: v1, kind: Secret, metadata: {name: a}}") + "\ntargetNamespace: null", []string{"targetNamespace: Team dev-team: the default counts"}},
		"Namespace":           {"Manifests", objects("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), []string{"objects[0].kind: Team dev-team: a Namespace is the whole cluster's, and its add-ons bring objects of its namespaces only; a platform set can deliver it; ask who keeps the Team"}},
		"ClusterRoles":        {"Manifests", objects("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}, {apiVersion: rbac.authorization.k8s.io/v1beta1, kind: ClusterRoleBinding, metadata: {name: a}}"), []string{"objects[0].kind: ", "objects[1].kind: "}},
		"CRDObject":           {"Manifests", objects("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}"), []string{"objects[0].kind: "}},
		"Webhook":             {"Manifests", objects("{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}}"), []string{"objects[0].kind: "}},
		"Policy":              {"Manifests", objects("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: a}}"), []string{"objects[0].kind: "}},
		"APIService":          {"Manifests", objects("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}}"), []string{"objects[0].kind: "}},
		"Copies":              {"Manifests", "manifestsFrom: [{kind: Secret, name: a, copyAs: {}}, {kind: Secret, name: a, copyAs: {namespace: apps}}, {kind: Secret, name: a, copyAs: {namespace: kube-system}}]", []string{"manifestsFrom[2].copyAs.namespace: Team dev-team: "}},
		"OthersKind":          {"Manifests", objects("{apiVersion: example.org/v1, kind: Namespace, metadata: {name: a}}"), nil},
		"RoleBinding":         {"Manifests", objects("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: apps}}"), nil},
		"List":                {"Manifests", objects("{apiVersion: v1, kind: List, metadata: {name: a}, items: [{apiVersion: v1, kind: Secret, metadata: {namespace: kube-system}}, {apiVersion: v1, kind: Node}]}"), []string{`objects[0].items[0].metadata.namespace: `, "objects[0].items[1].kind: "}},
		"ListWithoutKinds":    {"Manifests", objects("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleList, metadata: {name: a}, items: [{metadata: {name: b}}]}"), []string{"objects[0].items[0].kind: "}},
		"ListInAList":         {"Manifests", objects("{apiVersion: v1, kind: List, metadata: {name: a}, items: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Namespace}]}]}"), []string{"objects[0].items[0].items[0].kind: "}},
		"ListByAnotherName":   {"Manifests", objects("{apiVersion: v1, kind: Secret, metadata: {name: a}, items: [{apiVersion: v1, kind: Namespace}]}"), []string{"objects[0].items[0].kind: "}},
	}
	author := fluxspec.Author{Namespace: "dev-team", Set: "s", Team: devTeam()}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wantProblems(t, fluxspec.Check(tc.kind, body(t, tc.body), author), tc.want)
			if author := (fluxspec.Author{Namespace: "flux-system", Platform: true}); !strings.Contains(tc.body, "targetNamespace: ''") && !strings.Contains(name, "Null") && name != "KubeConfig" {
				wantProblems(t, fluxspec.Check(tc.kind, body(t, tc.body), author), nil)
			}
		})
	}
}

// wantProblems wants each problem to start with what is wanted of it, in order.
func wantProblems(t *testing.T, got []fluxspec.Problem, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d: %v", len(got), len(want), got)
	}
	for i, p := range got {
		if text := p.Path + ": " + p.Message; !strings.HasPrefix(text, want[i]) {
			t.Errorf("got %q, want %q", text, want[i])
		}
	}
}

// TestTeamParts: in an overlay, null takes a field away, and what is not there is not missed.
func TestTeamParts(t *testing.T) {
	r := devTeam()
	r.RequireVerification = true
	author := fluxspec.Author{Namespace: "dev-team", Team: r}
	wantProblems(t, fluxspec.CheckPart("HelmRelease", body(t, "targetNamespace: null\ninstall: {crds: null}\nchart: {spec: {sourceRef: {kind: HelmRepository}}}"), author), nil)
	wantProblems(t, fluxspec.CheckPart("HelmRelease", body(t, "targetNamespace: default\ninstall: {crds: Create}"), author), []string{"install.crds: ", "targetNamespace: "})
	hole := map[string]any{"targetNamespace": fluxspec.Hole{Sample: "1m"}, "install": map[string]any{"crds": fluxspec.Hole{Sample: "1m"}, "createNamespace": fluxspec.Hole{Sample: true}}}
	wantProblems(t, fluxspec.CheckPart("HelmRelease", hole, author), nil)
}

func TestTeamSources(t *testing.T) {
	const verify = ", verify: {secretRef: {name: keys}}"
	allow := func(r *fluxspec.TeamRules) { r.Allow = []string{"https://git.example.org/dev-team/*"} }
	kinds := func(r *fluxspec.TeamRules) { r.Kinds = []string{"GitRepository", "OCIRepository"} }
	signed := func(r *fluxspec.TeamRules) { r.RequireVerification = true }
	bucket := func(r *fluxspec.TeamRules) { r.Allow = []string{"https://s3.example.org/dev-*"} }
	google := func(r *fluxspec.TeamRules) { r.Allow = []string{"https://storage.googleapis.com/dev-*"} }
	cases := map[string]struct {
		rules      func(*fluxspec.TeamRules)
		kind, spec string
		want       []string
	}{
		"AnyWithoutRules":   {func(*fluxspec.TeamRules) {}, "GitRepository", "url: https://evil.example/x, recurseSubmodules: true, include: [{repository: {name: x}}]", nil},
		"Allowed":           {allow, "GitRepository", "url: https://git.example.org/dev-team/app, secretRef: {name: s}, provider: azure, serviceAccountName: x", nil},
		"Proxy":             {allow, "GitRepository", "url: https://git.example.org/dev-team/app, proxySecretRef: {name: s}", []string{"proxySecretRef: Team dev-team: proxySecretRef may send Flux anywhere"}},
		"ProxyOfAny":        {signed, "GitRepository", "url: https://x.example/y, proxySecretRef: {name: s}" + verify, []string{"proxySecretRef: Team dev-team: proxySecretRef may send Flux anywhere"}},
		"STS":               {bucket, "Bucket", "endpoint: s3.example.org, bucketName: dev-a, sts: {provider: ldap, endpoint: 'https://evil.example'}", []string{"sts: Team dev-team"}},
		"NotAllowed":        {allow, "GitRepository", "url: https://git.example.org/other/app", []string{`url: Team dev-team: allows sources at https://git.example.org/dev-team/*, and this is "https://git.example.org/other/app"; ask who keeps the Team`}},
		"HelmNotAllowed":    {allow, "HelmRepository", "url: https://charts.example.org", []string{"url: Team dev-team"}},
		"OCINotAllowed":     {allow, "OCIRepository", "url: oci://git.example.org/dev-team/app", []string{"url: Team dev-team"}},
		"Submodules":        {allow, "GitRepository", "url: https://git.example.org/dev-team/app, recurseSubmodules: true", []string{"recurseSubmodules: Team dev-team"}},
		"Include":           {allow, "GitRepository", "url: https://git.example.org/dev-team/app, include: [{repository: {name: x}}]", []string{"include: Team dev-team"}},
		"Kind":              {kinds, "GitRepository", "url: https://evil.example/x", nil},
		"OtherKind":         {kinds, "HelmRepository", "url: https://evil.example/x", []string{": Team dev-team: allows sources of the kinds GitRepository, OCIRepository, and this is a HelmRepository; ask"}},
		"Bucket":            {bucket, "Bucket", "endpoint: s3.example.org, bucketName: dev-a", nil},
		"OtherBucket":       {bucket, "Bucket", "endpoint: s3.example.org, bucketName: ops", []string{`endpoint: Team dev-team: allows sources at https://s3.example.org/dev-*, and this is "https://s3.example.org/ops"`}},
		"BucketUp":          {bucket, "Bucket", "endpoint: s3.example.org, bucketName: dev-/../ops", []string{"endpoint: "}},
		"BucketElsewhere":   {bucket, "Bucket", "endpoint: evil.example, bucketName: dev-a", []string{"endpoint: "}},
		"BucketInTheClear":  {bucket, "Bucket", "endpoint: s3.example.org, bucketName: dev-a, insecure: true", []string{"endpoint: "}},
		"BucketAsURL":       {bucket, "Bucket", "endpoint: 'https://s3.example.org/', bucketName: dev-a, provider: azure, secretRef: {name: s}", nil},
		"BucketAsOtherURL":  {bucket, "Bucket", "endpoint: 'https://s3.example.org@evil.example/', bucketName: dev-a", []string{"endpoint: "}},
		"BucketOfGoogle":    {bucket, "Bucket", "endpoint: s3.example.org, bucketName: dev-a, provider: gcp", []string{`endpoint: Team dev-team: allows sources at https://s3.example.org/dev-*, and this is "https://storage.googleapis.com/dev-a"`, "provider: Team dev-team: with gcp"}},
		"GooglesBucket":     {google, "Bucket", "endpoint: storage.googleapis.com, bucketName: dev-a, provider: gcp, serviceAccountName: s", nil},
		"Signed":            {signed, "GitRepository", "url: https://x.example/y" + verify, nil},
		"SignedOCI":         {signed, "OCIRepository", "url: oci://x.example/y, verify: {provider: cosign}", nil},
		"Unsigned":          {signed, "GitRepository", "url: https://x.example/y", []string{"verify: Team dev-team: wants every source to verify a signature"}},
		"UnsignedByNull":    {signed, "GitRepository", "url: https://x.example/y, verify: null", []string{"verify: "}},
		"UnsignedByNothing": {signed, "OCIRepository", "url: oci://x.example/y, verify: {}", []string{"verify: "}},
		"UnsignedBucket":    {signed, "Bucket", "endpoint: x.example, bucketName: b", []string{": Team dev-team: wants every source to verify a signature, and a Bucket has none"}},
		"SignedCharts":      {signed, "HelmRepository", "url: oci://x.example/y, type: oci", nil},
		"UnsignedCharts":    {signed, "HelmRepository", "url: https://x.example/y", []string{"type: Team dev-team"}},
		"EmptyURL":          {allow, "GitRepository", "url: ''", []string{"url: is required"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := devTeam()
			tc.rules(r)
			got := fluxspec.CheckSource(tc.kind, body(t, "{"+tc.spec+"}"), fluxspec.Author{Namespace: "dev-team", Team: r})
			wantProblems(t, got, tc.want)
		})
	}
}

// TestTeamCharts: a HelmRelease verifies what it takes from a HelmRepository, which cannot do it itself.
func TestTeamCharts(t *testing.T) {
	r := devTeam()
	r.RequireVerification = true
	author := fluxspec.Author{Namespace: "dev-team", Team: r}
	cases := map[string]struct {
		body string
		want []string
	}{
		"Unsigned":       {teamChart, []string{"chart.spec.verify: Team dev-team: wants every source to verify a signature"}},
		"Signed":         {"chart: {spec: {chart: c, verify: {provider: cosign}, sourceRef: {kind: HelmRepository, name: r}}}", nil},
		"Null":           {"chart: {spec: {chart: c, verify: null, sourceRef: {kind: HelmRepository, name: r}}}", []string{"chart.spec.verify: "}},
		"Empty":          {"chart: {spec: {chart: c, verify: {}, sourceRef: {kind: HelmRepository, name: r}}}", []string{"chart.spec.verify: "}},
		"OfARepository":  {"chart: {spec: {chart: c, sourceRef: {kind: GitRepository, name: r}}}", nil},
		"OfAnOCIArchive": {"chartRef: {kind: OCIRepository, name: r}", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { wantProblems(t, fluxspec.Check("HelmRelease", body(t, tc.body), author), tc.want) })
	}
}

func TestTeamDefault(t *testing.T) {
	varying := devTeam()
	varying.Namespaces = varying.Namespaces[1:]
	cases := map[string]struct {
		team             *fluxspec.TeamRules
		kind, body, want string
	}{
		"HelmRelease": {devTeam(), "HelmRelease", teamChart, teamChart + `
interval: 10m
releaseName: web
targetNamespace: apps
storageNamespace: apps
driftDetection: {mode: enabled}
install: {createNamespace: false, crds: Skip, strategy: {name: RetryOnFailure}}
upgrade: {crds: Skip, strategy: {name: RetryOnFailure}}`},
		"OwnChoice": {devTeam(), "HelmRelease", teamChart + "targetNamespace: prod1-db", teamChart + `
interval: 10m
releaseName: web
targetNamespace: prod1-db
storageNamespace: prod1-db
driftDetection: {mode: enabled}
install: {createNamespace: false, crds: Skip, strategy: {name: RetryOnFailure}}
upgrade: {crds: Skip, strategy: {name: RetryOnFailure}}`},
		"Manifests": {devTeam(), "Manifests", "{}", `
interval: 10m
releaseName: web
targetNamespace: apps
storageNamespace: apps
driftDetection: {mode: enabled}
install: {createNamespace: false, crds: Skip, strategy: {name: RetryOnFailure}}
upgrade: {crds: Skip, strategy: {name: RetryOnFailure}, chartNameChangeStrategy: InPlaceUpdate}`},
		"NotKnown": {varying, "HelmRelease", teamChart, teamChart + `
interval: 10m
releaseName: web
targetNamespace: ""
storageNamespace: ""
driftDetection: {mode: enabled}
install: {createNamespace: false, crds: Skip, strategy: {name: RetryOnFailure}}
upgrade: {crds: Skip, strategy: {name: RetryOnFailure}}`},
		"Kustomization": {devTeam(), "Kustomization", "path: ./a", "{path: ./a, interval: 10m, retryInterval: 2m, prune: true, deletionPolicy: WaitForTermination}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := body(t, tc.body)
			fluxspec.Default(tc.kind, got, "web", tc.team)
			must.Equal(t, body(t, tc.want), got)
		})
	}
}

func TestTeamHas(t *testing.T) {
	cases := []struct {
		name, namespace string
		want            bool
	}{
		{"apps", "apps", true},
		{"apps", "app", false},
		{"apps", "", false},
		{"", "", false},
		{"<< cluster.name >>-apps", "prod-apps", true},
		{"<< cluster.name >>-apps", "kube-system", false},
		{"<< cluster.name >>", "anything", true},
		{"a<< '>>' >>b<< cluster.name >>c", "axc", true},
		{"a<< cluster.name >>a", "a", false},
		{"a<< cluster.name", "a<< cluster.name", true},
	}
	for _, tc := range cases {
		if got := (&fluxspec.TeamRules{Namespaces: []string{"other", tc.name}}).Has(tc.namespace); got != tc.want {
			t.Errorf("namespace %q of the Team, %q: got %v, want %v", tc.name, tc.namespace, got, tc.want)
		}
	}
}

// TestTeamHash: whatever a Team allows is in the hash, since programs are kept by it.
func TestTeamHash(t *testing.T) {
	if got := (*fluxspec.TeamRules)(nil).Hash(); got != "" {
		t.Errorf("no Team has hash %q", got)
	}
	seen := map[string]string{devTeam().Hash(): "Same"}
	for name, change := range map[string]func(*fluxspec.TeamRules){
		"Name":         func(r *fluxspec.TeamRules) { r.Name = "x" },
		"Namespaces":   func(r *fluxspec.TeamRules) { r.Namespaces = []string{"apps"} },
		"Order":        func(r *fluxspec.TeamRules) { r.Namespaces = []string{"<< cluster.name >>-db", "apps"} },
		"Allow":        func(r *fluxspec.TeamRules) { r.Allow = []string{"apps"} },
		"Kinds":        func(r *fluxspec.TeamRules) { r.Kinds = []string{"apps"} },
		"Verification": func(r *fluxspec.TeamRules) { r.RequireVerification = true },
		"Priority":     func(r *fluxspec.TeamRules) { r.MaxPriority = 1 },
		"Addons":       func(r *fluxspec.TeamRules) { r.MaxAddons = 1 },
	} {
		r := devTeam()
		change(r)
		if other, ok := seen[r.Hash()]; ok {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[r.Hash()] = name
	}
	if one, other := devTeam(), devTeam(); one.Hash() != other.Hash() {
		t.Error("the same rules have two hashes")
	}
}

// TestHoleOfAnyType: nothing is said of a value that only a cluster gives, also where it must be a duration.
func TestHoleOfAnyType(t *testing.T) {
	hole := fluxspec.Hole{}
	bodies := map[string]map[string]any{
		"HelmRelease":   {"interval": hole, "timeout": hole, "values": map[string]any{"a": hole}, "chartRef": map[string]any{"kind": "OCIRepository", "name": hole}},
		"Kustomization": {"interval": hole, "retryInterval": hole, "path": hole, "prune": hole, "sourceRef": map[string]any{"kind": "GitRepository", "name": hole}},
	}
	for kind, body := range bodies {
		if got := fluxspec.Check(kind, body, fluxspec.Author{Namespace: "flux-system", Platform: true}); len(got) > 0 {
			t.Errorf("%s: %v", kind, got)
		}
	}
	if got := fluxspec.CheckSource("HelmRepository", map[string]any{"interval": hole, "url": hole}, fluxspec.Author{Namespace: "flux-system", Platform: true}); len(got) > 0 {
		t.Errorf("a source: %v", got)
	}
}
