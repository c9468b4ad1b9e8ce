// SPDX-License-Identifier: Apache-2.0

package echo_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/controllers/echo"
)

func TestBehind(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		cached string
		after  time.Duration
		want   bool
	}{
		"not there yet":             {"", 0, true},
		"older":                     {"99", time.Second, true}, // as a text it is newer than 100
		"the same":                  {"100", 0, false},
		"newer":                     {"101", 0, false},
		"deleted by somebody since": {"", 4 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var w echo.Writes[string]
			w.Note("controller", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "100"}}, now)
			cached := func(o echo.Object) string {
				if o.Kind != "ConfigMap" || o.Namespace != "ns" || o.Name != "a" {
					t.Errorf("asked for %v", o)
				}
				return tc.cached
			}
			if got := w.Behind("controller", cached, now.Add(tc.after)); got != tc.want {
				t.Errorf("behind: %t, want %t", got, tc.want)
			}
			if w.Behind("another controller", cached, now) {
				t.Error("another controller is behind too")
			}
			// What was seen once is not asked for again.
			if !tc.want && w.Behind("controller", func(echo.Object) string { t.Error("asked again"); return "" }, now) {
				t.Error("behind again")
			}
		})
	}
}

func TestForget(t *testing.T) {
	var w echo.Writes[string]
	now := time.Now()
	w.Note("controller", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "100"}}, now)
	w.Forget("controller")
	if w.Behind("controller", func(echo.Object) string { return "" }, now) {
		t.Error("a forgotten write is waited for")
	}
}
