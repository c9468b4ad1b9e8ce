// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// files are the content of a volume, by path.
type files map[string][]byte

// readVolume returns what a kubelet would put into a volume that comes from Secrets and ConfigMaps.
func readVolume(ctx context.Context, c client.Client, namespace string, v corev1.Volume) (files, error) {
	out := files{}
	switch {
	case v.Secret != nil:
		return out, out.addSecret(ctx, c, namespace, v.Secret.SecretName, v.Secret.Items)
	case v.ConfigMap != nil:
		return out, out.addConfigMap(ctx, c, namespace, v.ConfigMap.Name, v.ConfigMap.Items)
	case v.EmptyDir != nil:
		return out, nil
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			var err error
			switch {
			case source.Secret != nil:
				err = out.addSecret(ctx, c, namespace, source.Secret.Name, source.Secret.Items)
			case source.ConfigMap != nil:
				err = out.addConfigMap(ctx, c, namespace, source.ConfigMap.Name, source.ConfigMap.Items)
			default:
				err = errors.New("it is projected from something else than a Secret or a ConfigMap")
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, errors.New("it is of a kind that the runner does not know")
}

func (f files) addSecret(ctx context.Context, c client.Client, namespace, name string, items []corev1.KeyToPath) error {
	s := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		return err
	}
	return f.add(name, s.Data, items)
}

func (f files) addConfigMap(ctx context.Context, c client.Client, namespace, name string, items []corev1.KeyToPath) error {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm); err != nil {
		return err
	}
	data := maps.Clone(cm.BinaryData)
	for key, text := range cm.Data {
		if data == nil {
			data = map[string][]byte{}
		}
		data[key] = []byte(text)
	}
	return f.add(name, data, items)
}

// add adds every key of an object, or the items.
func (f files) add(name string, data map[string][]byte, items []corev1.KeyToPath) error {
	if len(items) == 0 {
		maps.Copy(f, data)
		return nil
	}
	for _, item := range items {
		content, ok := data[item.Key]
		if !ok {
			return fmt.Errorf("%s has no key %q", name, item.Key)
		}
		f[item.Path] = content
	}
	return nil
}

// dataLink leads to the content of a volume, as a kubelet names it. Programs that reload their certificates know that name.
const dataLink = "..data"

// layVolume makes a folder contain exactly these files. All of them change at the same moment, so that nobody reads a
// certificate and the key of another one: they are in a folder of their own, and a link to it is swapped.
func layVolume(dir string, content files) error {
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old != "" && same(filepath.Join(dir, old), content) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	for path, raw := range content {
		file := filepath.Join(fresh, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return err
		}
	}
	next := filepath.Join(dir, dataLink+"_tmp")
	if err := os.Symlink(filepath.Base(fresh), next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	if err := linkNames(dir, content); err != nil || old == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, old))
}

// linkNames makes the names that programs read go through the link, and removes those of files that are gone.
func linkNames(dir string, content files) error {
	names := map[string]bool{}
	for path := range content {
		first, _, _ := strings.Cut(path, "/")
		names[first] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); names[name] {
			delete(names, name)
		} else if !strings.HasPrefix(name, "..") {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether a folder holds just these files.
func same(dir string, content files) bool {
	found := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		want, ok := content[filepath.ToSlash(name)]
		if err == nil && (!ok || string(raw) != string(want)) {
			err = fs.SkipAll
			found = -1
		}
		found++
		return err
	})
	return err == nil && found == len(content)
}
