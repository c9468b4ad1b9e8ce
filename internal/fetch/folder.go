// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
)

// folder is the content of a source that is being written. It takes regular files alone, as source-controller does: what a link leads to
// is not taken along.
type folder struct {
	root  *os.Root
	left  int64
	files int
}

func newFolder(dir string) (*folder, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open a folder: %w", err)
	}
	return &folder{root: root, left: maxContent}, nil
}

func (f *folder) close() { _ = f.root.Close() }

// write writes a file. Its name comes from elsewhere.
func (f *folder) write(name string, from io.Reader) error {
	name = path.Clean(name)
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("file %q is not within its folder", name)
	}
	if f.files++; f.files > maxFiles {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	out, err := f.root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	n, err := io.Copy(out, io.LimitReader(from, f.left+1))
	if f.left -= n; f.left < 0 {
		err = fmt.Errorf("its files are larger than %d MiB", maxContent>>20)
	}
	return errors.Join(err, out.Close())
}

// untar writes the regular files of an archive into a new folder.
func untar(raw []byte, dir string) error {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return errors.New("it is no archive of tar and gzip")
	}
	f, err := newFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	for entries := tar.NewReader(zip); ; {
		head, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		if err := f.write(head.Name, entries); err != nil {
			return err
		}
	}
}

// gitFolder is where Git keeps a repository: its history, and often a credential in its config. No source has it.
const gitFolder = ".git"

// Copy writes what source-controller would take of a folder into a new one: regular files, nothing of Git's own, and nothing that
// .sourceignore or spec.ignore leaves out. A clone holds more than that: links to anywhere, and the credential it was cloned with.
func Copy(from, dir string, ignore *string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("%s is no folder that can be read", from)
	}
	defer func() { _ = root.Close() }()
	f, err := newFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.EqualFold(d.Name(), gitFolder) && d.IsDir():
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.EqualFold(d.Name(), gitFolder):
			return nil
		}
		return f.copy(root, name)
	})
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return leaveOut(dir, ignore)
}

func (f *folder) copy(root *os.Root, name string) error {
	in, err := root.Open(name)
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	defer func() { _ = in.Close() }()
	return f.write(name, in)
}

// leaveOut removes what source-controller leaves out: what .sourceignore or spec.ignore says, and what no cluster needs.
func leaveOut(dir string, spec *string) error {
	var patterns string
	if spec != nil {
		patterns = *spec
	}
	domain := strings.Split(filepath.ToSlash(dir), "/")
	own, err := sourceignore.LoadIgnorePatterns(dir, domain)
	if err != nil {
		return fmt.Errorf("read .sourceignore: %w", err)
	}
	if spec != nil {
		own = append(own, sourceignore.ReadPatterns(strings.NewReader(patterns), domain)...)
	}
	matcher := sourceignore.NewDefaultMatcher(own, domain)
	var gone []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != dir && matcher.Match(strings.Split(filepath.ToSlash(name), "/"), d.IsDir()) {
			gone = append(gone, name)
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		return err
	})
	for _, name := range gone {
		err = errors.Join(err, os.RemoveAll(name))
	}
	if err != nil {
		return fmt.Errorf("leave out what is to be ignored: %w", err)
	}
	return nil
}
