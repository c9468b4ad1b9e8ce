// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"
)

// ReadChart returns the files of a chart: of an archive, or of a folder, of which only regular files count.
func ReadChart(name string) ([]*archive.BufferedFile, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, errors.New("it is not there")
	}
	if info.IsDir() {
		return readFolder(name)
	}
	if info.Size() > maxChart {
		return nil, fmt.Errorf("it is larger than %d MiB", maxChart>>20)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	files, err := archive.LoadArchiveFiles(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("its archive: %w", err)
	}
	return files, nil
}

func readFolder(name string) ([]*archive.BufferedFile, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, errors.New("it cannot be opened")
	}
	defer func() { _ = root.Close() }()
	rules := ignore.Empty()
	if raw, err := root.ReadFile(ignore.HelmIgnore); err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(raw)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	var out []*archive.BufferedFile
	left := archive.MaxDecompressedChartSize
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if name != "." && (strings.EqualFold(d.Name(), gitFolder) || rules.Ignore(name, info)) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		if left -= info.Size(); left < 0 || info.Size() > archive.MaxDecompressedFileSize {
			return errors.New("it is larger than Helm allows")
		}
		raw, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		raw = bytes.TrimPrefix(raw, []byte("\xEF\xBB\xBF"))
		out = append(out, &archive.BufferedFile{Name: name, ModTime: info.ModTime(), Data: raw})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("its folder: %w", err)
	}
	return out, nil
}
