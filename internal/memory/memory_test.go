// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-hub/chandler/internal/memory"
)

func TestMap(t *testing.T) {
	var m memory.Map[string, int]
	m.Delete("a") // of which nothing is known
	m.DeleteFunc(func(string, int) bool { return true })
	if _, known := m.Get("a"); known || m.Len() != 0 || len(m.All()) != 0 {
		t.Error("it remembers what never was")
	}
	m.Update("a", func(was int, known bool) (int, bool) {
		if was != 0 || known {
			t.Errorf("it remembers %d", was)
		}
		return 1, false
	})
	if m.Len() != 0 {
		t.Error("it remembers what was not to be kept")
	}
	m.Put("a", 1)
	m.Put("b", 2)
	all := m.All()
	m.Update("a", func(was int, known bool) (int, bool) { return was + 10, known })
	if v, known := m.Get("a"); v != 11 || !known || m.Len() != 2 || all["a"] != 1 {
		t.Errorf("a is %d, and was %d", v, all["a"])
	}
	m.DeleteFunc(func(key string, value int) bool { return key == "b" && value == 2 })
	m.Update("a", func(int, bool) (int, bool) { return 0, false })
	if m.Len() != 0 {
		t.Errorf("left: %v", m.All())
	}
}

// TestUpdateIsAtomic: nothing is lost of what many note at once, also where a value is a map that all of them change.
func TestUpdateIsAtomic(t *testing.T) {
	var m memory.Map[string, map[int]bool]
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			m.Update("a", func(was map[int]bool, known bool) (map[int]bool, bool) {
				if !known {
					was = map[int]bool{}
				}
				was[i] = true
				return was, true
			})
		})
	}
	all.Wait()
	if is, _ := m.Get("a"); len(is) != 50 {
		t.Errorf("%d of 50 are left", len(is))
	}
}

// TestRecent: what was not used for longest goes, by number and by size, and what was used last stays.
func TestRecent(t *testing.T) {
	var r memory.Recent[string, int]
	r.Delete("a") // of which nothing is known
	for i, key := range []string{"a", "b", "c", "d"} {
		r.Put(key, i, 10, memory.Bound{Entries: 3})
		r.Get("a")
	}
	if _, known := r.Get("b"); known {
		t.Error("what was used longest ago is kept")
	}
	if v, known := r.Get("d"); v != 3 || !known {
		t.Error("what came last has gone")
	}
	if entries, bytes := r.Kept(); entries != 3 || bytes != 30 {
		t.Errorf("%d of %d bytes are kept", entries, bytes)
	}
	r.Put("a", 7, 25, memory.Bound{Bytes: 40}) // again, and larger
	if v, _ := r.Get("a"); v != 7 {
		t.Errorf("a is %d", v)
	}
	if _, known := r.Get("d"); !known {
		t.Error("more has gone than had to")
	}
	if entries, bytes := r.Kept(); entries != 2 || bytes != 35 {
		t.Errorf("%d of %d bytes are kept", entries, bytes)
	}
	r.Put("huge", 0, 41, memory.Bound{Bytes: 40})
	if entries, bytes := r.Kept(); entries != 2 || bytes != 35 {
		t.Errorf("%d of %d bytes are kept, and one does not fit", entries, bytes)
	}
	for _, key := range []string{"a", "b", "c", "d"} {
		r.Delete(key)
	}
	if v, known := r.GetOrPut("a", 1); v != 1 || known {
		t.Error("it remembers what has gone")
	}
	if v, known := r.GetOrPut("a", 2); v != 1 || !known {
		t.Errorf("there are two of one: %d", v)
	}
	r.Put("a", 3, 5, memory.Bound{})
	if r.Delete("a"); !empty(&r) {
		t.Error("what was forgotten is counted")
	}
}

func empty(r *memory.Recent[string, int]) bool {
	entries, bytes := r.Kept()
	return entries == 0 && bytes == 0
}

// TestReaders: a reader is one until he has not read something from one Prune to the next, or is forgotten; what nobody reads is told once.
func TestReaders(t *testing.T) {
	var r memory.Readers[string, int]
	is := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	is("of nobody", append(r.Prune("one"), r.Forget("one")...), []int{})
	r.Note("one", 1)
	r.Note("one", 1)
	r.Note("one", 2)
	r.Note("two", 2)
	is("notes", r.Notes(), 3)
	is("all was read", r.Prune("one"), []int{})
	r.Note("one", 2)
	is("not read again", r.Prune("one"), []int{1})
	is("readers of what nobody reads", r.Of(1), []string{})
	readers := r.Of(2)
	slices.Sort(readers)
	is("readers", readers, []string{"one", "two"})
	is("another reads it", r.Forget("one"), []int{})
	is("nobody reads it", r.Forget("two"), []int{2})
	is("notes", r.Notes(), 0)
}

// TestAllAreListed: what the hub remembers is listed in the documentation of this package, by the package that remembers it.
func TestAllAreListed(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{"cmd", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			p, err := build.ImportDir(dir, 0)
			if err != nil || !slices.Contains(p.Imports, "github.com/chandler-hub/chandler/internal/memory") {
				return nil //nolint:nilerr // there are no Go files
			}
			if name := strings.TrimPrefix(filepath.ToSlash(dir), "../../"); !strings.Contains(string(doc), "# "+name+"\n") {
				t.Errorf("doc.go does not list what %s remembers", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
