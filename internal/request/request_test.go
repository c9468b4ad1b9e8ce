// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/request"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSources(t *testing.T) {
	for text, want := range map[string]string{
		`{metadata: {namespace: a}, spec: {sourceRef: {kind: GitRepository, name: fleet}}}`:                                                         "GitRepository a/fleet",
		`{metadata: {namespace: a}, spec: {sourceRef: {kind: Bucket, name: b, namespace: c}}}`:                                                      "Bucket c/b",
		`{metadata: {namespace: a}, spec: {chartRef: {kind: OCIRepository, name: chart}}}`:                                                          "OCIRepository a/chart",
		`{metadata: {namespace: a}, spec: {chartRef: {kind: HelmChart, name: chart}}, status: {helmChart: a/chart}}`:                                "HelmChart a/chart",
		`{metadata: {namespace: a}, spec: {chart: {spec: {sourceRef: {kind: HelmRepository, name: r, namespace: b}}}}, status: {helmChart: b/a-x}}`: "HelmRepository b/r, HelmChart b/a-x",
		`{metadata: {namespace: a}, spec: {sourceRef: {kind: ExternalArtifact, name: x}}}`:                                                          "",
		`{metadata: {namespace: a}, spec: {}}`:                                                                                                      "",
	} {
		var got []string
		for _, o := range request.Sources(object(t, text), "web") {
			got = append(got, fmt.Sprintf("%s %s/%s", o.Kind.Kind, o.Namespace, o.Name))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s has its content from %q, want %q", text, got, want)
		}
	}
}

func TestLook(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "false false Flux has not looked yet",
		`{status: {lastHandledReconcileAt: before}}`: "false false Flux has not looked yet",
		`{status: {lastHandledReconcileAt: now}}`:    "false false Flux has not said how it is",
		`{status: {lastHandledReconcileAt: now, conditions: [{type: Ready, status: Unknown, reason: Progressing, message: it works on it}]}}`: "false false Flux is at work (Progressing: it works on it)",
		`{status: {lastHandledReconcileAt: now, conditions: [{type: Ready, status: "True", reason: Succeeded, message: done}]}}`:              "true false Ready (Succeeded: done)",
		`{status: {lastHandledReconcileAt: now, conditions: [{type: Ready, status: "False", reason: InstallFailed, message: "a\nb"}]}}`:       "true true not Ready (InstallFailed: a b)",
	} {
		o := request.Look(object(t, text), "now")
		if got := fmt.Sprintf("%t %t %s", o.Over, o.Failed, o.Text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestNever(t *testing.T) {
	for text, want := range map[string]string{
		`{kind: HelmRelease, spec: {}}`:                                                        "",
		`{kind: Kustomization, spec: {suspend: true}}`:                                         "a user has suspended it",
		`{kind: HelmRepository, spec: {type: oci}}`:                                            "Flux reads a HelmRepository of type oci only with its charts",
		`{kind: HelmRelease, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {}}`: "it is being deleted",
	} {
		if got := request.Never(object(t, text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
