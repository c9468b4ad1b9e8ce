// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestTargetTakesTheKeyThatFluxTakes: without a key, that is value, and value.yaml if there is no value.
func TestTargetTakesTheKeyThatFluxTakes(t *testing.T) {
	at := func(server string) []byte {
		return []byte(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://` + server + `:6443"}}], users: [{name: u, user: {token: t}}]}`)
	}
	for name, tc := range map[string]struct {
		key     string
		data    map[string][]byte
		server  string
		problem string
	}{
		"Value":     {"", map[string][]byte{"value": at("192.0.2.1"), "value.yaml": at("192.0.2.2")}, "192.0.2.1", ""},
		"ValueYAML": {"", map[string][]byte{"value.yaml": at("192.0.2.2"), "config": at("192.0.2.3")}, "192.0.2.2", ""},
		"Named":     {"config", map[string][]byte{"value": at("192.0.2.1"), "config": at("192.0.2.3")}, "192.0.2.3", ""},
		"NotThere":  {"config", map[string][]byte{"value": at("192.0.2.1")}, "", `has no key "config"`},
		"Neither":   {"", map[string][]byte{"config": at("192.0.2.3")}, "", `has no key "value"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := target(tc.data, tc.key)
			if tc.server == "" {
				if !strings.Contains(got.Problem, tc.problem) {
					t.Errorf("problem %q", got.Problem)
				}
				return
			}
			want := must.Get(kubeconfig.Parse(at(tc.server), kubeconfig.Rules{AllowMissingCA: true})).Or(t)
			if got.Problem != "" || got.Fingerprint != want.TargetFingerprint() {
				t.Errorf("%+v", got)
			}
		})
	}
}
