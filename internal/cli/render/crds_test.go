// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestRenderWithOtherCRDs: a folder of CRDs counts in place of the schemas that are built in: for a Flux that has a
// field more, and for one that does not know a value yet. Kinds that it says nothing of stay as they are.
func TestRenderWithOtherCRDs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: helmreleases.helm.toolkit.fluxcd.io}, spec: {
		group: helm.toolkit.fluxcd.io, scope: Namespaced, names: {kind: HelmRelease, plural: helmreleases}, versions: [{name: v2, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {interval: {type: string}, chartRef: {type: object, properties: {
		kind: {type: string}, name: {type: string}}}, driftDetection: {type: object, properties: {mode: {type: string, enum: [always]}}}, brandNew: {type: boolean}}}}}}}]}}`
	write("crds/flux/all.yaml", "# of another version\n---\n"+crd+"\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}\n")
	write("empty/x.yaml", "a: 1\n")
	write("old/x.yaml", "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n")
	fleet := write("fleet.yaml", clitest.RegistrationFile+`---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: a, namespace: flux-system}
spec:
  selectAll: true
  addons:
  - {name: a, helmRelease: {chartRef: {kind: OCIRepository, name: x}, driftDetection: {mode: always}, brandNew: true}}
  - {name: b, kustomization: {sourceRef: {kind: HelmRepository, name: x}}}
`)
	const kustomization = "error: AddonSet flux-system/a: add-on \"b\": kustomization.sourceRef.kind: is \"HelmRepository\": write one of OCIRepository, GitRepository, Bucket or ExternalArtifact\n"
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"BuiltIn": {nil, "error: AddonSet flux-system/a: add-on \"a\": helmRelease.brandNew: is not a field of a Flux HelmRelease\n" +
			"error: AddonSet flux-system/a: add-on \"a\": helmRelease.driftDetection.mode: is \"always\": write one of enabled, warn or disabled\n" + kustomization},
		"Others":  {[]string{"--crds", filepath.Join(dir, "crds")}, kustomization},
		"NoCRDs":  {[]string{"--crds", filepath.Join(dir, "empty")}, ""},
		"OldCRDs": {[]string{"--crds", filepath.Join(dir, "old")}, ""},
		"Nowhere": {[]string{"--crds", filepath.Join(dir, "nowhere")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rendered(t, dir, "", append([]string{"-f", fleet}, tc.args...)...)
			if got != tc.want || err == nil {
				t.Errorf("says\n%swant\n%s and ends with %v", got, tc.want, err)
			}
			if tc.want == "" && !strings.HasPrefix(err.Error(), "--crds") {
				t.Errorf("ends with %v", err)
			}
		})
	}
}
