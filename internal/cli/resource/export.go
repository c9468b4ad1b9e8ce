// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// ExportsAnyway is for who has no management cluster yet.
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
func Called(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	kind := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		kind += "." + gvk.Group
	}
	return kind + "/" + u.GetName()
}
