// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// TestEach: each file begins with ---, and has its objects and nothing else.
func TestEach(t *testing.T) {
	for pattern, want := range map[string]int{"crd/bases/*.yaml": 4, "rbac/role.yaml": 2} {
		n := 0
		err := manifests.Each(config.Files, pattern, func(kind string, text []byte) error {
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
