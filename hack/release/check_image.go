// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// checkImage reads the image back from its folder.
func (r *release) checkImage(ctx context.Context) error {
	index, err := r.readImage()
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != len(r.images) {
		return fmt.Errorf("the index has %d images, and not %d", len(manifest.Manifests), len(r.images))
	}
	for i, p := range r.images {
		described := manifest.Manifests[i]
		if described.Platform == nil || described.Platform.OS != p.os || described.Platform.Architecture != p.arch {
			return fmt.Errorf("image %d is not one for %s", i, p)
		}
		img, err := index.Image(described.Digest)
		if err != nil {
			return err
		}
		if err := r.checkOneImage(ctx, p, img); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// readImage returns the index in the folder, if it is the one that was made.
func (r *release) readImage() (v1.ImageIndex, error) {
	index, err := layout.ImageIndexFromPath(r.path("image"))
	if err != nil {
		return nil, err
	}
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	if digest.String() != r.imageDigest {
		return nil, fmt.Errorf("the folder holds %s, and not %s", digest, r.imageDigest)
	}
	return index, nil
}

func (r *release) checkOneImage(ctx context.Context, p platform, img v1.Image) error {
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	c := config.Config
	if !slices.Equal(c.Entrypoint, []string{"/hub"}) || len(c.Cmd) != 0 || c.User != "65532:65532" {
		return fmt.Errorf("it runs %q %q as %q", c.Entrypoint, c.Cmd, c.User)
	}
	if config.OS != p.os || config.Architecture != p.arch {
		return fmt.Errorf("its configuration says %s/%s", config.OS, config.Architecture)
	}
	if !maps.Equal(c.Labels, r.labels()) {
		return fmt.Errorf("it has the labels %v", c.Labels)
	}
	files, err := filesOf(img)
	if err != nil {
		return err
	}
	if len(files) != 2 || files["hub"] == nil {
		return fmt.Errorf("it holds %v", slices.Sorted(maps.Keys(files)))
	}
	if !x509.NewCertPool().AppendCertsFromPEM(files[certificatesPath]) {
		return fmt.Errorf("it holds no certificates at %s", certificatesPath)
	}
	return r.checkBinary(ctx, "hub", p, files["hub"])
}

// filesOf returns the files of all layers.
func filesOf(img v1.Image) (map[string][]byte, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			return nil, err
		}
		files, err := readTar(content)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, files)
	}
	return out, nil
}
