// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

func registrationSchema(t *testing.T) *crdschema.Schema {
	t.Helper()
	return crdschema.Ours("ClusterRegistration")
}

// TestWorkloadIdentity: every example is what the API server and the hub take, and has the ServiceAccount that it names, with the
// annotations that Flux reads (fluxcd/pkg/auth, options.go of each provider), where Flux looks for it.
func TestWorkloadIdentity(t *testing.T) {
	annotations := map[string][]string{
		"aws": {"eks.amazonaws.com/role-arn"}, "azure": {"azure.workload.identity/client-id", "azure.workload.identity/tenant-id"},
		"gcp": {"iam.gke.io/gcp-service-account"}, "generic": nil,
	}
	s := registrationSchema(t)
	entries := must.Get(examples.FS.ReadDir("workload-identity")).Or(t)
	var seen []string
	for _, e := range entries {
		if e.Name() == "addonset.yaml" {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			text := must.Get(examples.Read(path.Join("workload-identity", e.Name()), map[string]string{"${CA}": "the CA, in PEM"})).Or(t)
			account, reg := &corev1.ServiceAccount{}, &hubv1.ClusterRegistration{}
			docs := documents(t, text)
			if len(docs) != 2 {
				t.Fatalf("it holds %d objects", len(docs))
			}
			must.Do(t, errors.Join(yaml.UnmarshalStrict(docs[0], account), yaml.UnmarshalStrict(docs[1], reg)))
			if err := s.Refuses(docs[1]); err != nil {
				t.Error(err)
			}
			w := reg.Spec.KubeConfig.WorkloadIdentity
			w.CABundle = "" // no certificate
			if _, err := workloadidentity.Check(w, kubeconfig.Rules{AllowMissingCA: true}); err != nil {
				t.Error(err)
			}
			if account.Name != w.ServiceAccountName || account.Namespace != reg.Namespace {
				t.Errorf("the ServiceAccount is %s/%s", account.Namespace, account.Name)
			}
			for _, a := range annotations[w.Provider] {
				if account.Annotations[a] == "" {
					t.Errorf("the ServiceAccount lacks annotation %s", a)
				}
			}
			seen = append(seen, w.Provider)
		})
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"aws", "azure", "gcp", "generic"}) {
		t.Errorf("there are examples for %v", seen)
	}
}

// shared are the settings of a hub that is installed as it comes.
var shared = hubconfig.Shared{HubID: "chandler", PlatformNamespaces: []string{"flux-system"},
	Chart: render.ManifestChart{URL: "http://hub", Name: "c", Digest: "sha256:0"}}

// checked returns the objects in a file that the hub reads. It has checked that the API server would take them.
func checked(t *testing.T, file, text string) []preview.Object {
	t.Helper()
	for _, doc := range documents(t, text) {
		is := &metav1.TypeMeta{}
		must.Do(t, yaml.Unmarshal(doc, is))
		if s := crdschema.Ours(is.Kind); s != nil {
			if err := s.Refuses(doc); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	objects, _, err := preview.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// rendered returns what the hub makes of objects: namespace and add-on of each Flux object, by cluster. There may be no errors
// and no warnings.
func rendered(t *testing.T, objects []preview.Object) map[string][]string {
	t.Helper()
	fleet := must.Get(preview.NewFleet(objects, origin.Policy{})).Or(t)
	got := preview.Render(fleet, preview.Options{Shared: shared})
	if len(got.Errors)+len(got.Warnings) > 0 {
		t.Errorf("errors %v, warnings %v", got.Errors, got.Warnings)
	}
	out := map[string][]string{}
	for _, c := range got.Clusters {
		for _, o := range c.Objects {
			out[c.Name] = append(out[c.Name], o.Manifest.GetNamespace()+" "+o.Addon)
		}
		slices.Sort(out[c.Name])
	}
	return out
}

// TestTeams: the Teams are what the API server and the hub take, and what the hub makes of the files has no error.
func TestTeams(t *testing.T) {
	want := []string{"flux-system team-search", "flux-system team-shop", "search search-web", "shop shop-web"}
	if made := rendered(t, folder(t, "teams")); !slices.Equal(made["edge1"], want) {
		t.Errorf("made %q", made)
	}
}

// folder returns the objects in all YAML files of a folder, as `chandler render -f` reads it.
func folder(t *testing.T, dir string) []preview.Object {
	t.Helper()
	files := must.Get(examples.Folder(dir)).Or(t)
	var objects []preview.Object
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, ".yaml") {
			objects = append(objects, checked(t, file, strings.ReplaceAll(files[file], "${CA}", "the CA, in PEM"))...)
		}
	}
	return objects
}

// TestFolders: every folder renders something as it is, without a hub, or says first why it does not. The index leads to each.
func TestFolders(t *testing.T) {
	says := map[string]string{
		"charts": "charts/README.md", "environments": "environments/README.md", "git": "git/policies/policies.yaml",
		"policies": "policies/README.md", "rollout": "rollout/README.md",
	}
	index := must.Read(t, "README.md")
	entries, err := examples.FS.ReadDir(".")
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d folders (%v)", len(entries), err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			if !strings.Contains(string(index), "\n| ["+e.Name()+"](") {
				t.Error("examples/README.md does not lead here")
			}
			file, ok := says[e.Name()]
			if !ok {
				if len(rendered(t, folder(t, e.Name()))) == 0 {
					t.Error("nothing is rendered")
				}
				return
			}
			text := must.Get(examples.Read(file, nil)).Or(t)
			// The first line below the heading, where there is one.
			if heading, rest, _ := strings.Cut(text, "\n\n"); strings.HasPrefix(heading, "# ") && !strings.Contains(heading, "\n") {
				text = rest
			}
			if first, _, _ := strings.Cut(text, "\n"); !strings.Contains(first, "render") && !strings.Contains(first, "Render") {
				t.Errorf("%s begins %q, and does not say why nothing is rendered", file, first)
			}
		})
	}
}

// TestSamples: the examples that take the place of Flux's samples, as `chandler render -f` reads their folders.
func TestSamples(t *testing.T) {
	for dir, want := range map[string]map[string][]string{
		"hub-spoke": {
			"staging":    {"flux-system configs", "flux-system flagger", "flux-system podinfo"},
			"production": {"flux-system configs", "flux-system flagger", "flux-system podinfo"},
			"edge":       {"flux-system flux", "flux-system sync"},
		},
		"multi-tenancy": {
			"staging":    {"dev-team podinfo", "dev-team settings", "flux-system kyverno", "flux-system policies", "flux-system team-dev-team"},
			"production": {"dev-team podinfo", "dev-team settings", "flux-system kyverno", "flux-system policies", "flux-system team-dev-team"},
		},
		"team-isolation": {
			"staging":    {"flux-system flagger", "flux-system kyverno", "flux-system team-payments", "flux-system team-policies", "payments checkout"},
			"production": {"flux-system flagger", "flux-system kyverno", "flux-system team-payments", "flux-system team-policies", "payments checkout"},
		},
		"multi-cluster": {
			"emea-dev": {"flux-system infra", "flux-system team-kaizen", "kaizen vote", "kaizen vote-1-0"},
			"asia-dev": {"flux-system infra", "flux-system team-kaizen", "kaizen vote", "kaizen vote-1-0"},
			"emea-qa":  {"flux-system infra", "flux-system team-kaizen", "kaizen vote"},
		},
	} {
		t.Run(dir, func(t *testing.T) {
			must.Equal(t, want, rendered(t, folder(t, dir)))
		})
	}
}

// TestRolloutAlerts: the Alerts are for kinds that Flux accepts there (notification-controller, api/v1, CrossNamespaceObjectReference),
// and the one for add-ons matches what the hub makes of the set.
func TestRolloutAlerts(t *testing.T) {
	type alert struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Spec     struct {
			EventSources []struct {
				Kind, Name  string
				MatchLabels map[string]string
			}
		}
	}
	text := must.Get(examples.Read("rollout/alerts.yaml", nil)).Or(t)
	set := must.Get(examples.Read("rollout/addonset.yaml", nil)).Or(t)
	const cluster = "apiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\n" +
		"metadata: {namespace: fleet, name: one, labels: {tier: prod}}\nspec: {kubeConfig: {secretRef: {name: one, key: value}}}\n"
	fleet := must.Get(preview.NewFleet(checked(t, "addonset.yaml", set+"---\n"+cluster), origin.Policy{})).Or(t)
	made := preview.Render(fleet, preview.Options{Shared: shared}).Clusters[0].Objects
	watched := 0
	for _, doc := range documents(t, text) {
		a := &alert{}
		must.Do(t, yaml.Unmarshal(doc, a))
		for _, source := range a.Spec.EventSources {
			if source.Kind != "HelmRelease" && source.Kind != "Kustomization" {
				t.Errorf("%s: Flux has no events of a %s", a.Metadata.Name, source.Kind)
			}
			for _, o := range made {
				if m := o.Manifest; source.Name == "*" && m.GetKind() == source.Kind && m.GetNamespace() == a.Metadata.Namespace &&
					labels.SelectorFromSet(source.MatchLabels).Matches(labels.Set(m.GetLabels())) {
					watched++
				}
			}
		}
	}
	if len(made) != 1 || watched != 1 {
		t.Errorf("the Alert watches %d of %d objects", watched, len(made))
	}
}

func documents(t *testing.T, text string) [][]byte {
	t.Helper()
	var out [][]byte
	for r := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text))); ; {
		buf := make([]byte, 64<<10)
		n, err := r.Read(buf)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if doc := bytes.TrimSpace(buf[:n]); len(doc) > 0 {
			out = append(out, doc)
		}
	}
}

// TestSchemaOfWorkloadIdentity: what the CRD refuses.
func TestSchemaOfWorkloadIdentity(t *testing.T) {
	s := registrationSchema(t)
	const arn = "cluster: 'arn:aws:eks:eu-central-1:1:cluster/a', "
	for name, tc := range map[string]struct{ kubeConfig, says string }{
		"EKS":               {"{workloadIdentity: {provider: aws, " + arn + "serviceAccountName: a}}", ""},
		"Neither":           {"{}", "exactly one of secretRef and workloadIdentity"},
		"Both":              {"{secretRef: {name: a}, workloadIdentity: {provider: aws, " + arn + "serviceAccountName: a}}", "exactly one of secretRef and workloadIdentity"},
		"NoAccount":         {"{workloadIdentity: {provider: aws, " + arn + "}}", "serviceAccountName: Required"},
		"EmptyAccount":      {"{workloadIdentity: {provider: aws, " + arn + "serviceAccountName: ''}}", "serviceAccountName"},
		"OtherProvider":     {"{workloadIdentity: {provider: oracle, " + arn + "serviceAccountName: a}}", "Unsupported value"},
		"EKSWithoutCluster": {"{workloadIdentity: {provider: aws, address: 'https://a', caBundle: b, serviceAccountName: a}}", "needs cluster"},
		"AKSByAddress":      {"{workloadIdentity: {provider: azure, address: 'https://a', caBundle: b, serviceAccountName: a}}", ""},
		"AKSWithoutCA":      {"{workloadIdentity: {provider: azure, address: 'https://a', serviceAccountName: a}}", "address and caBundle must both be there"},
		"NoAddress":         {"{workloadIdentity: {provider: generic, serviceAccountName: a}}", "needs address"},
		"Useless":           {"{workloadIdentity: {provider: generic, address: 'https://a', " + arn + "serviceAccountName: a}}", "no use for cluster"},
		"HTTP":              {"{workloadIdentity: {provider: generic, address: 'http://a', serviceAccountName: a}}", "should match"},
		"Path":              {"{workloadIdentity: {provider: generic, address: 'https://a/b', serviceAccountName: a}}", "should match"},
		"TwoAudiences":      {"{workloadIdentity: {provider: generic, address: 'https://a', audiences: ['a,b'], serviceAccountName: a}}", "should match"},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Refuses([]byte("{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: a}, spec: {kubeConfig: " + tc.kubeConfig + "}}"))
			if tc.says == "" && got != nil || tc.says != "" && (got == nil || !strings.Contains(got.Error(), tc.says)) {
				t.Errorf("got %v, want %q", got, tc.says)
			}
		})
	}
}
