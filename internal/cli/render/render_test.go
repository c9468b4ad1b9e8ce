// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/render"
)

const noObject = "this is no Kubernetes object: it has neither apiVersion nor kind; write both, or leave it out"

// rendered runs the command and returns what it writes to stderr, without the folder, and how it ends.
func rendered(t *testing.T, dir, stdin string, args ...string) (string, error) {
	t.Helper()
	root := clitest.Root(render.New(clitest.At(time.Time{}), nil))
	var stderr strings.Builder
	root.SetArgs(append([]string{"render"}, args...))
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&strings.Builder{})
	root.SetErr(&stderr)
	err := root.Execute()
	return strings.ReplaceAll(stderr.String(), dir+string(filepath.Separator), ""), err
}

// TestRenderSkipsNothingSilently: a document that is no object is an error in a file that the user names, and a warning in a folder,
// where values of charts and kustomizations lie beside objects. One that was meant for the hub is always an error.
func TestRenderSkipsNothingSilently(t *testing.T) {
	half := strings.TrimPrefix(clitest.RegistrationFile, "apiVersion: chandler.dev/v1alpha1\n")
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
			for file, raw := range map[string]string{tc.file: tc.raw, "fleet.yaml": clitest.RegistrationFile + "---\n" + clitest.SetFile} {
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

// TestRenderTakesWhatTheHubSays: what the hub has published counts if it is in the files, except for flags that somebody wrote, and only
// from the hub's namespace: anybody may write a ConfigMap of that name elsewhere.
func TestRenderTakesWhatTheHubSays(t *testing.T) {
	published := func(namespace, url string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: chandler-hub, namespace: " + namespace + "}\ndata: {chart-url: \"" + url +
			"\", hub-id: east, platform-namespaces: default, register-all: \"\", secret-namespaces: \"\", flux-shards: \"\"}\n"
	}
	files := clitest.RegistrationFile + "---\n" + clitest.SetFile + published("chandler-system", "http://hub.example.org") + published("other", "http://evil.example.org")
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"Published": {want: []string{"url: oci://hub.example.org/chandler-manifests", "chandler.dev/source: east"}},
		"Written":   {[]string{"--chart-url=http://mine.example.org"}, []string{"url: oci://mine.example.org/chandler-manifests", "chandler.dev/source: east"}},
		"Elsewhere": {[]string{"--hub-namespace=nowhere", "--platform-namespaces=default"},
			[]string{"url: oci://chandler.nowhere.svc/chandler-manifests", "chandler.dev/source: chandler"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := clitest.Root(render.New(clitest.At(time.Time{}), nil))
			var out, errs strings.Builder
			cmd.SetArgs(append([]string{"render", "-f", "-"}, tc.args...))
			cmd.SetIn(strings.NewReader(files))
			cmd.SetOut(&out)
			cmd.SetErr(&errs)
			if err := cmd.Execute(); err != nil {
				t.Fatalf("%v\n%s", err, &errs)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, &out)
				}
			}
		})
	}
}

// TestStrictExitCode: what is a warning ends with 0, and with --strict with an error.
func TestStrictExitCode(t *testing.T) {
	unknown := strings.Replace(clitest.SetFile, "metadata: {name: a}}]", "metadata: {name: a}, data: {v: \"<< cluster.kubernetesVersion >>\"}}]", 1)
	for _, strict := range []bool{false, true} {
		args := []string{"-f", "-"}
		if strict {
			args = append(args, "--strict", "--platform-namespaces=default")
		} else {
			args = append(args, "--platform-namespaces=default")
		}
		said, err := rendered(t, "", clitest.RegistrationFile+"---\n"+unknown, args...)
		if (err != nil) != strict || !strings.Contains(said, "cluster.kubernetesVersion") {
			t.Errorf("strict %v: %v\n%s", strict, err, said)
		}
	}
}
