// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/render"
)

const (
	registrationFile = "apiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\nmetadata: {name: a}\nspec: {kubeConfig: {secretRef: {name: a}}}\n"
	setFile          = "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: a}\nspec: {selectAll: true, addons: [{name: a, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}]}\n"
	noObject         = "this is no Kubernetes object: it has neither apiVersion nor kind; write both, or leave it out"
)

// rendered runs the command and returns what it writes to stderr, without the folder, and how it ends.
func rendered(t *testing.T, dir, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := render.New(made, nil)
	var stderr strings.Builder
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&strings.Builder{})
	cmd.SetErr(&stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return strings.ReplaceAll(stderr.String(), dir+string(filepath.Separator), ""), err
}

// TestRenderSkipsNothingSilently: a document that is no object is an error in a file that the user names, and a warning in a folder,
// where values of charts and kustomizations lie beside objects. One that was meant for the hub is always an error.
func TestRenderSkipsNothingSilently(t *testing.T) {
	half := strings.TrimPrefix(registrationFile, "apiVersion: chandler.dev/v1alpha1\n")
	for name, tc := range map[string]struct {
		file, raw         string
		inFolder, asNamed string
	}{
		"HelmValues":    {"values.yaml", "replicas: 1\n", "warning: values.yaml, line 1: " + noObject + " (left out)\n", "error: values.yaml, line 1: " + noObject + "\n"},
		"Kustomization": {"kustomization.yaml", "kind: Kustomization\n", "warning: kustomization.yaml, line 1: this Kustomization has no apiVersion; write its apiVersion (left out)\n", "error: kustomization.yaml, line 1: this Kustomization has no apiVersion; write its apiVersion\n"},
		"Meant":         {"b.yaml", "---\n" + half, "error: b.yaml, line 2: this ClusterRegistration has no apiVersion; write apiVersion: chandler.dev/v1alpha1\n", "error: b.yaml, line 2: this ClusterRegistration has no apiVersion; write apiVersion: chandler.dev/v1alpha1\n"},
		"NoKind":        {"b.yaml", "apiVersion: chandler.dev/v1alpha1\n", "error: b.yaml, line 1: this object of chandler.dev/v1alpha1 has no kind; write one\n", "error: b.yaml, line 1: this object of chandler.dev/v1alpha1 has no kind; write one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, raw := range map[string]string{tc.file: tc.raw, "fleet.yaml": registrationFile + "---\n" + setFile} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(raw), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for args, want := range map[string]string{dir: tc.inFolder, filepath.Join(dir, tc.file): tc.asNamed} {
				got, err := rendered(t, dir, "", "-f", args, "-f", filepath.Join(dir, "fleet.yaml"))
				if got != want {
					t.Errorf("render -f %s says\n%swant\n%s", args, got, want)
				}
				if failed := strings.HasPrefix(want, "error:"); (err != nil) != failed {
					t.Errorf("render -f %s ends with %v", args, err)
				}
			}
		})
	}
	got, err := rendered(t, "", "replicas: 1\n", "-f", "-")
	if want := "error: standard input, line 1: " + noObject + "\n"; !strings.HasPrefix(got, want) || err == nil {
		t.Errorf("render -f - says %q and ends with %v, want %q", got, err, want)
	}
}
