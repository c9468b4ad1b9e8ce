// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Secret is the kind of Secrets with a kubeconfig. Policy decides where they register clusters.
var Secret = Kind{GroupKind: schema.GroupKind{Kind: "Secret"}, Provider: "Secret", points: true, traits: secret{}}

type secret struct{ plain }

// generatorLabel is on the Secrets that a KubeconfigGenerator of Kamaji writes (api/v1alpha1, ManagedByLabel). Their owner is the
// TenantControlPlane, as that of the administrator's kubeconfig, but they are for whoever must not be its administrator.
const generatorLabel = "kamaji.clastix.io/managed-by"

func (secret) kubeConfig(obj *unstructured.Unstructured) (Source, error) {
	return Source{Secret: obj.GetName(), Key: obj.GetAnnotations()[hubv1.KubeConfigKeyAnnotation]}, nil
}

func (secret) usualSecret(name string) string { return name }

func (secret) refuse(obj *unstructured.Unstructured, clusterExists func(string) bool) string {
	if why := ofCluster(obj, clusterExists); why != "" {
		return why
	}
	_, generated := obj.GetLabels()[generatorLabel]
	for _, o := range obj.GetOwnerReferences() {
		if o.Kind == Kamaji.Kind && !generated {
			return fmt.Sprintf("it belongs to TenantControlPlane %q; label that instead", o.Name)
		}
	}
	if _, ok := obj.GetLabels()[hubv1.CopyLabel]; ok {
		return "it is the hub's own copy of a kubeconfig"
	}
	return ""
}
