// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/ui/uitest"
)

// TestManyLabels: a cluster with ten thousand labels makes no page large, and takes nobody's place in the choice of groups.
func TestManyLabels(t *testing.T) {
	f := uitest.Fleet(12, 2)
	for i := range 10000 {
		f.Registrations[0].Labels[fmt.Sprintf("aaa-%05d.example.org/%s", i, strings.Repeat("k", 50))] = strings.Repeat("v", 60)
	}
	s := serve(t, f, f.Registrations[0])
	if _, body, _ := s.get("/"); !strings.Contains(body, "<option>env</option>") {
		t.Error("env cannot be chosen")
	}
	if _, body, _ := s.get("/clusters/tenants-0/cluster-0000"); len(body) > 300<<10 || !strings.Contains(body, "and 9903 more") {
		t.Errorf("%d KiB", len(body)>>10)
	}
}

// changes has another version of cluster-0011 every few tenths of a second, until the test ends.
func (s *served) changes() {
	go func() {
		for n := 0; s.t.Context().Err() == nil; n++ {
			time.Sleep(300 * time.Millisecond)
			f := uitest.Fleet(60, 3)
			f.Registrations[11].Status.KubernetesVersion = fmt.Sprintf("v1.99.%d", n)
			s.fleet.set(f)
		}
	}()
}

// Steps of a browser: keep what the page shows now, and an expression that is true when it shows something else.
const (
	keep    = `true (window.kept = document.getElementById("live").innerText, window.since = Date.now(), true)`
	differs = `document.getElementById("live").innerText !== window.kept`
)

// TestAHiddenTab holds no connection, and shows the present state when somebody looks at it again.
func TestAHiddenTab(t *testing.T) {
	t.Parallel()
	s := serve(t, uitest.Fleet(60, 3))
	s.changes()
	const hide = `true (Object.defineProperty(document, "hidden", {value: %t, configurable: true}), document.dispatchEvent(new Event("visibilitychange")), true)`
	s.browse("see v1.99", keep, "true "+differs, fmt.Sprintf(hide, true), keep, "true Date.now() - window.since > 2000", "true !("+differs+")",
		fmt.Sprintf(hide, false), "true "+differs)
}
