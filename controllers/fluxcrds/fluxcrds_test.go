// SPDX-License-Identifier: Apache-2.0

package fluxcrds_test

import (
	"context"
	"errors"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandler-hub/chandler/controllers/fluxcrds"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
)

type failing struct{ client.Reader }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("refused")
}

func crd(field string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "helmreleases.helm.toolkit.fluxcd.io"}}
	out.Spec = apiextensionsv1.CustomResourceDefinitionSpec{Group: "helm.toolkit.fluxcd.io", Scope: "Namespaced",
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "HelmRelease", Plural: "helmreleases"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v2", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "boolean"}}}}}}}}}
	return out
}

func takes(r *fluxcrds.Reader, field string) bool {
	object := map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": map[string]any{field: true}}
	return len(r.Library().Of(helmv2.GroupVersion.WithKind("HelmRelease")).Check(object, crdschema.Options{Partial: true})) == 0
}

// TestRead: the CRD that is installed counts, and of one that is not there, or cannot be read, the one that is built in.
func TestRead(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).Build()
	r := &fluxcrds.Reader{Live: api}
	read := func(want bool) {
		t.Helper()
		if changed, err := r.Read(t.Context()); err != nil || changed != want {
			t.Fatalf("changed %t, want %t (%v)", changed, want, err)
		}
	}
	read(false)
	if !takes(r, "suspend") || takes(r, "first") {
		t.Error("without a CRD, the one that is built in does not count")
	}
	installed := crd("first")
	must.Do(t, api.Create(t.Context(), installed))
	read(true)
	read(false)
	if takes(r, "suspend") || !takes(r, "first") {
		t.Error("the installed CRD does not count")
	}
	installed.Spec = crd("second").Spec
	must.Do(t, api.Update(t.Context(), installed))
	read(true)
	if !takes(r, "second") || takes(r, "first") {
		t.Error("the changed CRD does not count")
	}
	r.Live = failing{}
	if _, err := r.Read(t.Context()); err == nil || !takes(r, "second") {
		t.Errorf("what was read last does not count when nothing can be read (%v)", err)
	}
	r.Live = api
	installed.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Ref: new("#/other")}}} // no structural schema
	must.Do(t, api.Update(t.Context(), installed))
	read(true)
	if !takes(r, "suspend") || takes(r, "second") {
		t.Error("in place of a CRD that cannot be read, the one that is built in does not count")
	}
}
