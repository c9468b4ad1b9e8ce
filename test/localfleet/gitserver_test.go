// SPDX-License-Identifier: Apache-2.0

package localfleet_test

import (
	"errors"
	"io"
	"testing"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
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

// TestGitBranches: each branch has its own files, and a merge has one hold what another does.
func TestGitBranches(t *testing.T) {
	s, err := localfleet.NewGitServer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	holds := func(branch, want string) {
		t.Helper()
		fs := memfs.New()
		_, err := git.Clone(memory.NewStorage(), fs, &git.CloneOptions{URL: s.URL("team/apps"), SingleBranch: true,
			ReferenceName: plumbing.NewBranchReferenceName(branch)})
		if err != nil {
			t.Fatalf("branch %s: %v", branch, err)
		}
		f, err := fs.Open("x")
		if err != nil {
			t.Fatalf("branch %s: %v", branch, err)
		}
		if got, _ := io.ReadAll(f); string(got) != want {
			t.Errorf("branch %s holds %q, want %q", branch, got, want)
		}
	}
	for _, c := range [][2]string{{"dev", "one"}, {"qa", "zero"}, {"dev", "two"}} {
		if _, err := s.CommitTo("team/apps", c[0], map[string]string{"x": c[1]}); err != nil {
			t.Fatal(err)
		}
	}
	holds("dev", "two")
	holds("qa", "zero")
	for _, into := range []string{"qa", "prod"} {
		if _, err := s.Merge("team/apps", "dev", into); err != nil {
			t.Fatal(err)
		}
		holds(into, "two")
	}
	if _, err := s.CommitTo("team/apps", "dev", map[string]string{"x": "three"}); err != nil {
		t.Fatal(err)
	}
	holds("dev", "three")
	holds("qa", "two")
	if _, err := s.Merge("team/apps", "absent", "qa"); err == nil {
		t.Error("a branch that is not there was merged")
	}
}

// TestProtectedRepository: only who knows the password clones it.
func TestProtectedRepository(t *testing.T) {
	s, err := localfleet.NewGitServer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := s.Commit("secret", map[string]string{"x": "y"}); err != nil {
		t.Fatal(err)
	}
	s.Protect("secret", "flux", "right")
	for password, want := range map[string]error{"": transport.ErrAuthenticationRequired, "wrong": transport.ErrAuthenticationRequired, "right": nil} {
		o := &git.CloneOptions{URL: s.URL("secret"), ReferenceName: plumbing.Main}
		if password != "" {
			o.Auth = &githttp.BasicAuth{Username: "flux", Password: password}
		}
		if _, err := git.Clone(memory.NewStorage(), memfs.New(), o); !errors.Is(err, want) {
			t.Errorf("with password %q: %v, want %v", password, err, want)
		}
	}
}
