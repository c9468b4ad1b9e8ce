// SPDX-License-Identifier: Apache-2.0

// Package manifestchart holds the one Helm chart that the hub serves itself. The objects are in the values of a
// HelmRelease. So plain manifests reach a cluster as a Helm release, without an artifact for each cluster.
package manifestchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
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

// epoch is the time of every file in the archive and of the index, so that the bytes do not depend on when they are
// made.
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

// Index returns the index.yaml of a Helm repository with the chart, and with its former versions. The caller must not change it.
func Index() []byte { return index() }

var index = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	made := epoch.Format(time.RFC3339)
	fmt.Fprintf(&out, "apiVersion: v1\nentries:\n  %s:\n", Name)
	versions := Older()
	versions[archiveName] = Archive()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(versions))) {
		version := strings.TrimSuffix(strings.TrimPrefix(name, Name+"-"), archiveSuffix)
		fmt.Fprintf(&out, `  - apiVersion: v2
    created: "%[4]s"
    description: Applies the Kubernetes objects that its values hold.
    digest: %[5]s
    name: %[1]s
    type: application
    urls:
    - %[3]s
    version: %[2]s
`, Name, version, name, made, digest(versions[name]))
	}
	fmt.Fprintf(&out, "generated: \"%s\"\n", made)
	return out.Bytes()
})

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

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// must is for writes into memory and reads of embedded files, which cannot fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
