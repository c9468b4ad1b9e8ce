// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// names says in one line which files these are.
func names(files []string) string { return strings.Join(files, ", ") }

// atRevision reads files and folders as they are at a revision of the Git repository that holds them. A folder that the revision does not
// have is empty there.
func atRevision(ctx context.Context, revision string, files []string) ([]input, error) {
	if strings.HasPrefix(revision, "-") {
		return nil, fmt.Errorf("--against %s: is no Git revision", revision)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("--against %s is neither a file nor a folder, and the program git, which reads revisions, is not in the path: "+
			"install it, or write --against DIR", revision)
	}
	var out []input
	seen := map[string]bool{}
	for _, name := range files {
		if name == "-" {
			return nil, fmt.Errorf("--against %s is neither a file nor a folder, and standard input has no Git revisions: write a folder", revision)
		}
		found, err := filesAt(ctx, revision, filepath.Clean(name))
		if err != nil {
			return nil, err
		}
		for _, in := range found {
			if !seen[in.name] {
				seen[in.name] = true
				out = append(out, in)
			}
		}
	}
	return out, nil
}

func filesAt(ctx context.Context, revision, name string) ([]input, error) {
	dir, named := name, false
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		dir, named = filepath.Dir(name), true
	}
	prefix, err := git(ctx, dir, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, fmt.Errorf("--against %s: is neither a file nor a folder, and %s is in no Git repository: %w", revision, name, err)
	}
	commit, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", revision+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("--against %s: is neither a file, nor a folder, nor a revision of the Git repository that has %s. A shallow "+
			"clone, as CI makes one, has only the newest commit: fetch the other one too", revision, name)
	}
	at := strings.TrimSpace(string(prefix))
	if named {
		at += filepath.Base(name)
	}
	at = path.Clean("/" + at)[1:]
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	root, id := strings.TrimSpace(string(top)), strings.TrimSpace(string(commit))
	only := []string{"--"}
	if at != "" {
		only = append(only, at)
	}
	listed, err := git(ctx, root, slices.Concat([]string{"ls-tree", "-r", "-z", "--name-only", id}, only)...)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	archived, err := git(ctx, root, slices.Concat([]string{"-c", "core.autocrlf=false", "archive", "--format=tar", id}, only)...)
	if err != nil {
		return nil, err
	}
	return untar(archived, revision, named)
}

// untar returns the files of an archive that could be the hub's objects, by their names in the repository.
func untar(raw []byte, revision string, named bool) ([]input, error) {
	var out []input
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the archive of %s: %w", revision, err)
		}
		if h.Typeflag != tar.TypeReg || !named && !slices.Contains(extensions, path.Ext(h.Name)) {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", h.Name, revision, err)
		}
		out = append(out, input{revision + ":" + h.Name, content, named})
	}
}

// git runs git in a folder, and returns what it prints.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
