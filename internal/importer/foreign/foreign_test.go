// SPDX-License-Identifier: Apache-2.0

package foreign_test

import (
	"path/filepath"
	"testing"

	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/importer/foreign"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/preview"
)

// TestWrite: the set for each object in testdata, with its notes, is what a user would see, and the API server takes it.
func TestWrite(t *testing.T) {
	one, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(one) == 0 {
		t.Fatal(one, err)
	}
	fleet, err := filepath.Glob("testdata/fleet/*/fleet.yaml")
	if err != nil || len(fleet) == 0 {
		t.Fatal(fleet, err)
	}
	for _, file := range append(one, fleet...) {
		t.Run(file, func(t *testing.T) {
			raw := must.Read(t, file)
			golden.Compare(t, file+".want", written(t, filepath.ToSlash(file), raw))
		})
	}
}

func written(t *testing.T, file string, raw []byte) string {
	t.Helper()
	var set *foreign.Set
	var err error
	if foreign.IsFleetFile(file) {
		set, err = foreign.Fleet(file, raw, "flux-system")
	} else {
		found, readErr := preview.Documents(file, raw)
		if readErr != nil || len(found) != 1 || !foreign.Known(found[0].Unstructured) {
			t.Fatal(readErr, found)
		}
		set, err = foreign.Write(found[0].Unstructured, "flux-system")
	}
	if err != nil {
		return err.Error() + "\n"
	}
	text := must.Get(folding.YAML(set.AddonSet)).Or(t)
	if err := crdschema.Ours("AddonSet").Refuses([]byte(text)); err != nil {
		t.Errorf("the API server refuses it: %v", err)
	}
	return set.Comment() + text
}
