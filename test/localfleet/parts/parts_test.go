// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPathsAreDistinctAndInTheCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(EnvToolsDir, cache)
	seen := map[string]string{}
	check := func(name, path string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.HasPrefix(path, cache+string(filepath.Separator)) {
			t.Errorf("%s lies in %s, outside the cache", name, path)
		}
		if other, ok := seen[path]; ok {
			t.Errorf("%s and %s share %s", name, other, path)
		}
		seen[path] = name
	}
	for _, p := range append(All(), Node()...) {
		path, err := p.Binary()
		check(p.Name, path, err)
	}
	for _, s := range AllFiles() {
		path, err := s.Dir()
		check(s.Name+" files", path, err)
	}
}

func TestPath(t *testing.T) {
	t.Setenv(EnvToolsDir, t.TempDir())
	t.Setenv(EnvAssets, "")
	if _, err := Path("kubeadm"); err == nil || errors.Is(err, ErrNotBuilt) {
		t.Errorf("an unknown part gave %v", err)
	}
	if _, err := Path(Etcd); !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "make tools") {
		t.Errorf("a missing part gave %v", err)
	}
	if _, err := Files(Kamaji); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("a missing file set gave %v", err)
	}
	for _, p := range All() {
		if p.Name == Etcd {
			want, _ := p.Binary()
			write(t, want, "")
			if got, err := Path(Etcd); err != nil || got != want {
				t.Errorf("Path = %q, %v, want %q", got, err, want)
			}
		}
	}
}

func TestPrebuiltAssets(t *testing.T) {
	t.Setenv(EnvToolsDir, t.TempDir())
	assets := t.TempDir()
	t.Setenv(EnvAssets, assets)
	write(t, filepath.Join(assets, Etcd), "")
	if _, err := Path(Etcd); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("etcd without its kube-apiserver was used: %v", err)
	}
	write(t, filepath.Join(assets, KubeAPIServer), "")
	write(t, filepath.Join(assets, Kwok), "")
	if got, err := Path(Etcd); err != nil || got != filepath.Join(assets, Etcd) {
		t.Errorf("Path = %q, %v", got, err)
	}
	if _, err := Path(Kwok); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("kwok was taken from the assets: %v", err)
	}
}

func TestPinsDecideThePath(t *testing.T) {
	root := t.TempDir()
	t.Setenv(EnvToolsDir, t.TempDir())
	t.Setenv(EnvRoot, root)
	if _, err := Root(); err == nil {
		t.Error("a folder without our go.mod passed as the checkout")
	}
	write(t, filepath.Join(root, "go.mod"), "// a comment\nmodule "+modulePath+"\n")
	pins := filepath.Join(root, "hack", "tools", "x")
	write(t, filepath.Join(pins, "go.mod"), "module x\n")
	write(t, filepath.Join(pins, "go.sum"), "")
	part := Part{Name: "x", Pins: "x", Package: "example.com/x"}
	first, err := part.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := part.Binary(); again != first {
		t.Errorf("the same pins gave %s and %s", first, again)
	}
	part.LDFlags = "-s"
	flags, _ := part.Binary()
	write(t, filepath.Join(pins, "go.sum"), "example.com/x v1.0.0 h1:=\n")
	sums, _ := part.Binary()
	if first == flags || flags == sums {
		t.Errorf("changed inputs gave the same path: %s %s %s", first, flags, sums)
	}
}

func TestKubernetesVersionIsThePinnedOne(t *testing.T) {
	for pins, version := range kubeVersions {
		dir, err := PinsDir(pins)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), "k8s.io/kubernetes "+version+"\n") {
			t.Errorf("%s/go.mod pins another Kubernetes than %s", pins, version)
		}
	}
}

// TestVariants: each variant has pins of its own for known parts, and is built beside the usual ones.
func TestVariants(t *testing.T) {
	t.Setenv(EnvToolsDir, t.TempDir())
	usual := map[string]bool{}
	for _, p := range All() {
		path, err := p.Binary()
		if err != nil {
			t.Fatal(err)
		}
		usual[path] = true
	}
	for variant, pins := range variants {
		t.Setenv(EnvWith, "unknown, "+variant)
		others := 0
		for _, p := range All() {
			path, err := p.Binary()
			if err != nil {
				t.Fatal(err)
			}
			if !usual[path] {
				others++
			}
			if strings.HasPrefix(p.Name, "kube-") && !strings.Contains(p.LDFlags, kubeVersions[pinned(p.Pins)]) {
				t.Errorf("%s of %s is built as another version: %s", p.Name, variant, p.LDFlags)
			}
		}
		if others < len(pins) {
			t.Errorf("%s changes %d parts, and has pins for %d", variant, others, len(pins))
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
