// SPDX-License-Identifier: Apache-2.0

package localfleet_test

import (
	"io"
	"testing"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// TestGitServer clones as source-controller does, whole and with depth 1, before and after a commit that replaces a file.
func TestGitServer(t *testing.T) {
	s, err := localfleet.NewGitServer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, files := range []map[string]string{{"a/x.yaml": "one", "b.yaml": "b"}, {"a/x.yaml": "two", "c/d/e.yaml": "e"}} {
		hash, err := s.Commit("fleet", files)
		if err != nil {
			t.Fatal(err)
		}
		for _, depth := range []int{0, 1} {
			fs := memfs.New()
			repo, err := git.Clone(memory.NewStorage(), fs, &git.CloneOptions{URL: s.URL("fleet"), Depth: depth, SingleBranch: true, ReferenceName: plumbing.Main, Tags: git.NoTags})
			if err != nil {
				t.Fatalf("depth %d: %v", depth, err)
			}
			if head, err := repo.Head(); err != nil || head.Hash().String() != hash {
				t.Errorf("depth %d: head is %v (%v), want %s", depth, head, err, hash)
			}
			for path, want := range files {
				f, err := fs.Open(path)
				if err != nil {
					t.Fatalf("depth %d: %v", depth, err)
				}
				if got, _ := io.ReadAll(f); string(got) != want {
					t.Errorf("depth %d: %s holds %q, want %q", depth, path, got, want)
				}
			}
			if _, err := fs.Stat("b.yaml"); (err == nil) != (files["b.yaml"] != "") {
				t.Errorf("depth %d: b.yaml: %v", depth, err)
			}
		}
	}
}
