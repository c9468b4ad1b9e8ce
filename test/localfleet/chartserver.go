// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// ChartServer is a Helm repository.
type ChartServer struct {
	listener net.Listener
	server   *http.Server

	mu     sync.Mutex
	files  map[string][]byte
	charts map[string][]map[string]any // the index, by chart
}

// NewChartServer starts an empty repository on loopback.
func NewChartServer() (*ChartServer, error) { return NewChartServerAt("127.0.0.1") }

// NewChartServerAt starts one at another address of this machine, for whoever does not share its loopback.
func NewChartServerAt(host string) (*ChartServer, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	s := &ChartServer{listener: l, files: map[string][]byte{}, charts: map[string][]map[string]any{}}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }()
	return s, nil
}

// URL returns the address of the repository.
func (s *ChartServer) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends the server.
func (s *ChartServer) Close() error { return s.server.Close() }

// Publish packs the chart in a folder of fsys, and adds it to the index. A version that is there already is replaced.
func (s *ChartServer) Publish(fsys fs.FS, dir string) error {
	raw, err := fs.ReadFile(fsys, path.Join(dir, "Chart.yaml"))
	if err != nil {
		return err
	}
	meta := map[string]any{}
	if err := yaml.Unmarshal(raw, &meta); err != nil {
		return fmt.Errorf("read Chart.yaml: %w", err)
	}
	name, _ := meta["name"].(string)
	version, _ := meta["version"].(string)
	archive, err := pack(fsys, dir, name)
	if err != nil {
		return fmt.Errorf("pack chart %s: %w", name, err)
	}
	sum := sha256.Sum256(archive)
	file := fmt.Sprintf("%s-%s.tgz", name, version)
	meta["urls"], meta["digest"], meta["created"] = []string{file}, hex.EncodeToString(sum[:]), time.Now().UTC().Format(time.RFC3339)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files["/"+file] = archive
	others := slices.DeleteFunc(s.charts[name], func(m map[string]any) bool { return m["version"] == version })
	s.charts[name] = append(others, meta)
	index, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": s.charts})
	if err != nil {
		return err
	}
	s.files["/index.yaml"] = index
	return nil
}

// ServeHTTP serves the index and the archives.
func (s *ChartServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	raw, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(raw)
}

func pack(fsys fs.FS, dir, name string) ([]byte, error) {
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	err := fs.WalkDir(fsys, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		rel := p[len(dir):]
		if err := tw.WriteHeader(&tar.Header{Name: path.Join(name, rel), Mode: 0o644, Size: int64(len(raw))}); err != nil {
			return err
		}
		_, err = tw.Write(raw)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
