// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestManifests: each file that is built in begins with ---, and has its objects and nothing else.
func TestManifests(t *testing.T) {
	for pattern, want := range map[string]int{"crd/bases/*.yaml": 4, "rbac/role.yaml": 2} {
		n := 0
		err := manifests(pattern, func(kind string, text []byte) error {
			o := metav1.PartialObjectMetadata{}
			if err := yaml.Unmarshal(text, &o); err != nil || o.Name == "" || o.Kind != kind || kind == "" {
				t.Errorf("%s: %q is a %q: %v", pattern, text, kind, err)
			}
			n++
			return nil
		})
		if err != nil || n != want {
			t.Errorf("%s: %d objects, want %d: %v", pattern, n, want, err)
		}
	}
}
