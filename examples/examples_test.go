// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

func registrationSchema(t *testing.T) *crdschema.Schema {
	t.Helper()
	s, err := crdschema.Read("../config/crd/bases/chandler.dev_clusterregistrations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWorkloadIdentity: every example is what the API server and the hub take, and has the ServiceAccount that it names, with the
// annotations that Flux reads (fluxcd/pkg/auth, options.go of each provider), where Flux looks for it.
func TestWorkloadIdentity(t *testing.T) {
	annotations := map[string][]string{
		"aws": {"eks.amazonaws.com/role-arn"}, "azure": {"azure.workload.identity/client-id", "azure.workload.identity/tenant-id"},
		"gcp": {"iam.gke.io/gcp-service-account"}, "generic": nil,
	}
	s := registrationSchema(t)
	entries, err := examples.FS.ReadDir("workload-identity")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			text, err := examples.Read(path.Join("workload-identity", e.Name()), map[string]string{"CA": "the CA, in PEM"})
			if err != nil {
				t.Fatal(err)
			}
			account, reg := &corev1.ServiceAccount{}, &hubv1.ClusterRegistration{}
			docs := documents(t, text)
			if len(docs) != 2 {
				t.Fatalf("it holds %d objects", len(docs))
			}
			if err := errors.Join(yaml.UnmarshalStrict(docs[0], account), yaml.UnmarshalStrict(docs[1], reg)); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(t.Context(), docs[1]); err != nil {
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

// TestTeams: the Teams are what the API server and the hub take, and what the hub makes of the files has no error.
func TestTeams(t *testing.T) {
	var objects []preview.Object
	for _, file := range []string{"platform.yaml", "shop.yaml", "search.yaml"} {
		text, err := examples.Read("teams/"+file, map[string]string{"CHARTS_URL": "https://charts.example.org"})
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents(t, text) {
			is := &metav1.TypeMeta{}
			if err := yaml.Unmarshal(doc, is); err != nil {
				t.Fatal(err)
			}
			if plural := map[string]string{"Team": "teams", "AddonSet": "addonsets"}[is.Kind]; plural != "" {
				s, err := crdschema.Read("../config/crd/bases/chandler.dev_" + plural + ".yaml")
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Check(t.Context(), doc); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
		some, _, err := preview.Parse(file, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, some...)
	}
	cluster, _, err := preview.Parse("cluster", []byte("{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: edge1, namespace: fleet, "+
		"labels: {tier: prod, chandler.dev/provider: Secret}}, spec: {kubeConfig: {secretRef: {name: edge1}}}}"))
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := preview.NewFleet(append(objects, cluster...), origin.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	got := preview.Render(fleet, preview.Options{Shared: hubconfig.Shared{HubID: "chandler", PlatformNamespaces: []string{"flux-system"},
		Chart: render.ManifestChart{URL: "http://hub", Name: "c", Version: "1"}}})
	var made []string
	for _, c := range got.Clusters {
		for _, o := range c.Objects {
			made = append(made, o.Manifest.GetNamespace()+" "+o.Addon)
		}
	}
	slices.Sort(made)
	if len(got.Errors) > 0 || !slices.Equal(made, []string{"flux-system team-search", "flux-system team-shop", "search search-web", "shop shop-web"}) {
		t.Errorf("made %q, errors %v", made, got.Errors)
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
			got := s.Check(t.Context(), []byte("{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: a}, spec: {kubeConfig: "+tc.kubeConfig+"}}"))
			if tc.says == "" && got != nil || tc.says != "" && (got == nil || !strings.Contains(got.Error(), tc.says)) {
				t.Errorf("got %v, want %q", got, tc.says)
			}
		})
	}
}
