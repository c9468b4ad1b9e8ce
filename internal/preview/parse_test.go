// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/preview"
)

func TestParse(t *testing.T) {
	const registration = "apiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\nmetadata: {name: a}\nspec: {}\n"
	const none = "this is no Kubernetes object: it has neither apiVersion nor kind; write both, or leave it out"
	cases := map[string]struct {
		in      string
		want    []string
		ignored int
		err     string
	}{
		"Empty":         {in: ""},
		"OnlyComments":  {in: "# nothing\n---\n# here\n---\n"},
		"Default":       {in: registration, want: []string{"ClusterRegistration default/a"}},
		"Windows":       {in: strings.ReplaceAll("---\n"+registration+"---\n"+strings.ReplaceAll(registration, "a}", "b}"), "\n", "\r\n"), want: []string{"ClusterRegistration default/a", "ClusterRegistration default/b"}},
		"SeparatorText": {in: "--- # the first\n" + registration + "---\t\n" + strings.ReplaceAll(registration, "a}", "b}"), want: []string{"ClusterRegistration default/a", "ClusterRegistration default/b"}},
		"Dashes":        {in: strings.TrimSuffix(registration, "spec: {}\n") + "spec:\n  overrides:\n  - name: x\n    reason: |\n      ---\n      not a separator\n", want: []string{"ClusterRegistration default/a"}},
		"JSON":          {in: "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n\t\"metadata\": {\"name\": \"a\", \"namespace\": \"b\"}\n}\n", want: []string{"ConfigMap b/a"}},
		"ListInAList":   {in: "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: SecretList, items: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]}, {apiVersion: v1, kind: Pod}]}", want: []string{"Secret default/a"}, ignored: 1},
		"TypedList":     {in: "{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}]}", want: []string{"Secret default/a"}},
		"OtherGroups":   {in: "{apiVersion: example.com/v1, kind: Secret}\n---\n{apiVersion: example.com/v1, kind: AddonSet}\n---\n{apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: Cluster}", ignored: 3},
		"NoAPIVersion":  {in: registration + "---\n# A fragment.\n\nkind: ClusterRegistration\nmetadata: {name: b}\n", want: []string{"ClusterRegistration default/a"}, err: "f.yaml, line 8: this ClusterRegistration has no apiVersion; write apiVersion: chandler.dev/v1alpha1"},
		"OtherKind":     {in: "kind: Kustomization\n", err: "f.yaml, line 1: this Kustomization has no apiVersion; write its apiVersion"},
		"NoKind":        {in: "apiVersion: chandler.dev/v1alpha1\nmetadata: {name: a}\n", err: "f.yaml, line 1: this object of chandler.dev/v1alpha1 has no kind; write one"},
		"NotKubernetes": {in: "replicas: 1\n---\n[1, 2]\n---\ntext\n", err: "f.yaml, line 1: " + none + "\nf.yaml, line 3: " + none + "\nf.yaml, line 5: " + none},
		"ItemOfAList":   {in: "---\n{apiVersion: v1, kind: List, items: [1]}\n", err: "f.yaml, line 2: " + none},
		"HelmTemplate":  {in: "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\n", ignored: 1},
		"HelmConfigMap": {in: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\n", ignored: 2},
		"Export":        {in: "apiVersion: chandler.dev/v1alpha1\nkind: FleetSnapshot\n", err: "f.yaml: FleetSnapshot : this is an export of a fleet, which only chandler diff reads: a file of its own, by --fleet"},
		"Line":          {in: registration + "---\na: 1\n---\nb: 1\nc: d: e\n", want: []string{"ClusterRegistration default/a"}, err: "f.yaml, line 6: " + none + "\nf.yaml, line 9: mapping values are not allowed in this context: a value that holds \": \" must be in quotes"},
		"NameIsNoText":  {in: "{apiVersion: v1, kind: ConfigMap, metadata: {name: y, namespace: 1}}", err: "f.yaml: ConfigMap: metadata.name: is true, which is no text; put it in quotes; metadata.namespace: is 1, which is no text; put it in quotes"},
		"KindIsNoText":  {in: "{apiVersion: v1, kind: 1}", err: "f.yaml, line 1: this object of v1 has no kind; write one"},
		"PercentSign": {in: "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: '100%d'}\nspec: {x: 1}", err: "f.yaml: AddonSet default/100%d: metadata.name: is \"100%d\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric " +
			"characters, '-' or '.', and must start and end with an alphanumeric character\nf.yaml: AddonSet default/100%d: spec.x: is not a field of an AddonSet; correct its name, or remove it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, ignored, err := preview.Parse("f.yaml", []byte(tc.in))
			var got []string
			for i := range objects {
				got = append(got, objects[i].String())
			}
			must.Equal(t, tc.want, got)
			if text := fmt.Sprint(err); ignored != tc.ignored || (err != nil || tc.err != "") && text != tc.err {
				t.Errorf("%d ignored, want %d; error %v, want %q", ignored, tc.ignored, err, tc.err)
			}
		})
	}
}

// TestSecretsAreDropped holds that nothing that a Secret holds leaves Parse.
func TestSecretsAreDropped(t *testing.T) {
	in := `
apiVersion: v1
kind: Secret
metadata:
  name: a
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "TOP-SECRET", note: kept}
type: kubeconfig
data: {value: VE9QLVNFQ1JFVA==}
stringData: {text: TOP-SECRET}
other: TOP-SECRET
`
	objects, _, err := preview.Parse("f.yaml", []byte(in))
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	o := objects[0]
	all := fmt.Sprintf("%+v %+v", o.Document, o.Origin.Object)
	if strings.Contains(all, "TOP-SECRET") || strings.Contains(all, "VE9Q") {
		t.Errorf("what the Secret holds is still there: %s", all)
	}
	if d := cmp.Diff([]string{"text", "value"}, o.Document.Keys); d != "" {
		t.Errorf("keys: -want +got:\n%s", d)
	}
	if o.Origin.GetAnnotations()["note"] != "kept" {
		t.Errorf("metadata is lost: %v", o.Origin.Object)
	}
}
