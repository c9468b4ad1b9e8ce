// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"path/filepath"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/test/jsonschema"
)

// schema returns what holds a text to docs/diff.schema.json, which says of each field that there is no other.
func schema(t *testing.T) func(text string) error {
	t.Helper()
	raw := must.Read(t, "../../docs/diff.schema.json")
	return jsonschema.Checker(t, raw)
}

// TestSchema holds the JSON of every case to the schema.
func TestSchema(t *testing.T) {
	check := schema(t)
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, dir := range dirs {
		if err := check(outputs(t, computed(t, dir))["want.json"]); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for _, wrong := range []string{`{}`, `{"from":"a","to":"b","fleet":{"clusters":1,"else":2},"summary":{"changed":0,"unchanged":0,"addons":{}},"groups":[],"guards":[],"rollouts":[],"problems":[],"warnings":[],"settings":[],"notes":[]}`} {
		if check(wrong) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}
