// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/render"
)

// TestRenderTakesWhatTheHubSays: what the hub has published counts if it is in the files, except for flags that somebody wrote, and only
// from the hub's namespace: anybody may write a ConfigMap of that name elsewhere.
func TestRenderTakesWhatTheHubSays(t *testing.T) {
	published := func(namespace, url string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: chandler-hub, namespace: " + namespace + "}\ndata: {chart-url: \"" + url +
			"\", hub-id: east, platform-namespaces: default, register-all: \"\", secret-namespaces: \"\", flux-shards: \"\"}\n"
	}
	files := registrationFile + "---\n" + setFile + published("chandler-system", "http://hub.example.org") + published("other", "http://evil.example.org")
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
			cmd := render.New(made, nil)
			var out, errs strings.Builder
			cmd.SetArgs(append([]string{"-f", "-"}, tc.args...))
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

// hubFile is what a hub publishes, by which sets of other namespaces reach clusters of these.
const hubFile = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: chandler-hub, namespace: chandler-system}\ndata: {chart-url: \"\", hub-id: chandler, platform-namespaces: sets, register-all: \"\", secret-namespaces: \"\", flux-shards: \"\"}\n"

// TestFilesSayTheHubsFlags: diff and rollout plan take them from files as render does, and a flag that somebody wrote wins.
func TestFilesSayTheHubsFlags(t *testing.T) {
	dir := t.TempDir()
	elsewhere := strings.Replace(setFile, "{name: a}", "{name: a, namespace: sets}", 1)
	cluster := strings.Replace(registrationFile, "{name: a}", "{name: a, namespace: fleet}", 1)
	write(t, filepath.Join(dir, "old", "fleet.yaml"), cluster)
	write(t, filepath.Join(dir, "new", "fleet.yaml"), cluster+"---\n"+elsewhere+hubFile)
	for name, tc := range map[string]struct {
		flags []string
		code  int
		plan  string
	}{
		"Published": {nil, exit.Failed, "fleet/a"},
		"Written":   {[]string{"--platform-namespaces=others"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := diffed(t, append([]string{"-f", filepath.Join(dir, "new"), "--against", filepath.Join(dir, "old")}, tc.flags...)...)
			if code != tc.code {
				t.Errorf("diff ends with %d\n%s%s", code, out, errs)
			}
			// The old files count if the new ones do not have it.
			if _, errs, code := diffed(t, append([]string{"-f", filepath.Join(dir, "old"), "--against", filepath.Join(dir, "new")}, tc.flags...)...); code != tc.code {
				t.Errorf("the other way round it ends with %d\n%s", code, errs)
			}
			plan, err := run(append([]string{"rollout", "plan", "-f", filepath.Join(dir, "new")}, tc.flags...)...)
			if got := strings.Contains(plan, "fleet/a"); err != nil || got != (tc.plan != "") {
				t.Errorf("%v\n%s", err, plan)
			}
		})
	}
}

// TestStrictExitCode: what is a warning ends with 0, and with --strict with an error.
func TestStrictExitCode(t *testing.T) {
	unknown := strings.Replace(setFile, "metadata: {name: a}}]", "metadata: {name: a}, data: {v: \"<< cluster.kubernetesVersion >>\"}}]", 1)
	for _, strict := range []bool{false, true} {
		args := []string{"-f", "-"}
		if strict {
			args = append(args, "--strict", "--platform-namespaces=default")
		} else {
			args = append(args, "--platform-namespaces=default")
		}
		said, err := rendered(t, "", registrationFile+"---\n"+unknown, args...)
		if (err != nil) != strict || !strings.Contains(said, "cluster.kubernetesVersion") {
			t.Errorf("strict %v: %v\n%s", strict, err, said)
		}
	}
}
