// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

var (
	// errWrong is bytes that are not the pinned ones. It stops the run: the publisher has changed what it had published, or something
	// on the way, or the pins; to build instead would hide that.
	errWrong = errors.New("this is not what is pinned")
	// errCutOff is a body that ended early.
	errCutOff = errors.New("cut off")
)

// downloader downloads programs for one platform.
type downloader struct {
	transport http.RoundTripper
	// mirror is the address below which everything lies by its host, nil for the publishers themselves.
	mirror *url.URL
	on     platform
}

// program downloads a program to the file to, by way of other files in the folder work. It tries once more what was cut off. The
// error is unavailable where the program has to be built instead.
func (d *downloader) program(ctx context.Context, from source, work, to string) error {
	get := d.file
	host := hostOf(from.url)
	if from.image != "" {
		get, host = d.image, hostOf("https://"+from.image)
	}
	if d.mirror != nil {
		host = d.mirror.Host
	}
	err := get(ctx, from, work, to)
	if errors.Is(err, errCutOff) {
		err = get(ctx, from, work, to)
	}
	if err != nil {
		return explain(ctx, host, err)
	}
	return os.Chmod(to, 0o755)
}

func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return parsed.Host
}

// file downloads a program that is published as a file, or in a .tar.gz.
func (d *downloader) file(ctx context.Context, from source, work, to string) error {
	whole := filepath.Join(work, "file")
	sum, err := d.save(ctx, from.url, whole)
	if err != nil {
		return err
	}
	if sum != from.sha256 {
		return fmt.Errorf("%w: %s has sha256 %s, and %s is pinned", errWrong, from.url, sum, from.sha256)
	}
	if from.member == "." {
		return os.Rename(whole, to)
	}
	err = extract(whole, from.member, to)
	if errors.Is(err, os.ErrNotExist) {
		return unavailable(fmt.Sprintf("%s has no %s", from.url, from.member))
	}
	return err
}

// save downloads a file and returns the sha256 of what came.
func (d *downloader) save(ctx context.Context, address, to string) (sum string, err error) {
	if d.mirror != nil {
		address = d.mirror.String() + "/" + strings.SplitN(address, "://", 2)[1]
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: d.transport}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return "", err
	}
	return keep(resp.Body, to)
}

// keep writes a body to a file and returns its sha256. The file is whole where there is no error.
func keep(body io.Reader, to string) (sum string, err error) {
	out, err := os.Create(to)
	if err != nil {
		return "", err
	}
	defer out.Close()
	hash := sha256.New()
	reader := &bodyReader{Reader: body}
	if _, err := io.Copy(io.MultiWriter(out, hash), reader); err != nil {
		if reader.err != nil && !errors.Is(err, errSlow) && !errors.Is(err, errLarge) && !mismatch(err) {
			err = fmt.Errorf("%w: %w", errCutOff, err)
		}
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), out.Close()
}

// bodyReader keeps an error of reading apart from one of writing.
type bodyReader struct {
	io.Reader
	err error
}

func (r *bodyReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// extract copies a regular file out of a .tar.gz. The error wraps fs.ErrNotExist where it has none of that name.
func extract(archive, member, to string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", member, os.ErrNotExist)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if header.Typeflag != tar.TypeReg || strings.TrimPrefix(path.Clean(header.Name), "/") != member {
			continue
		}
		if header.Size > defaultLimits.most { // no more than that follows
			return fmt.Errorf("%s in %s: %w", member, archive, errLarge)
		}
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		defer out.Close()
		if _, err := io.Copy(out, files); err != nil {
			return err
		}
		return out.Close()
	}
}
