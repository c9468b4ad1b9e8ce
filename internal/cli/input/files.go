// SPDX-License-Identifier: Apache-2.0

// Package input reads the files that commands are given: names, folders, standard input, CRDs, and revisions of a Git repository.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
)

// AddFlag adds the flag that names files.
func AddFlag(f *pflag.FlagSet, files *[]string) {
	f.StringArrayVarP(files, "filename", "f", nil, "file, folder (with its subfolders) or - for standard input; may be repeated")
}

// Flag are the files of one flag, or the arguments.
type Flag struct {
	Name  string // with its dashes; "" for arguments
	Files []string
}

// Check refuses what can only be a mistake of a script: a name that is empty, which would be the working folder, and standard input
// twice, of which the second one is nothing.
func Check(all ...Flag) error {
	standard := 0
	for _, of := range all {
		for _, name := range of.Files {
			switch {
			case name == "" && of.Name == "":
				return exit.Wrong(errors.New("a file has an empty name: is a variable of your shell not set?"))
			case name == "":
				return exit.Wrong(fmt.Errorf("%s is empty: write a file or a folder; is a variable of your shell not set?", of.Name))
			case name == "-":
				standard++
			}
		}
	}
	if standard > 1 {
		return exit.Wrong(errors.New("- is standard input, which can be read once: write it once, and a file in place of the others"))
	}
	return nil
}

// File is a file that has been read.
type File struct {
	Name string
	Raw  []byte
	// Named is true if the user named this file itself, and not a folder that contains it.
	Named bool
}

// Read reads every file once. If a file cannot be read, it reports an error and goes on with the others. It returns an error if the command
// is being ended.
func (r *Files) Read(ctx context.Context) ([]File, error) {
	var out []File
	seen := map[string]bool{}
	add := func(name string, named bool, read func() ([]byte, error)) {
		if seen[name] {
			return
		}
		seen[name] = true
		raw, err := UnlessEnded(ctx, read)
		if err != nil {
			if ctx.Err() == nil {
				r.Fail(err)
			}
			return
		}
		out = append(out, File{name, raw, named})
	}
	for _, name := range r.Names {
		if name == "-" {
			add("standard input", true, func() ([]byte, error) { return io.ReadAll(r.Stdin) })
			continue
		}
		name = filepath.Clean(name)
		info, err := os.Stat(name)
		switch {
		case err != nil:
			r.Fail(err)
		case info.IsDir():
			names, left, err := list(name)
			r.Fail(err)
			for _, n := range left {
				terminal.Say(r.Stderr, "warning: %s is no regular file (left out)", n)
			}
			for _, n := range names {
				add(n, false, func() ([]byte, error) { return os.ReadFile(n) })
			}
		default:
			add(name, true, func() ([]byte, error) { return os.ReadFile(name) })
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w while files were read: nothing is done", exit.ErrEnded)
	}
	return out, nil
}

// UnlessEnded does what may wait for ever, such as reading a pipe, and waits no longer than the command goes on.
func UnlessEnded[T any](ctx context.Context, do func() (T, error)) (out T, err error) {
	done := make(chan struct{})
	var of T
	var failed error
	go func() {
		defer close(done)
		of, failed = do()
	}()
	select {
	case <-done:
		return of, failed
	case <-ctx.Done():
		return out, exit.ErrEnded
	}
}

// Extensions are those of the files that are read of a folder.
var Extensions = []string{".yaml", ".yml", ".json"}

// list returns the regular files of a folder and its folders, sorted, with links to such in the folder, and what is left out: reading a
// pipe would wait for ever. A link that leads out of the folder is an error.
func list(dir string) (names, left []string, err error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, err
	}
	var outside []error
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(Extensions, filepath.Ext(path)) {
			return err
		}
		name := filepath.Join(dir, path)
		target, err := filepath.EvalSymlinks(filepath.Join(root, path))
		if err != nil {
			outside = append(outside, err)
			return nil
		}
		info, err := os.Stat(target)
		switch within, _ := filepath.Rel(root, target); {
		case err != nil:
			outside = append(outside, err)
		case !filepath.IsLocal(within):
			outside = append(outside, fmt.Errorf("%s is a link that leads out of the folder, to %s: name that file too, or remove the link",
				name, target))
		case info.Mode().IsRegular():
			names = append(names, name)
		default:
			left = append(left, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, left, errors.Join(append(outside, err)...)
}
