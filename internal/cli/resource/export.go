// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// ExportsAnyway is for users who have no management cluster yet.
const ExportsAnyway = "--export prints it, without a cluster"

// Export prints objects as one stream of YAML.
func Export(out io.Writer, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		raw, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("write %s as YAML: %w", Called(u), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", raw); err != nil {
			return err
		}
	}
	return nil
}

// Called returns what kubectl calls an object: addonset.chandler.dev/base.
func Called(u *unstructured.Unstructured) string { return called(u.GroupVersionKind(), u.GetName()) }

func called(gvk schema.GroupVersionKind, name string) string {
	kind := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		kind += "." + gvk.Group
	}
	return kind + "/" + name
}

// Identify says in an object what it is, which a list does not, leaves out the managers of fields, and returns what kubectl calls it.
func Identify(scheme *runtime.Scheme, o client.Object) (string, error) {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return "", err
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	o.SetManagedFields(nil)
	return called(gvk, o.GetName()), nil
}
