// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	"k8s.io/utils/clock"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// candidateFor returns a kubeconfig for a server, with this token.
func candidateFor(t *testing.T, server, token string) candidate {
	t.Helper()
	return candidate{key: "value", config: configOf(t, []byte(strings.ReplaceAll(string(kubeConfigFor(server)), "c29tZS1vcGFxdWUtdG9rZW4", token)))}
}

// TestPublish: Flux gets a kubeconfig when the cluster has answered to it. At the same address there may be another cluster by now.
func TestPublish(t *testing.T) {
	old := candidateFor(t, "https://192.0.2.1:6443", "old")
	for name, tc := range map[string]struct {
		inUse    *candidate
		next     candidate
		answered bool
		want     string
	}{
		"TheFirst":                  {nil, old, false, ""},
		"TheFirstIsAnswered":        {nil, old, true, old.config.Fingerprint()},
		"TheSameBeforeTheFirstLook": {&old, old, false, old.config.Fingerprint()},
		"Renewed":                   {&old, candidateFor(t, "https://192.0.2.1:6443", "new"), false, old.config.Fingerprint()},
		"RenewedAndAnswered": {
			&old, candidateFor(t, "https://192.0.2.1:6443", "new"), true, candidateFor(t, "https://192.0.2.1:6443", "new").config.Fingerprint(),
		},
		"Elsewhere": {&old, candidateFor(t, "https://192.0.2.2:6443", "old"), false, old.config.Fingerprint()},
	} {
		t.Run(name, func(t *testing.T) {
			r, reg := &Reconciler{Clock: clock.RealClock{}}, &hubv1.ClusterRegistration{}
			if tc.inUse != nil {
				r.publish(reg, resolution{secret: "one"}, *tc.inUse, true)
			}
			r.publish(reg, resolution{secret: "one"}, tc.next, tc.answered)
			got := ""
			if c := reg.Status.Credential; c != nil {
				got = c.Fingerprint
			}
			if got != tc.want {
				t.Errorf("in use is %q, want %q", got, tc.want)
			}
		})
	}
}
