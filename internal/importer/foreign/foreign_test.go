// SPDX-License-Identifier: Apache-2.0

package foreign_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/importer/foreign"
	"github.com/chandler-hub/chandler/internal/preview"
)

var update = flag.Bool("update", false, "write the golden files")

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
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := written(t, filepath.ToSlash(file), raw)
			if *update {
				if err := os.WriteFile(file+".want", []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
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
	text, err := folding.YAML(set.AddonSet)
	if err != nil {
		t.Fatal(err)
	}
	if err := crdschema.Ours("AddonSet").Refuses([]byte(text)); err != nil {
		t.Errorf("the API server refuses it: %v", err)
	}
	return set.Comment() + text
}
