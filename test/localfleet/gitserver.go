// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/memory"
)

// GitServer serves Git repositories over HTTP, from memory, as far as a clone needs it. It uses go-git, so no git
// binary is needed.
type GitServer struct {
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	repos map[string]*gitRepo
	// credentials of those who may clone a repository, by its name: user and password. Any may clone one without.
	credentials map[string][2]string
}

type gitRepo struct {
	repo    *git.Repository
	storage storer.Storer
	times   int
}

// NewGitServer starts a server without repositories on loopback.
func NewGitServer() (*GitServer, error) { return NewGitServerAt("127.0.0.1") }

// NewGitServerAt starts one at another address of this machine, for whoever does not share its loopback.
func NewGitServerAt(host string) (*GitServer, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	s := &GitServer{listener: l, repos: map[string]*gitRepo{}, credentials: map[string][2]string{}}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }()
	return s, nil
}

// URL returns the address to clone a repository from. A repository's name may hold slashes.
func (s *GitServer) URL(repo string) string {
	return fmt.Sprintf("http://%s/%s", s.listener.Addr(), repo)
}

// Close ends the server.
func (s *GitServer) Close() error { return s.server.Close() }

// Protect lets only those clone a repository who know this user and password.
func (s *GitServer) Protect(repo, user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credentials[repo] = [2]string{user, password}
}

// Commit makes files, by path, the whole content of branch main of a repository, which is made if it does not exist.
func (s *GitServer) Commit(repo string, files map[string]string) (string, error) {
	return s.CommitTo(repo, plumbing.Main.Short(), files)
}

// CommitTo does that to another branch. A branch that does not exist begins with these files.
func (s *GitServer) CommitTo(repo, branch string, files map[string]string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[repo]
	if r == nil {
		storage := memory.NewStorage()
		created, err := git.InitWithOptions(storage, memfs.New(), git.InitOptions{DefaultBranch: plumbing.Main})
		if err != nil {
			return "", fmt.Errorf("make repository %s: %w", repo, err)
		}
		r = &gitRepo{repo: created, storage: storage}
		s.repos[repo] = r
	}
	if err := r.storage.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(branch))); err != nil {
		return "", err
	}
	tree, err := r.repo.Worktree()
	if err != nil {
		return "", err
	}
	if err := replaceFiles(tree, files); err != nil {
		return "", fmt.Errorf("write into repository %s: %w", repo, err)
	}
	r.times++
	hash, err := tree.Commit(fmt.Sprintf("commit %d", r.times), &git.CommitOptions{
		AllowEmptyCommits: true, Author: &object.Signature{Name: "demo", Email: "demo@example.org", When: time.Now()},
	})
	return hash.String(), err
}

// Merge has a branch hold what another one holds, as merging a pull request between them does that nobody else has
// come before. A branch that does not exist is made.
func (s *GitServer) Merge(repo, from, into string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[repo]
	if r == nil {
		return "", fmt.Errorf("there is no repository %s", repo)
	}
	head, err := r.storage.Reference(plumbing.NewBranchReferenceName(from))
	if err != nil {
		return "", fmt.Errorf("branch %s of repository %s: %w", from, repo, err)
	}
	return head.Hash().String(), r.storage.SetReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(into), head.Hash()))
}

func replaceFiles(tree *git.Worktree, files map[string]string) error {
	old, err := tree.Filesystem.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range old {
		if err := removeAll(tree, "/"+e.Name(), e.IsDir()); err != nil {
			return err
		}
	}
	paths := make([]string, 0, len(files))
	for p := range files {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	for _, p := range paths {
		f, err := tree.Filesystem.Create(p)
		if err != nil {
			return err
		}
		if _, err := f.Write([]byte(files[p])); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return tree.AddWithOptions(&git.AddOptions{All: true})
}

func removeAll(tree *git.Worktree, path string, dir bool) error {
	if dir {
		entries, err := tree.Filesystem.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeAll(tree, path+"/"+e.Name(), e.IsDir()); err != nil {
				return err
			}
		}
		return nil // a folder without files is none, to Git
	}
	return tree.Filesystem.Remove(path)
}

// The addresses below that of a repository.
const (
	infoRefs      = "/info/refs"
	gitUploadPack = "/git-upload-pack"
)

// repoOf returns the repository that a path is of, and what is wanted of it.
func repoOf(path string) (name, op string) {
	path = strings.TrimPrefix(path, "/")
	for _, op := range []string{infoRefs, gitUploadPack} {
		if name, ok := strings.CutSuffix(path, op); ok {
			return name, op
		}
	}
	return path, ""
}

// ServeHTTP speaks the smart protocol: the references, and the pack of what a client lacks.
func (s *GitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, op := repoOf(r.URL.Path)
	s.mu.Lock()
	defer s.mu.Unlock() // a commit must not come between a reference and its pack
	if want, ok := s.credentials[name]; ok {
		if user, password, _ := r.BasicAuth(); [2]string{user, password} != want {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
	}
	repo := s.repos[name]
	if repo == nil {
		http.NotFound(w, r)
		return
	}
	endpoint, err := transport.NewEndpoint(s.URL(name))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	session, err := server.NewServer(server.MapLoader{endpoint.String(): repo.storage}).NewUploadPackSession(endpoint, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	switch op {
	case infoRefs:
		err = advertise(r.Context(), w, session)
	case gitUploadPack:
		err = uploadPack(r.Context(), w, r.Body, session)
	default:
		http.NotFound(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func advertise(ctx context.Context, w http.ResponseWriter, session transport.UploadPackSession) error {
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	refs.Prefix = [][]byte{[]byte("# service=git-upload-pack"), pktline.Flush}
	return refs.Encode(w)
}

func uploadPack(ctx context.Context, w http.ResponseWriter, body io.Reader, session transport.UploadPackSession) error {
	req := packp.NewUploadPackRequest()
	if err := req.Decode(body); err != nil {
		return err
	}
	// go-git's server does not support shallow clones. Unless it is told that a client wants one, it answers with
	// everything, which is a valid answer. The client then expects a list of the commits where history was cut, and
	// gets an empty one.
	shallow := !req.Depth.IsZero()
	req.Depth = packp.DepthCommits(0)
	req.Capabilities.Delete(capability.Shallow)
	req.Shallows = slices.Clip(req.Shallows[:0])
	resp, err := session.UploadPack(ctx, req)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	if shallow {
		if err := pktline.NewEncoder(w).Flush(); err != nil {
			return err
		}
	}
	return resp.Encode(w)
}
