// SPDX-License-Identifier: Apache-2.0

package expectations_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/controllers/expectations"
)

func TestSatisfied(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		cached string
		after  time.Duration
		want   bool
	}{
		"not there yet":           {"", 0, false},
		"older":                   {"99", time.Second, false}, // as a text it is newer than 100
		"the same":                {"100", 0, true},
		"newer":                   {"101", 0, true},
		"deleted by a user since": {"", 4 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			var e expectations.Expectations[string]
			e.Expect("controller", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "100"}}, now)
			cached := func(o expectations.Object) string {
				if o.Kind != "ConfigMap" || o.Namespace != "ns" || o.Name != "a" {
					t.Errorf("asked for %v", o)
				}
				return tc.cached
			}
			if got := e.Satisfied("controller", cached, now.Add(tc.after)); got != tc.want {
				t.Errorf("satisfied: %t, want %t", got, tc.want)
			}
			if !e.Satisfied("another controller", cached, now) {
				t.Error("another controller expects it too")
			}
			// What was seen once is not asked for again.
			if tc.want && !e.Satisfied("controller", func(expectations.Object) string { t.Error("asked again"); return "" }, now) {
				t.Error("not satisfied again")
			}
		})
	}
}

func TestForget(t *testing.T) {
	var e expectations.Expectations[string]
	now := time.Now()
	e.Expect("controller", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "100"}}, now)
	e.Forget("controller")
	if !e.Satisfied("controller", func(expectations.Object) string { return "" }, now) {
		t.Error("a forgotten expectation is waited for")
	}
}
