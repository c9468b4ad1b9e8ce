// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
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
		"Published": {want: []string{"url: http://hub.example.org", "chandler.dev/chart: east"}},
		"Written":   {[]string{"--chart-url=http://mine.example.org"}, []string{"url: http://mine.example.org", "chandler.dev/chart: east"}},
		"Elsewhere": {[]string{"--hub-namespace=nowhere", "--platform-namespaces=default"},
			[]string{"url: http://chandler.nowhere.svc", "chandler.dev/chart: chandler"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := renderCommand()
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
