// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// What an add-on would bring twice is told with both origins, also if one is in a Secret, which only the hub can look into. What runs
// stays, and it goes on when one of the two is gone.
func TestDuplicates(t *testing.T) {
	plain := map[string]any{"name": "plain", "manifests": map[string]any{
		"targetNamespace": "team1",
		"objects":         []any{map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "team"}}},
		"manifestsFrom":   []any{map[string]any{"kind": "Secret", "name": "quotas"}},
	}}
	secret := func(objects string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "quotas"}, Data: map[string][]byte{"quotas.yaml": []byte(objects)}}
	}
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app"), plain), secret("{apiVersion: v1, kind: ResourceQuota, metadata: {name: other}}"))...)
	m.settle()
	if a := m.says(testSet, "plain"); a.State != hubv1.AddonReady {
		t.Fatalf("before: %+v", a)
	}
	put := func(objects string) {
		t.Helper()
		s := &corev1.Secret{}
		m.must(m.api.Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: "quotas"}, s))
		s.Data = secret(objects).Data
		m.must(m.api.Update(t.Context(), s))
		m.settle()
	}
	put("{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: team1}, spec: {hard: {pods: sesame}}}")
	a := m.says(testSet, "plain")
	const want = `manifests: ResourceQuota team1/team is there twice: as objects[0] of the set, and in key "quotas.yaml" of Secret "quotas"`
	if a.State != hubv1.AddonFailed || !strings.Contains(a.Message, want) || strings.Contains(a.Message, "sesame") {
		t.Errorf("it says %+v", a)
	}
	if m.object(testCluster, "plain") == nil || len(m.uninstalled)+len(m.released) > 0 || m.says(testSet, "app").State != hubv1.AddonReady {
		t.Errorf("uninstalled %v, orphaned %v; the other says %+v", m.uninstalled, m.released, m.says(testSet, "app"))
	}
	put("{apiVersion: v1, kind: ResourceQuota, metadata: {name: other, namespace: team1}}")
	if a := m.says(testSet, "plain"); a.State != hubv1.AddonReady {
		t.Errorf("when one is gone: %+v", a)
	}
}
