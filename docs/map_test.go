// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// mapRow is a row of the map; its paths are in back quotes in the first column.
	mapRow  = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	mapPath = regexp.MustCompile("`([^`]+)`")
	braces  = regexp.MustCompile(`^(.*)\{([^}]+)\}(.*)$`)
)

// mapped returns what has a row on the map of development.md.
func mapped(t *testing.T) map[string]bool {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "development.md"), "\n## Where things are\n")
	text, _, _ = strings.Cut(text, "\n## ")
	out := map[string]bool{}
	for _, row := range mapRow.FindAllStringSubmatch(text, -1) {
		for _, m := range mapPath.FindAllStringSubmatch(row[1], -1) {
			b := braces.FindStringSubmatch(m[1])
			if b == nil {
				out[m[1]] = true
				continue
			}
			for _, name := range strings.Split(b[2], ",") {
				out[b[1]+name+b[3]] = true
			}
		}
	}
	if len(out) < 40 {
		t.Fatalf("the map names only %d folders", len(out))
	}
	return out
}

// TestMap: every package has a row on the map of development.md, or lies below one that has; and what has a row is there.
func TestMap(t *testing.T) {
	rows := mapped(t)
	packages := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			rel, err := filepath.Rel("..", filepath.Dir(path))
			packages[filepath.ToSlash(rel)] = true
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range packages {
		if !below(p, rows) {
			t.Errorf("%s has no row on the map", p)
		}
	}
	for row := range rows {
		if matches, err := filepath.Glob(filepath.Join("..", row)); err != nil || len(matches) == 0 {
			t.Errorf("the map has %s, which is not there", row)
		}
	}
}

// below returns whether a folder, or one that it lies in, has a row.
func below(folder string, rows map[string]bool) bool {
	for ; folder != "."; folder = filepath.ToSlash(filepath.Dir(folder)) {
		if rows[folder] {
			return true
		}
	}
	return false
}
