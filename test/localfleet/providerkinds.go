// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// The kinds of the provider: infrastructure and control planes of its own, with the templates that a ClusterClass names, and a
// control plane of the kind that Kamaji's provider for Cluster API has.
var (
	infrastructureKind     = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "LocalCluster"}
	controlPlaneKind       = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "LocalControlPlane"}
	kamajiControlPlaneKind = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1alpha2", Kind: "KamajiControlPlane"}
)

// providerCRDs returns the CRDs of the provider.
func providerCRDs() []*apiextensionsv1.CustomResourceDefinition {
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range []schema.GroupVersionKind{infrastructureKind, controlPlaneKind, kamajiControlPlaneKind} {
		template := kind
		template.Kind += "Template"
		out = append(out, providerCRD(kind), providerCRD(template))
	}
	return out
}

// providerCRD is a CRD with the label by which Cluster API knows which version keeps which contract. What its fields are is left
// open.
func providerCRD(kind schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind.Kind)
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + kind.Group, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": kind.Version}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List", Singular: singular,
				Plural: singular + "s", Categories: []string{"cluster-api"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}
