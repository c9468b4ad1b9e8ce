// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// image downloads a program out of an image. The digest of the source covers all of it: the index, the manifest of the platform, the
// layers. The last layers are looked at first, as the program lies there.
func (d *downloader) image(ctx context.Context, from source, work, to string) error {
	img, err := d.platformImage(ctx, from.image)
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	whole := filepath.Join(work, "layer")
	for _, layer := range slices.Backward(layers) {
		body, err := layer.Compressed()
		if err != nil {
			return err
		}
		_, err = keep(body, whole)
		_ = body.Close()
		if mismatch(err) {
			return fmt.Errorf("%w: a layer of %s: %w", errWrong, from.image, err)
		}
		if err != nil {
			return err
		}
		if err := extract(whole, from.member, to); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return unavailable(fmt.Sprintf("%s has no %s", from.image, from.member))
}

// platformImage returns the image of our platform.
func (d *downloader) platformImage(ctx context.Context, digested string) (v1.Image, error) {
	ref, err := name.NewDigest(d.mirrored(digested), d.nameOptions()...)
	if err != nil {
		return nil, err
	}
	descriptor, err := remote.Get(ref, d.remoteOptions(ctx)...)
	if mismatch(err) {
		return nil, fmt.Errorf("%w: %s: %w", errWrong, digested, err)
	}
	if err != nil {
		return nil, err
	}
	if !descriptor.MediaType.IsIndex() {
		return nil, unavailable(digested + " is no index of images for several platforms")
	}
	img, err := descriptor.Image()
	switch {
	case mismatch(err):
		return nil, fmt.Errorf("%w: %s: %w", errWrong, digested, err)
	case err != nil && strings.Contains(err.Error(), "no child with platform"):
		return nil, unavailable(fmt.Sprintf("%s has nothing for %s", digested, d.on))
	}
	return img, err
}

// mirrored returns the place of an image on the mirror: below it, by the registry's name.
func (d *downloader) mirrored(image string) string {
	if d.mirror == nil {
		return image
	}
	return d.mirror.Host + strings.TrimSuffix(d.mirror.Path, "/") + "/" + image
}

func (d *downloader) nameOptions() []name.Option {
	if d.mirror != nil && d.mirror.Scheme == "http" {
		return []name.Option{name.Insecure}
	}
	return nil
}

func (d *downloader) remoteOptions(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(d.transport),
		remote.WithAuth(authn.Anonymous),
		remote.WithPlatform(v1.Platform{OS: d.on.os, Architecture: d.on.arch}),
		// Who cannot answer now is given up; building takes less time than patience would.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes(http.StatusRequestTimeout),
	}
}

// mismatch is true for the library's errors about a digest that does not fit. It exports no type for them; the tests show that these
// words are the ones.
func mismatch(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "does not match requested digest") ||
		strings.Contains(err.Error(), "checksum after reading"))
}
