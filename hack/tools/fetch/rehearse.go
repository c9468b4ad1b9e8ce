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
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// rehearsal publishes programs of this machine on loopback, where the pins say and in the form that they say.
type rehearsal struct {
	// files is the folder that is served; address is the server's.
	files, address string
	// registry takes the images; it is the downloader's view of the server.
	registry *downloader
	on       platform
}

// rehearse publishes the programs of this machine (a want's folder is the program) on loopback, with pins for them, and runs a command
// that has nothing but those.
func rehearse(ctx context.Context, out io.Writer, on platform, pinsFile string, pins map[string]Pin, wants []want, command []string) error {
	dir, err := os.MkdirTemp("", "tools-rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &rehearsal{files: filepath.Join(dir, "files"), on: on}
	stop, err := r.listen(filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	defer stop()
	for _, w := range wants {
		pin, ok := pins[w.name]
		if !ok {
			return fmt.Errorf("%s: %s does not say where it is published", w.name, pinsFile)
		}
		if pins[w.name], err = r.publish(ctx, pin, w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	content, err := os.ReadFile(pinsFile)
	if err != nil {
		return err
	}
	ours := filepath.Join(dir, "pins.yaml")
	if err := os.WriteFile(ours, content, 0o644); err != nil {
		return err
	}
	if err := writePins(ours, pins); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	cmd.Env = append(cmd.Environ(), "CHANDLER_TOOLS=download", "CHANDLER_TOOLS_MIRROR="+r.address, "CHANDLER_TOOLS_PINS="+ours,
		"CHANDLER_TOOLS_DIR="+filepath.Join(dir, "tools"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	start := time.Now()
	err = cmd.Run()
	fmt.Fprintf(out, "tools: %s took %s from an empty tools cache, with downloads from loopback\n", strings.Join(command, " "),
		time.Since(start).Round(time.Second))
	return err
}

// listen serves the files and a registry, which keeps its blobs in a folder, until stop is called.
func (r *rehearsal) listen(blobs string) (stop func(), err error) {
	if err := os.Mkdir(blobs, 0o755); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(log.New(io.Discard, "", 0))))
	mux.Handle("/", http.FileServer(http.Dir(r.files)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	r.address = "http://" + listener.Addr().String()
	base, err := url.Parse(r.address)
	r.registry = &downloader{transport: http.DefaultTransport, mirror: base, on: r.on}
	return func() { _ = server.Close() }, err
}

// publish puts a program where its pin says, and returns the pin for it.
func (r *rehearsal) publish(ctx context.Context, pin Pin, w want) (Pin, error) {
	pin.Version, pin.From = w.version, "this machine"
	if pin.Image != "" {
		digest, err := r.push(ctx, pin, w)
		pin.Digest = digest.String()
		return pin, err
	}
	address, err := url.Parse(pin.fill(pin.URL, r.on))
	if err != nil {
		return pin, err
	}
	// The path as the server finds it, with nothing escaped.
	file := filepath.Join(r.files, address.Host, filepath.FromSlash(address.Path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return pin, err
	}
	sum, err := write(file, w.folder, pin.member(r.on))
	pin.SHA256 = map[string]string{r.on.String(): sum}
	return pin, err
}

func (r *rehearsal) push(ctx context.Context, pin Pin, w want) (v1.Hash, error) {
	archive := filepath.Join(filepath.Dir(r.files), w.name+".tar.gz")
	if _, err := write(archive, w.folder, pin.member(r.on)); err != nil {
		return v1.Hash{}, err
	}
	layer, err := tarball.LayerFromFile(archive)
	if err != nil {
		return v1.Hash{}, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return v1.Hash{}, err
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: r.on.os, Architecture: r.on.arch}},
	})
	ref, err := name.NewTag(r.registry.mirrored(pin.Image+":"+pin.Version), r.registry.nameOptions()...)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx)); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// write writes a program to a file: as it is where member is ".", else as that member of a .tar.gz. It returns the file's sha256.
func write(file, program, member string) (sum string, err error) {
	in, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return "", err
	}
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer out.Close()
	hash := sha256.New()
	both := io.MultiWriter(out, hash)
	if member == "." {
		if _, err := io.Copy(both, in); err != nil {
			return "", err
		}
		return hex.EncodeToString(hash.Sum(nil)), out.Close()
	}
	zipped, err := gzip.NewWriterLevel(both, gzip.BestSpeed)
	if err != nil {
		return "", err
	}
	archive := tar.NewWriter(zipped)
	if err := archive.WriteHeader(&tar.Header{Name: member, Mode: 0o755, Size: info.Size(), Typeflag: tar.TypeReg}); err != nil {
		return "", err
	}
	if _, err := io.Copy(archive, in); err != nil {
		return "", err
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), out.Close()
}
