// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// AtRevision reads files and folders as they are at a revision of the Git repository that holds them. A folder that the revision does not
// have is empty there.
func AtRevision(ctx context.Context, revision string, files []string) ([]File, error) {
	if strings.HasPrefix(revision, "-") {
		return nil, fmt.Errorf("--against %s: is no Git revision", revision)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("--against %s is neither a file nor a folder, and the program git, which reads revisions, is not in the path: "+
			"install it, or write --against DIR", revision)
	}
	var out []File
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
			if !seen[in.Name] {
				seen[in.Name] = true
				out = append(out, in)
			}
		}
	}
	return out, nil
}

func filesAt(ctx context.Context, revision, name string) ([]File, error) {
	c, err := commitOf(ctx, revision, name)
	if err != nil {
		return nil, err
	}
	listed, err := git(ctx, c.root, slices.Concat([]string{"ls-tree", "-r", "-z", "--name-only", c.id}, c.only())...)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	var paths []string
	for p := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		if !strings.Contains(p, "\n") && (c.named || slices.Contains(Extensions, path.Ext(p))) {
			paths = append(paths, p)
		}
	}
	return blobs(ctx, c.root, c.id, revision, paths, c.named)
}

// RegularAt returns the regular files of a folder at a revision, by their paths in the folder: what Flux takes of a repository.
func RegularAt(ctx context.Context, revision, folder string) ([]File, error) {
	c, err := commitOf(ctx, revision, folder)
	if err != nil {
		return nil, err
	}
	listed, err := git(ctx, c.root, slices.Concat([]string{"ls-tree", "-r", "-z", c.id}, c.only())...)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	var paths []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		head, p, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(head, "100") && !strings.Contains(p, "\n") {
			paths = append(paths, p)
		}
	}
	out, err := blobs(ctx, c.root, c.id, revision, paths, false)
	for i := range out {
		out[i].Name = strings.TrimPrefix(strings.TrimPrefix(out[i].Name, revision+":"), c.at)
		out[i].Name = strings.TrimPrefix(out[i].Name, "/")
		if c.named {
			out[i].Name = path.Base(c.at)
		}
	}
	return out, err
}

// commit is a revision of the repository that holds a file or folder.
type commit struct {
	root, id string
	// at is the path from the root; named is true if it is no folder.
	at    string
	named bool
}

// only are the arguments by which git looks at nothing else.
func (c *commit) only() []string {
	if c.at == "" {
		return []string{"--"}
	}
	return []string{"--", c.at}
}

func commitOf(ctx context.Context, revision, name string) (*commit, error) {
	dir, named := name, false
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		dir, named = filepath.Dir(name), true
	}
	prefix, err := git(ctx, dir, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, fmt.Errorf("--against %s: is neither a file nor a folder, and %s is in no Git repository: %w", revision, name, err)
	}
	id, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", revision+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("--against %s: is neither a file, nor a folder, nor a revision of the Git repository that has %s. A shallow "+
			"clone, as CI makes one, has only the newest commit: fetch the other one too", revision, name)
	}
	at := strings.TrimSpace(string(prefix))
	if named {
		at += filepath.Base(name)
	}
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	return &commit{root: strings.TrimSpace(string(top)), id: strings.TrimSpace(string(id)), at: path.Clean("/" + at)[1:], named: named}, nil
}

// blobs returns files of a commit as they are stored, whatever attributes say of them. It follows links within the tree.
func blobs(ctx context.Context, root, id, revision string, paths []string, named bool) ([]File, error) {
	var ask strings.Builder
	for _, p := range paths {
		ask.WriteString(id + ":" + p + "\n")
	}
	raw, err := gitWith(ctx, root, ask.String(), "cat-file", "--batch", "--follow-symlinks")
	if err != nil {
		return nil, err
	}
	var out []File
	for _, p := range paths {
		head, rest, _ := bytes.Cut(raw, []byte("\n"))
		words := strings.Fields(string(head))
		size, err := strconv.Atoi(string(head[bytes.LastIndexByte(head, 32)+1:]))
		if err != nil || len(words) < 2 || size >= len(rest) {
			return nil, fmt.Errorf("read %s of %s: git says %q", p, revision, head)
		}
		switch content := rest[:size]; {
		case words[0] == "symlink" || words[0] == "dangling" || words[0] == "loop" || words[0] == "notdir":
			return nil, fmt.Errorf("%s of %s is a link that leads to no file of the repository", p, revision)
		case words[1] == "blob":
			out = append(out, File{revision + ":" + p, content, named})
		}
		raw = rest[size+1:]
	}
	return out, nil
}

// rootOf returns the folder of the Git repository that a folder is in. git itself takes any folder for a repository that has what one
// has (HEAD, objects, refs, config), and carries out what its config says. A pull request can bring such a folder. It cannot bring one
// that is named .git: no git takes that in.
func rootOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("look for a Git repository: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", errors.New("there is no .git in it, nor in a folder above")
		}
	}
}

// git runs git in a folder, and returns what it prints.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return gitWith(ctx, dir, "", args...)
}

// gitWith is git with something to read.
func gitWith(ctx context.Context, dir, stdin string, args ...string) ([]byte, error) {
	root, err := rootOf(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(root, ".git"), "GIT_WORK_TREE="+root)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
