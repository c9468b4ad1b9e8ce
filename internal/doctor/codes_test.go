// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
)

// found are the codes that the tests above find.
func found() map[string]bool {
	all := map[string]bool{}
	for _, tc := range cases {
		for one := range strings.SplitSeq(tc.want, ", ") {
			if at := strings.LastIndex(one, " "); at > 0 {
				all[one[at+1:]] = true
			}
		}
	}
	return all
}

// TestDocumented: docs/doctor.md has a row for every code that the tests above find, and no others.
func TestDocumented(t *testing.T) {
	raw := must.Read(t, "../../docs/doctor.md")
	all := found()
	for code := range all {
		if !strings.Contains(string(raw), "| `"+code+"` |") {
			t.Errorf("docs/doctor.md has no row for %s", code)
		}
	}
	for line := range strings.Lines(string(raw)) {
		if code, ok := strings.CutPrefix(line, "| `"); ok {
			if code, _, _ = strings.Cut(code, "`"); !all[code] {
				t.Errorf("docs/doctor.md has a row for %s, which no test finds", code)
			}
		}
	}
}

// TestMadeForReal: for every code there is an end-to-end test that makes the fault on a real API server, and names the code as found.
func TestMadeForReal(t *testing.T) {
	files, err := filepath.Glob("../../e2e/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var tests strings.Builder
	for _, f := range files {
		raw := must.Read(t, f)
		tests.Write(raw)
	}
	for code := range found() {
		if code != "NotChecked" && !strings.Contains(tests.String(), " "+code+`"`) && !strings.Contains(tests.String(), `"`+code+`"`) {
			t.Errorf("no end-to-end test makes %s happen", code)
		}
	}
}
