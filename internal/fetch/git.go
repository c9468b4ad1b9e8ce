// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// fetched is the name of what is fetched, in the repository that is thrown away afterwards.
const fetched = "refs/chandler/fetched"

// git fetches the newest commit of a repository that its spec asks for.
func (h *fetching) git(ctx context.Context, spec *sourcev1.GitRepositorySpec, dir string) (*Content, error) {
	switch {
	case !strings.HasPrefix(spec.URL, "https://") && !strings.HasPrefix(spec.URL, "http://"):
		return nil, errors.New("only http and https are fetched from: say by --local-sources where a clone is")
	case len(spec.Include) > 0 || spec.RecurseSubmodules:
		return nil, errors.New("spec.include and spec.recurseSubmodules are not known here: say by --local-sources where a copy of the " +
			"content is")
	}
	if _, err := url.Parse(spec.URL); err != nil { // go-git would say it with the password
		return nil, fmt.Errorf("%q is no address of a repository", redacted(spec.URL))
	}
	for _, scheme := range []string{"ssh", "git", "file"} {
		client.InstallProtocol(scheme, nil)
	}
	for _, scheme := range []string{"http", "https"} {
		client.InstallProtocol(scheme, githttp.NewClient(h.client))
	}
	storage := filesystem.NewStorage(osfs.New(filepath.Join(dir, "git")), cache.NewObjectLRU(16*cache.MiByte))
	repo, err := git.Init(storage, nil)
	if err != nil {
		return nil, fmt.Errorf("make a repository: %w", err)
	}
	remote, err := repo.CreateRemoteAnonymous(&config.RemoteConfig{Name: "anonymous", URLs: []string{spec.URL}})
	if err != nil {
		return nil, fmt.Errorf("%q is no address of a repository", redacted(spec.URL))
	}
	if err := fetchRef(ctx, remote, spec.Reference); err != nil {
		return nil, err
	}
	at := plumbing.Revision(fetched)
	if spec.Reference != nil && spec.Reference.Commit != "" {
		at = plumbing.Revision(spec.Reference.Commit)
	}
	hash, err := repo.ResolveRevision(at)
	if err != nil {
		return nil, fmt.Errorf("there is no commit %s", at)
	}
	commit, err := repo.CommitObject(*hash)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", hash, err)
	}
	out := &Content{Path: filepath.Join(dir, "content"), Digest: hash.String(), Version: hash.String()}
	if err := checkout(commit, out.Path, spec.SparseCheckout); err != nil {
		return nil, err
	}
	return out, leaveOut(out.Path, spec.Ignore)
}

// fetchRef fetches what a reference leads to: one commit, or the branch that has the commit.
func fetchRef(ctx context.Context, remote *git.Remote, ref *sourcev1.GitRepositoryRef) error {
	if ref == nil {
		ref = &sourcev1.GitRepositoryRef{}
	}
	fetch := func(what string, depth int) error {
		err := remote.FetchContext(ctx, &git.FetchOptions{RefSpecs: []config.RefSpec{config.RefSpec("+" + what + ":" + fetched)},
			Depth: depth, Tags: git.NoTags})
		if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
			return fmt.Errorf("fetch %s: %w", what, err)
		}
		return nil
	}
	branch := "refs/heads/master" // as Flux has it
	if ref.Branch != "" {
		branch = "refs/heads/" + ref.Branch
	}
	switch {
	case ref.Commit != "":
		if err := fetch(ref.Commit, 1); err == nil {
			return nil
		}
		return fetch(branch, 0) // a server need not give single commits
	case ref.Name != "":
		return fetch(ref.Name, 1)
	case ref.SemVer != "":
		name, err := newestTag(ctx, remote, ref.SemVer)
		if err != nil {
			return err
		}
		return fetch("refs/tags/"+name, 1)
	case ref.Tag != "":
		return fetch("refs/tags/"+ref.Tag, 1)
	}
	return fetch(branch, 1)
}

func newestTag(ctx context.Context, remote *git.Remote, want string) (string, error) {
	refs, err := remote.ListContext(ctx, &git.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the tags: %w", err)
	}
	var tags []string
	for _, r := range refs {
		if r.Name().IsTag() {
			tags = append(tags, r.Name().Short())
		}
	}
	at, err := newest(tags, want)
	if err != nil {
		return "", err
	}
	return tags[at], nil
}

// checkout writes the regular files of a commit, all of them or those of some folders.
func checkout(commit *object.Commit, dir string, only []string) error {
	tree, err := commit.Tree()
	if err != nil {
		return fmt.Errorf("read the commit: %w", err)
	}
	f, err := newFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	files := tree.Files()
	defer files.Close()
	for {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the commit: %w", err)
		}
		if file.Mode != filemode.Regular && file.Mode != filemode.Executable && file.Mode != filemode.Deprecated || !within(file.Name, only) {
			continue
		}
		from, err := file.Reader()
		if err != nil {
			return fmt.Errorf("read %s: %w", file.Name, err)
		}
		err = f.write(file.Name, from)
		_ = from.Close()
		if err != nil {
			return err
		}
	}
}

// within returns whether a file is in one of some folders; without any, all are.
func within(name string, folders []string) bool {
	for _, dir := range folders {
		if dir = path.Clean(strings.TrimPrefix(dir, "/")); dir == "." || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return len(folders) == 0
}
