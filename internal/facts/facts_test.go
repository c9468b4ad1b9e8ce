// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render/variables"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if text == "" {
		return nil
	}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	raw := must.Get(yaml.YAMLToJSON([]byte(text))).Or(t)
	u := &unstructured.Unstructured{}
	must.Do(t, u.UnmarshalJSON(raw))
	return u
}

const registration = `
metadata: {name: t1, namespace: tenants, labels: {env: prod}, annotations: {a: b, kubectl.kubernetes.io/last-applied-configuration: "{}"}}
spec: {originRef: {apiGroup: $GROUP, kind: $KIND, name: t1}}
status: {provider: P, clusterUID: u, kubernetesVersion: v1.33.2+k3s1, nodes: 3, endpoint: "https://10.0.0.1:6443"}
`

func TestCluster(t *testing.T) {
	base := func(change func(*expression.Cluster)) *expression.Cluster {
		c := &expression.Cluster{
			Name: "t1", Namespace: "tenants", Labels: map[string]string{"env": "prod"}, Annotations: map[string]string{"a": "b"}, Provider: "P", UID: "u",
			KubernetesVersion: "v1.33.2+k3s1", Version: expression.Version{Major: 1, Minor: 33, Git: "v1.33.2+k3s1"}, Nodes: 3,
			HubEndpoint: "https://10.0.0.1:6443", APIServer: expression.Endpoint{Host: "10.0.0.1", Port: 6443},
		}
		change(c)
		return c
	}
	cases := map[string]struct {
		group, kind, origin string
		want                *expression.Cluster
	}{
		"Kamaji": {"kamaji.clastix.io", "TenantControlPlane", `
apiVersion: kamaji.clastix.io/v1alpha1
kind: TenantControlPlane
spec: {networkProfile: {podCidr: 10.36.0.0/16, serviceCidr: 10.96.0.0/16, port: 6443}}
status: {controlPlaneEndpoint: "192.0.2.7:31443"}`, base(func(c *expression.Cluster) {
			c.APIServer, c.PodCIDRs, c.ServiceCIDRs = expression.Endpoint{Host: "192.0.2.7", Port: 31443}, []string{"10.36.0.0/16"}, []string{"10.96.0.0/16"}
		})},
		"ClusterAPI": {"cluster.x-k8s.io", "Cluster", `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
spec: {controlPlaneEndpoint: {host: api.example.org, port: 443}, clusterNetwork: {pods: {cidrBlocks: [10.1.0.0/16, "fd00::/48"]}, services: {cidrBlocks: [10.2.0.0/16]}}}`, base(func(c *expression.Cluster) {
			c.APIServer, c.PodCIDRs, c.ServiceCIDRs = expression.Endpoint{Host: "api.example.org", Port: 443}, []string{"10.1.0.0/16", "fd00::/48"}, []string{"10.2.0.0/16"}
		})},
		"Secret": {"", "Secret", "apiVersion: v1\nkind: Secret", base(func(*expression.Cluster) {})},
		"OriginIsGone": {"kamaji.clastix.io", "TenantControlPlane", "", base(func(c *expression.Cluster) {
			gone := expression.Lack{Why: `its origin, TenantControlPlane "t1", is not there`}
			c.Unknown = map[string]expression.Lack{"podCIDRs": gone, "serviceCIDRs": gone}
		})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reg := read[hubv1.ClusterRegistration](t, strings.NewReplacer("$GROUP", `"`+tc.group+`"`, "$KIND", tc.kind).Replace(registration))
			obj := object(t, tc.origin)
			must.Equal(t, tc.want, facts.Cluster(reg, obj))
		})
	}
}

// TestUnknown: what nobody has found out is unknown; what was found out once stays known.
func TestUnknown(t *testing.T) {
	const silent = "the cluster has not answered yet"
	for name, tc := range map[string]struct {
		reg, origin string
		want        map[string]string
	}{
		"All": {"{status: {clusterUID: u, kubernetesVersion: v1.33.2, nodes: 0, endpoint: \"https://a\"}}", "", nil},
		"NotReachableAnyMore": {"{status: {clusterUID: u, kubernetesVersion: v1.33.2, nodes: 3, endpoint: \"https://a\", " +
			"conditions: [{type: Reachable, status: \"False\"}]}}", "", nil},
		"Nothing": {"{}", "", map[string]string{"uid": silent, "kubernetesVersion": silent, "version": silent, "nodes": silent, "apiServer": silent,
			"hubEndpoint": silent}},
		"NodesMayNotBeListed": {"{status: {clusterUID: u, kubernetesVersion: v1.33.2, endpoint: \"https://a\"}}", "", map[string]string{
			"nodes": "the cluster has not told how many nodes it has. The hub's account there needs the right to list nodes"}},
		"OriginSaysWhere": {"{spec: {originRef: {apiGroup: kamaji.clastix.io, kind: TenantControlPlane, name: t}}}",
			"{kind: TenantControlPlane, spec: {networkProfile: {address: 192.0.2.1, port: 6443}}}", map[string]string{
				"uid": silent, "kubernetesVersion": silent, "version": silent, "nodes": silent, "hubEndpoint": silent}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for fact, lack := range facts.Cluster(read[hubv1.ClusterRegistration](t, tc.reg), object(t, tc.origin)).Unknown {
				got[fact] = lack.Why
			}
			must.Equal(t, tc.want, got, cmpopts.EquateEmpty())
		})
	}
}

// TestIdentity: what is in use counts, and what is asked for only while nothing is.
func TestIdentity(t *testing.T) {
	const asked = "spec: {kubeConfig: {workloadIdentity: {provider: aws, cluster: a, serviceAccountName: s}}}"
	want := workloadidentity.Cluster(&hubv1.WorkloadIdentity{Provider: "aws", Cluster: "a"})
	for name, tc := range map[string]struct{ reg, want string }{
		"Kubeconfig": {"status: {credential: {secretName: s, targetFingerprint: t}}", ""},
		"Nothing":    {"{}", ""},
		"Asked":      {asked, want},
		"Refused":    {asked + "\nstatus: {credential: {secretName: s, targetFingerprint: t}}", ""},
		"InUse":      {"status: {credential: {workloadIdentity: aws, targetFingerprint: t}}", "t"},
		"Changes":    {asked + "\nstatus: {credential: {workloadIdentity: aws, targetFingerprint: t}}", "t"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := read[hubv1.ClusterRegistration](t, tc.reg)
			if got := facts.Identity(reg); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := facts.Cluster(reg, nil).Unknown["version"].Stays; got != (tc.want != "") {
				t.Errorf("the version will never be known: %t", got)
			}
		})
	}
}

// A Secret's data must reach no expression, by whatever way.
func TestOriginOfASecretHasNoData(t *testing.T) {
	got := facts.Origin(object(t, `
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: n, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData": {"value": "hunter2"}}'}}
data: {value: aHVudGVyMg==}
stringData: {value: hunter2}
spec: {value: hunter2}
`))
	raw := must.Get(yaml.Marshal(got)).Or(t)
	if strings.Contains(string(raw), "hunter2") || strings.Contains(string(raw), "aHVudGVyMg") {
		t.Errorf("it holds what is secret:\n%s", raw)
	}
	if got["metadata"].(map[string]any)["name"] != "s" {
		t.Errorf("it lacks its metadata: %v", got)
	}
}

func TestVariables(t *testing.T) {
	reg := read[hubv1.ClusterRegistration](t, `spec: {variables: {a: 9007199254740993, b: {c: [x]}}}`)
	got, unreadable := facts.Variables(reg, object(t, "kind: Cluster\nmetadata: {name: c, annotations: {chandler.dev/variables: '{a: 1, d: null}'}}"))
	if len(unreadable) > 0 {
		t.Fatal(unreadable)
	}
	want := []variables.Layer{
		{Name: facts.AnnotationLayer, Values: map[string]any{"a": int64(1), "d": nil}},
		{Name: facts.RegistrationLayer, Values: map[string]any{"a": int64(9007199254740993), "b": map[string]any{"c": []any{"x"}}}},
	}
	must.Equal(t, want, got)
	for _, bad := range []string{"[1]", "{", "text"} {
		obj := object(t, "kind: Cluster\nmetadata: {name: c}")
		obj.SetAnnotations(map[string]string{hubv1.VariablesAnnotation: bad})
		layers, got := facts.Variables(reg, obj)
		if d := cmp.Diff([]string{`annotation chandler.dev/variables of Cluster "c" is not an object in JSON or YAML; it is ignored`}, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", bad, d)
		}
		if d := cmp.Diff(want[1:], layers); d != "" {
			t.Errorf("%s: the others are not what they were: -want +got:\n%s", bad, d)
		}
	}
	// A hundred kilobytes of aliases would be gigabytes of JSON.
	obj := object(t, "kind: Cluster\nmetadata: {name: c}")
	obj.SetAnnotations(map[string]string{hubv1.VariablesAnnotation: "a: &a " + strings.Repeat("x", 10<<10) + "\nb: [" + strings.Repeat("*a,", 10<<10) + "]"})
	if layers, got := facts.Variables(reg, obj); len(got) != 1 || !strings.Contains(got[0], "alias") || cmp.Diff(want[1:], layers) != "" {
		t.Errorf("aliases are expanded: %d layers, %q", len(layers), got)
	}
	reg.Spec.Variables["huge"] = apiextensionsv1.JSON{Raw: []byte("1e999")}
	layers, got2 := facts.Variables(reg, nil)
	if len(got2) != 1 || !strings.Contains(got2[0], "spec.variables.huge of the ClusterRegistration cannot be read") || cmp.Diff(want[1:], layers) != "" {
		t.Errorf("a number that is none: %v, %v", layers, got2)
	}
}
