// SPDX-License-Identifier: Apache-2.0

// Package fetch brings the content of Flux sources into a folder, as source-controller does: charts of Helm repositories, Git
// repositories, and OCI artifacts. It talks only to the address of the source, and to where that one leads.
//
// The server of a source may be hostile, and so may be the author of its address. So it runs in a process of its own, with bounds of time
// and memory (package sandbox); it bounds what it reads, and it never reaches the metadata service of a cloud.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Request is what is to be fetched.
type Request struct {
	// Kind and Spec are those of the source.
	Kind string         `json:"kind"`
	Spec map[string]any `json:"spec"`
	// Chart and Version say which chart of a HelmRepository it is. Version may be a range.
	Chart   string `json:"chart,omitempty"`
	Version string `json:"version,omitempty"`
	// Packed is true if an OCIRepository is a chart.
	Packed bool `json:"packed,omitempty"`
	// Dir is a folder that is there and empty, for the content.
	Dir string `json:"dir"`
	// Auth are credentials by host.
	Auth Auth `json:"auth,omitempty"`
}

// Content is what was fetched.
type Content struct {
	// Path is where it is: the archive of a chart, or a folder.
	Path    string `json:"path"`
	Digest  string `json:"digest"`
	Version string `json:"version,omitempty"`
}

// Limits of one request, in bytes and in number.
const (
	maxRead    = 256 << 20 // of all that is read from the network
	maxIndex   = 64 << 20
	maxChart   = 32 << 20
	maxContent = 256 << 20 // of all files of a folder
	maxFiles   = 50_000
)

// Fetcher fetches. It keeps the index of the repository that it read last.
type Fetcher struct {
	repository string
	kept       *index
}

// Do fetches the content of a source.
func (f *Fetcher) Do(ctx context.Context, r *Request) (*Content, error) {
	h := newHTTP(r.Auth)
	switch r.Kind {
	case sourcev1.HelmRepositoryKind:
		spec := &sourcev1.HelmRepositorySpec{}
		if err := decode(r.Spec, spec); err != nil {
			return nil, err
		}
		if r.Chart == "" {
			return nil, errors.New("a HelmRepository has charts, and no folder")
		}
		if spec.Type == sourcev1.HelmRepositoryTypeOCI {
			return h.ociChart(ctx, spec, r)
		}
		return f.chart(ctx, h, spec, r)
	case sourcev1.GitRepositoryKind:
		spec := &sourcev1.GitRepositorySpec{}
		if err := decode(r.Spec, spec); err != nil {
			return nil, err
		}
		return h.git(ctx, spec, r.Dir)
	case sourcev1.OCIRepositoryKind:
		spec := &sourcev1.OCIRepositorySpec{}
		if err := decode(r.Spec, spec); err != nil {
			return nil, err
		}
		return h.artifact(ctx, spec, r)
	}
	return nil, fmt.Errorf("a %s is not fetched: say by --local-sources where a copy of its content is", r.Kind)
}

func decode(spec map[string]any, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, into); err != nil {
		return fmt.Errorf("read its spec: %w", err)
	}
	return nil
}

// write writes a chart's archive.
func write(dir string, raw []byte) (*Content, error) {
	out := &Content{Path: filepath.Join(dir, "chart.tgz"), Digest: digest(raw)}
	if err := os.WriteFile(out.Path, raw, 0o600); err != nil {
		return nil, fmt.Errorf("keep the chart: %w", err)
	}
	return out, nil
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// refused returns an error for an answer that is none.
func refused(url string, code int) error {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("GET %s: %d %s. Credentials come by --auth-file, and a copy of the content by --local-sources",
			url, code, http.StatusText(code))
	}
	return fmt.Errorf("GET %s: %d %s", url, code, http.StatusText(code))
}
