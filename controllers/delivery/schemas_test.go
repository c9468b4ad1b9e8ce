// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/crdschema"
)

// installed returns the schemas of a HelmRelease's CRD of which the spec is like that.
func installed(t *testing.T, spec string) *crdschema.Library {
	t.Helper()
	l, err := crdschema.Parse([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: helmreleases.helm.toolkit.fluxcd.io},
		spec: {group: helm.toolkit.fluxcd.io, scope: Namespaced, names: {kind: HelmRelease, plural: helmreleases}, versions: [{name: v2, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, properties: {spec: ` + spec + `}}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What the CRDs refuse on a cluster is asked again when they change. What runs stays, whatever they say.
func TestSchemasChange(t *testing.T) {
	odd := releaseAddon("odd", map[string]any{"driftDetection": map[string]any{"mode": "<< 'brand' + 'new' >>"}})
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), odd)...)
	var schemas *crdschema.Library
	m.r.Programs = &programs.Cache{Schemas: func() *crdschema.Library { return schemas }}
	m.settle()
	if a := m.says(testSet, "odd"); m.object(testCluster, "odd") != nil || !strings.Contains(a.Message, "driftDetection.mode") {
		t.Fatalf("by the CRD that is built in: %+v", a)
	}
	schemas = installed(t, "{type: object, x-kubernetes-preserve-unknown-fields: true}")
	m.settle()
	if a := m.says(testSet, "odd"); a.State != hubv1.AddonReady {
		t.Errorf("by one that takes anything: %+v", a)
	}
	schemas = installed(t, "{type: object}") // of which nothing that is delivered is a field
	m.settle()
	for _, name := range []string{"app", "odd"} {
		if m.object(testCluster, name) == nil || len(m.uninstalled)+len(m.released) > 0 {
			t.Errorf("by one that takes nothing: %s says %+v; uninstalled %v, orphaned %v", name, m.says(testSet, name), m.uninstalled, m.released)
		}
	}
	before := m.writes
	m.settle()
	if m.writes != before {
		t.Errorf("%d writes while it is so", m.writes-before)
	}
}
