// SPDX-License-Identifier: Apache-2.0

// Package manifestchart holds the one Helm chart that the hub serves itself. The objects are in the values of a
// HelmRelease. So plain manifests reach a cluster as a Helm release, without an artifact for each cluster.
package manifestchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// Name of the chart.
	Name = "chandler-manifests"
	// Version of the chart. It must change with every change of the chart: source-controller keeps its copy of a
	// version, and two replicas of the hub must not serve different bytes for the same version.
	Version = "1.2.0"
)

const (
	archiveSuffix = ".tgz"
	archiveName   = Name + "-" + Version + archiveSuffix
	olderFolder   = "older"
)

// The files are listed one by one, so that no file of an editor or a system gets into the archive.
//
//go:embed chart/Chart.yaml chart/values.yaml chart/templates/_documents.tpl chart/templates/_secrets.tpl chart/templates/objects.yaml
var files embed.FS

// older are the archives of former versions, as they were served. What a former epoch has delivered stays as it is, and Flux goes on
// asking for the chart that it names.
//
//go:embed older/*.tgz
var older embed.FS

// fileNames is the order in the archive. Helm wants Chart.yaml first.
var fileNames = []string{"Chart.yaml", "templates/_documents.tpl", "templates/_secrets.tpl", "templates/objects.yaml", "values.yaml"}

// epoch is the time of every file in the archive, so that the bytes do not depend on when they are made.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Archive returns the chart as Helm packages it. The bytes are the same in every process, because source-controller
// takes a chart with another digest for another chart. The caller must not change them.
func Archive() []byte { return archive() }

var archive = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	// It is not compressed: compressors of different releases of Go give different bytes.
	zip, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	must(err)
	w := tar.NewWriter(zip)
	for _, name := range fileNames {
		data, err := files.ReadFile(path.Join("chart", name))
		must(err)
		must(w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg,
			Name:     path.Join(Name, name),
			Size:     int64(len(data)),
			Mode:     0o644,
			ModTime:  epoch,
			Format:   tar.FormatUSTAR,
		}))
		_, err = w.Write(data)
		must(err)
	}
	must(w.Close())
	must(zip.Close())
	return out.Bytes()
})

// Artifact is a version of the chart as a registry keeps it: the blobs by their digests, and the manifest that names them.
type Artifact struct {
	// Manifest is an OCI image manifest, as helm push makes one.
	Manifest []byte
	// Config and Archive are its blobs.
	Config, Archive []byte
}

// Digest returns the digest of the manifest. A client that fetches by it can be given no other chart, not even by an attacker on the
// network between: the manifest names the digest of the archive.
func (a *Artifact) Digest() string { return digest(a.Manifest) }

// Current returns the current version. The caller must not change it.
func Current() *Artifact { return current() }

var current = sync.OnceValue(func() *Artifact { return artifact(Version, Archive()) })

// Digest returns the digest by which Flux asks for the current version.
func Digest() string { return Current().Digest() }

// All returns the artifacts of all versions. The caller must not change them.
func All() []*Artifact { return all() }

var all = sync.OnceValue(func() []*Artifact {
	out := []*Artifact{Current()}
	older := Older()
	for _, name := range slices.Sorted(maps.Keys(older)) {
		out = append(out, artifact(strings.TrimSuffix(strings.TrimPrefix(name, Name+"-"), archiveSuffix), older[name]))
	}
	return out
})

// artifact returns a version of the chart with its manifest. The media types are Helm's (https://helm.sh/docs/topics/registries, "Helm
// chart manifest").
func artifact(version string, archive []byte) *Artifact {
	config, err := json.Marshal(map[string]string{"apiVersion": "v2", "name": Name, "type": "application", "version": version})
	must(err)
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    blob("application/vnd.cncf.helm.config.v1+json", config),
		Layers:    []ocispec.Descriptor{blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive)},
	})
	must(err)
	return &Artifact{Manifest: manifest, Config: config, Archive: archive}
}

func blob(mediaType string, data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: godigest.FromBytes(data), Size: int64(len(data))}
}

// Older returns the archives of former versions by their names.
func Older() map[string][]byte {
	out := map[string][]byte{}
	entries, err := older.ReadDir(olderFolder)
	must(err)
	for _, e := range entries {
		data, err := older.ReadFile(path.Join(olderFolder, e.Name()))
		must(err)
		out[e.Name()] = data
	}
	return out
}

func digest(data []byte) string { return godigest.FromBytes(data).String() }

// must is for writes into memory and reads of embedded files, which cannot fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
