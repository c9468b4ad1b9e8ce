// SPDX-License-Identifier: Apache-2.0

// Package sources gets the charts and folders that the Flux sources of a fleet hold: from copies on disk, or by a fetch in a
// process of its own. Each is fetched once.
package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/fetch"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/sandbox"
)

// Store keeps what was fetched, for as long as a command runs.
type Store struct {
	// Dir is a folder for what is fetched, which goes when the store is closed.
	Dir string
	// Auth are the credentials for what is fetched.
	Auth    fetch.Auth
	box     *sandbox.Box
	fetched map[string]fetchedOnce
}

type fetchedOnce struct {
	content *fetch.Content
	err     error
}

// New returns a store. The caller closes it.
func New() (*Store, error) {
	dir, err := os.MkdirTemp("", "chandler-diff-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for charts: %w", err)
	}
	return &Store{Dir: dir, box: &sandbox.Box{}, fetched: map[string]fetchedOnce{}}, nil
}

// Close ends the process that fetches, and removes what was fetched.
func (s *Store) Close() {
	s.box.Close()
	_ = os.RemoveAll(s.Dir) // what is left there has no owner
}

// Local reads where there are copies of what sources have, each written as KIND/NAMESPACE/NAME=PATH. flag is the flag they are written by.
func Local(flag string, written []string) (map[string]string, error) {
	out := map[string]string{}
	for _, one := range written {
		name, at, ok := strings.Cut(one, "=")
		parts := strings.Split(name, "/")
		if !ok || len(parts) != 3 || !slices.Contains(fluxspec.SourceKinds, parts[0]) {
			return nil, fmt.Errorf("%s %s: write KIND/NAMESPACE/NAME=PATH, such as GitRepository/flux-system/fleet=.; the kinds are %s", flag, one,
				strings.Join(fluxspec.SourceKinds, ", "))
		}
		at, err := filepath.Abs(at)
		if err == nil {
			at, err = filepath.EvalSymlinks(at)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: there is no such file or folder", flag, one)
		}
		out[name] = at
	}
	return out, nil
}

// Makers return what makes the objects of both sides. old and next say where there are copies of what sources have, by
// KIND/NAMESPACE/NAME.
func (s *Store) Makers(ctx context.Context, in *diff.Input, old, next map[string]string) *diff.Makers {
	side := func(fleet *preview.Fleet, local map[string]string) diff.Making {
		i := inflate.New(&wares{Store: s, fleet: fleet, local: local})
		i.Work = s.box.Make
		return &making{ctx, i}
	}
	return &diff.Makers{Old: side(in.Before, old), New: side(in.After, next)}
}

// making is an Inflater for as long as there is time.
type making struct {
	ctx context.Context //nolint:containedctx // it is that of one command
	*inflate.Inflater
}

// Objects makes objects, unless the time is over.
func (m *making) Objects(in *inflate.Input) (*inflate.Result, error) {
	out, err := m.Inflater.Objects(m.ctx, in)
	if m.ctx.Err() != nil {
		return nil, errors.New("the time was over before (--timeout)")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Source(), err)
	}
	return out, nil
}

// wares are what the Flux objects of one side refer to.
type wares struct {
	*Store
	fleet *preview.Fleet
	local map[string]string
}

// Local says where there is a copy of what a source has.
func (w *wares) Local(kind, namespace, name string) string {
	return w.local[kind+"/"+namespace+"/"+name]
}

// Source returns a source that the hub does not make.
func (w *wares) Source(kind, namespace, name string) *inflate.Source {
	spec := w.fleet.Source(kind, namespace, name)
	if spec == nil {
		return nil
	}
	return &inflate.Source{Kind: kind, Namespace: namespace, Name: name, Spec: spec, Local: w.Local(kind, namespace, name)}
}

// ConfigMap returns what one holds.
func (w *wares) ConfigMap(namespace, name string) (data map[string]string, found bool) {
	doc := w.fleet.Document(namespace, document.Ref{Kind: "ConfigMap", Name: name})
	return doc.Data, doc.Found
}

// HasSecret returns whether the files have a Secret.
func (w *wares) HasSecret(namespace, name string) bool { return w.fleet.HasSecret(namespace, name) }

// Chart returns a chart, which is fetched once.
func (w *wares) Chart(ctx context.Context, spec *sourcev1.HelmChartSpec, s *inflate.Source) (*inflate.Chart, error) {
	if chart, err := w.ownChart(s); chart != nil || err != nil {
		return chart, err
	}
	switch {
	case s.Local != "" && s.Kind == sourcev1.HelmRepositoryKind:
		return localChart(s.Local, spec)
	case s.Local != "" && s.Kind == sourcev1.OCIRepositoryKind:
		return &inflate.Chart{Digest: s.Local, Path: s.Local}, nil
	case s.Kind == sourcev1.HelmRepositoryKind || s.Kind == sourcev1.OCIRepositoryKind:
		c, err := w.fetch(ctx, &fetch.Request{Kind: s.Kind, Spec: s.Spec, Chart: spec.Chart, Version: spec.Version,
			Packed: s.Kind == sourcev1.OCIRepositoryKind})
		if err != nil {
			return nil, err
		}
		return &inflate.Chart{Digest: c.Digest, Version: c.Version, Path: c.Path}, nil
	}
	f, err := w.Folder(ctx, s)
	if err != nil {
		return nil, err
	}
	at := filepath.Join(f.Root, filepath.FromSlash(path.Clean("/"+spec.Chart)))
	if within, err := filepath.EvalSymlinks(at); err != nil || !isWithin(f.Root, within) {
		return nil, fmt.Errorf("it has no folder %q", spec.Chart)
	}
	return &inflate.Chart{Digest: f.Digest + " " + spec.Chart, Path: at}, nil
}

func isWithin(root, name string) bool {
	rel, err := filepath.Rel(root, name)
	return err == nil && filepath.IsLocal(rel)
}

// localChart finds a chart in a copy of a repository: the chart itself, a folder with its name, or its archive.
func localChart(at string, spec *sourcev1.HelmChartSpec) (*inflate.Chart, error) {
	is := func(name string) bool { // a link that leads elsewhere is not there
		real, err := filepath.EvalSymlinks(name)
		return err == nil && isWithin(at, real)
	}
	for _, name := range []string{at, filepath.Join(at, spec.Chart)} {
		if info, err := os.Stat(name); err == nil && (!info.IsDir() || is(filepath.Join(name, "Chart.yaml"))) && is(name) {
			return &inflate.Chart{Digest: name, Path: name}, nil
		}
	}
	archive := filepath.Join(at, spec.Chart+"-"+spec.Version+".tgz")
	if is(archive) {
		return &inflate.Chart{Digest: archive, Path: archive}, nil
	}
	return nil, fmt.Errorf("%s has neither the chart %s nor %s", at, spec.Chart, filepath.Base(archive))
}

// ownChart returns the chart that the hub serves itself, if a source asks for it; nil if not. Its digest says that this is the same.
func (w *wares) ownChart(s *inflate.Source) (*inflate.Chart, error) {
	digest, _, _ := unstructured.NestedString(s.Spec, "ref", "digest")
	is := slices.IndexFunc(manifestchart.All(), func(a *manifestchart.Artifact) bool { return a.Digest() == digest })
	if s.Kind != sourcev1.OCIRepositoryKind || s.Local != "" || is < 0 {
		return nil, nil
	}
	at := filepath.Join(w.Dir, manifestchart.Name+".tgz")
	if err := os.WriteFile(at, manifestchart.All()[is].Archive, 0o600); err != nil {
		return nil, fmt.Errorf("keep the chart: %w", err)
	}
	return &inflate.Chart{Digest: digest, Path: at}, nil
}

// Folder returns the content of a source, which is fetched once.
func (w *wares) Folder(ctx context.Context, s *inflate.Source) (*inflate.Folder, error) {
	if s.Local != "" {
		return w.copied(s)
	}
	c, err := w.fetch(ctx, &fetch.Request{Kind: s.Kind, Spec: s.Spec})
	if err != nil {
		return nil, err
	}
	return &inflate.Folder{Digest: c.Digest, Root: c.Path}, nil
}

// copied returns what Flux would take of a copy that the caller has.
func (w *wares) copied(s *inflate.Source) (*inflate.Folder, error) {
	var ignore *string
	if text, ok := s.Spec["ignore"].(string); ok {
		ignore = &text
	}
	key := fmt.Sprintf("copy\x00%s\x00%v", s.Local, s.Spec["ignore"])
	one, ok := w.fetched[key]
	if !ok {
		one.content = &fetch.Content{Digest: key}
		dir, err := os.MkdirTemp(w.Dir, "copy-")
		if err == nil {
			one.content.Path = filepath.Join(dir, "content")
			err = fetch.Copy(s.Local, one.content.Path, ignore)
		}
		one.err = err
		w.fetched[key] = one
	}
	if one.err != nil {
		return nil, one.err
	}
	return &inflate.Folder{Digest: one.content.Digest, Root: one.content.Path}, nil
}

// often are the fields of a source that say when it is fetched, and not what.
var often = []string{"interval", "timeout", "suspend", "accessFrom"}

func (s *Store) fetch(ctx context.Context, r *fetch.Request) (*fetch.Content, error) {
	what := *r
	what.Spec = maps.Clone(r.Spec)
	for _, field := range often {
		delete(what.Spec, field)
	}
	raw, err := json.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("read the source: %w", err)
	}
	if one, ok := s.fetched[string(raw)]; ok {
		return one.content, one.err
	}
	if r.Dir, err = os.MkdirTemp(s.Dir, "source-"); err != nil {
		return nil, fmt.Errorf("make a folder for it: %w", err)
	}
	r.Auth = s.Auth
	content, err := s.box.Fetch(ctx, r)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("it cannot be fetched: %w", err)
	}
	s.fetched[string(raw)] = fetchedOnce{content, err}
	return content, err
}
