// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	hubPath          = "hub"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt"
	// hubUser is a number: a pod that must not run as root is refused where a name would have to be looked up.
	hubUser = "65532:65532"
)

// buildImage writes the hub's image for every platform as an OCI layout. It is what the Dockerfile makes, an empty base with the binary
// and public certificates, but the certificates are those of a pinned module and not those of a builder's image: it needs no Docker, no
// base image and no network, and the same commit gives the same digest.
func (r *release) buildImage(ctx context.Context) error {
	certificates := publicCertificates()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.images {
		binary, err := r.buildBinary(ctx, "hub", p)
		if err != nil {
			return err
		}
		if err := r.writeSBOM(binary, "hub", p); err != nil {
			return err
		}
		content, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		img, err := r.imageOf(p, []file{{certificatesPath, 0o644, certificates}, {hubPath, 0o755, content}})
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}
	index, _ = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	r.imageDigest = digest.String()
	// The folder is the index itself, and not a list with the index in it: so crane pushes it, and so it is read back.
	_, err = layout.Write(r.path("image"), index)
	return err
}

// imageOf is the image of one platform: one layer for each file, so that a new hub does not bring the certificates again.
func (r *release) imageOf(p platform, files []file) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, f := range files {
		layer, err := layerOf(f, r.made)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(img, r.config(img, p))
}

// config is what a runtime reads.
func (r *release) config(img v1.Image, p platform) *v1.ConfigFile {
	c := &v1.ConfigFile{OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.made}}
	if old, err := img.ConfigFile(); err == nil {
		c.RootFS = old.RootFS
	}
	c.Config = v1.Config{Entrypoint: []string{"/" + hubPath}, User: hubUser, Labels: r.labels()}
	return c
}

func (r *release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "chandler-hub",
		"org.opencontainers.image.description": "Chandler, a hub for Kubernetes fleets that run on Flux",
		"org.opencontainers.image.source":      "https://" + module,
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.revision,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     r.made.Format(time.RFC3339),
	}
}

func layerOf(f file, made time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	if err := writeTar(&content, []file{f}, made); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// publicCertificates are those that Mozilla trusts without conditions: a file of certificates has no room for conditions.
func publicCertificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes everything
		}
	}
	return out.Bytes()
}
