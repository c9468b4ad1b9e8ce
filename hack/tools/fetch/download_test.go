// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// shortLimits are for servers of this machine that do not answer, or slowly.
var shortLimits = limits{connect: time.Second, answer: 500 * time.Millisecond, floor: 64 << 10, window: 250 * time.Millisecond, most: 4 << 20}

var linuxAMD64 = platform{"linux", "amd64"}

// publisher is a file server and a registry on loopback that a test can make worse.
type publisher struct {
	*httptest.Server
	files map[string][]byte
	// worse answers a request instead of the publisher where it returns true.
	worse func(w http.ResponseWriter, r *http.Request, good http.Handler) bool
	asked atomic.Int64
}

func newPublisher(t *testing.T) *publisher {
	p := &publisher{files: map[string][]byte{}}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	good := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			images.ServeHTTP(w, r)
			return
		}
		content, ok := p.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if p.worse == nil || !p.worse(w, r, good) {
			good.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// downloader returns one that takes the publisher for the mirror of all.
func (p *publisher) downloader(t *testing.T, on platform) *downloader {
	base, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &downloader{transport: newTransport(shortLimits), mirror: base, on: on}
}

// image publishes an image whose program says for which platform it is, and returns the digest of its index.
func (p *publisher) image(t *testing.T, repository, tag, member string, platforms ...platform) string {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for _, on := range platforms {
		img := v1.Image(empty.Image)
		// The program, and then a layer above it without one.
		for _, files := range []map[string]string{{member: program(on)}, {"etc/passwd": "nobody"}} {
			archive := tarGz(t, files)
			layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil })
			check(t, err)
			img, err = mutate.AppendLayers(img, layer)
			check(t, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: on.os, Architecture: on.arch}},
		})
	}
	ref, err := name.ParseReference(strings.TrimPrefix(p.URL, "http://") + "/" + repository + ":" + tag)
	check(t, err)
	check(t, remote.WriteIndex(ref, index))
	digest, err := index.Digest()
	check(t, err)
	return digest.String()
}

// program is the content of a program for a platform: random enough that it stays large when it is compressed.
func program(on platform) string {
	var text strings.Builder
	sum := sha256.Sum256([]byte(on.String()))
	for range 8 << 10 {
		sum = sha256.Sum256(sum[:])
		text.Write(sum[:])
	}
	return on.String() + text.String()
}

func tarGz(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		check(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := archive.Write([]byte(content))
		check(t, err)
	}
	check(t, archive.Close())
	check(t, zipped.Close())
	return out.Bytes()
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// large is true for the requests that matter: a file, or a blob of an image that has the program.
func large(r *http.Request) bool {
	return r.Method == http.MethodGet && (strings.Contains(r.URL.Path, "/blobs/") || !strings.HasPrefix(r.URL.Path, "/v2/"))
}

// half sends the first half of the good answer, and cuts the connection.
func half(w http.ResponseWriter, r *http.Request, good http.Handler) bool {
	answer := httptest.NewRecorder()
	good.ServeHTTP(answer, r)
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestProgram(t *testing.T) {
	type worse = func(w http.ResponseWriter, r *http.Request, good http.Handler) bool
	cases := map[string]struct {
		reason string
		worse  func() worse
		// why is in the error; empty for the program.
		why string
		// stops is true for an error that must not be built over.
		stops bool
	}{
		"Right": {reason: "what is pinned is published"},
		"WrongContent": {
			reason: "bytes that are not the pinned ones stop the run, and are not built over",
			worse: func() worse {
				return func(w http.ResponseWriter, r *http.Request, good http.Handler) bool {
					if !large(r) {
						return false
					}
					answer := httptest.NewRecorder()
					good.ServeHTTP(answer, r)
					content := answer.Body.Bytes()
					content[len(content)/2] ^= 1
					_, _ = w.Write(content)
					return true
				}
			},
			why: "not what is pinned", stops: true,
		},
		"CutOffOnce": {
			reason: "what is cut off once is asked for once more",
			worse: func() worse {
				var cut atomic.Bool
				return func(w http.ResponseWriter, r *http.Request, good http.Handler) bool {
					return large(r) && !cut.Swap(true) && half(w, r, good)
				}
			},
		},
		"CutOffAlways": {
			reason: "what is cut off twice is built",
			worse: func() worse {
				return func(w http.ResponseWriter, r *http.Request, good http.Handler) bool {
					return large(r) && half(w, r, good)
				}
			},
			why: "cuts the download off",
		},
		"Slow": {
			reason: "what comes so slowly that building takes less is built",
			worse: func() worse {
				return func(w http.ResponseWriter, r *http.Request, good http.Handler) bool {
					if !large(r) {
						return false
					}
					for range 100 {
						if _, err := w.Write([]byte("x")); err != nil {
							return true
						}
						_ = http.NewResponseController(w).Flush()
						time.Sleep(50 * time.Millisecond)
					}
					return true
				}
			},
			why: "too slowly",
		},
		"Silent": {
			reason: "a server that takes the request and says nothing is given up",
			worse: func() worse {
				return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					<-r.Context().Done()
					return true
				}
			},
			why: "does not answer in time",
		},
		"Absent": {
			reason: "what is not published any more is built",
			worse: func() worse {
				return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					if large(r) {
						http.NotFound(w, r)
					}
					return large(r)
				}
			},
			why: "answers 404",
		},
		"Limited": {
			reason: "a publisher that has had enough of us is not waited for",
			worse: func() worse {
				return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					w.WriteHeader(http.StatusTooManyRequests)
					return true
				}
			},
			why: "answers 429",
		},
	}
	const member = "usr/local/bin/part"
	for kind, publish := range map[string]func(t *testing.T, p *publisher) source{
		"Image": func(t *testing.T, p *publisher) source {
			digest := p.image(t, "example.org/part", "v1.0.0", member, platform{"linux", "arm64"}, linuxAMD64)
			return source{image: "example.org/part@" + digest, member: member}
		},
		"File": func(_ *testing.T, p *publisher) source {
			content := []byte(program(linuxAMD64))
			p.files["/example.org/part-v1.0.0"] = content
			return source{url: "https://example.org/part-v1.0.0", sha256: sum(content), member: "."}
		},
		"Archive": func(t *testing.T, p *publisher) source {
			content := tarGz(t, map[string]string{"part/README": "no program", member: program(linuxAMD64)})
			p.files["/example.org/part.tar.gz"] = content
			return source{url: "https://example.org/part.tar.gz", sha256: sum(content), member: member}
		},
	} {
		for name, c := range cases {
			t.Run(kind+name, func(t *testing.T) {
				t.Parallel()
				p := newPublisher(t)
				from := publish(t, p)
				if c.worse != nil {
					p.worse = c.worse()
				}
				got, err := get(t, p.downloader(t, linuxAMD64), from)
				wantOutcome(t, got, err, c.why, c.stops)
			})
		}
	}
}

func get(t *testing.T, d *downloader, from source) (string, error) {
	to := filepath.Join(t.TempDir(), "part")
	if err := d.program(t.Context(), from, t.TempDir(), to); err != nil {
		return "", err
	}
	content, err := os.ReadFile(to)
	check(t, err)
	info, err := os.Stat(to)
	check(t, err)
	if info.Mode().Perm()&0o111 == 0 {
		t.Errorf("the program cannot be run: %s", info.Mode())
	}
	return string(content), nil
}

func wantOutcome(t *testing.T, got string, err error, why string, stops bool) {
	t.Helper()
	var unavailable unavailable
	switch {
	case why == "" && err != nil:
		t.Fatal(err)
	case why == "":
		if got != program(linuxAMD64) {
			t.Errorf("got %d bytes, not the program", len(got))
		}
	case err == nil:
		t.Fatalf("got the program, want %q", why)
	case !strings.Contains(err.Error(), why):
		t.Errorf("got %v, want %q", err, why)
	case stops != errors.Is(err, errWrong), stops == errors.As(err, &unavailable):
		t.Errorf("stops the run: %t, want %t: %v", errors.Is(err, errWrong), stops, err)
	}
}

// A registry that answers a digest with another manifest is as wrong as one with another layer.
func TestWrongManifest(t *testing.T) {
	p := newPublisher(t)
	digest := p.image(t, "example.org/part", "v1.0.0", "part", linuxAMD64)
	p.image(t, "example.org/part", "v2.0.0", "other", linuxAMD64)
	p.worse = func(w http.ResponseWriter, r *http.Request, good http.Handler) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, digest) {
			r.URL.Path = strings.TrimSuffix(r.URL.Path, digest) + "v2.0.0"
			good.ServeHTTP(w, r)
			return true
		}
		return false
	}
	_, err := get(t, p.downloader(t, linuxAMD64), source{image: "example.org/part@" + digest, member: "part"})
	if !errors.Is(err, errWrong) {
		t.Errorf("got %v", err)
	}
}

func TestPlatformOfTheIndex(t *testing.T) {
	arm64 := platform{"linux", "arm64"}
	p := newPublisher(t)
	both := p.image(t, "example.org/both", "v1.0.0", "part", linuxAMD64, arm64)
	one := p.image(t, "example.org/one", "v1.0.0", "part", linuxAMD64)
	got, err := get(t, p.downloader(t, arm64), source{image: "example.org/both@" + both, member: "part"})
	check(t, err)
	if got != program(arm64) {
		t.Error("arm64 got another program than its own")
	}
	_, err = get(t, p.downloader(t, arm64), source{image: "example.org/one@" + one, member: "part"})
	wantOutcome(t, "", err, "has nothing for linux/arm64", false)
	_, err = get(t, p.downloader(t, arm64), source{image: "example.org/both@" + both, member: "bin/part"})
	wantOutcome(t, "", err, "has no bin/part", false)
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	base := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	check(t, listener.Close())
	d := &downloader{transport: newTransport(shortLimits), mirror: base, on: linuxAMD64}
	_, err = get(t, d, source{url: "https://example.org/part", sha256: sum(nil), member: "."})
	wantOutcome(t, "", err, "cannot be reached", false)
	_, err = get(t, d, source{image: "example.org/part@sha256:" + sum(nil), member: "part"})
	wantOutcome(t, "", err, "cannot be reached", false)
}

// An interrupted run is not taken for one that has to build.
func TestInterrupted(t *testing.T) {
	p := newPublisher(t)
	ctx, cancel := context.WithCancel(t.Context())
	p.worse = func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	err := p.downloader(t, linuxAMD64).program(ctx, source{url: "https://example.org/part", member: "."}, t.TempDir(), filepath.Join(t.TempDir(), "part"))
	var why unavailable
	if !errors.Is(err, context.Canceled) || errors.As(err, &why) {
		t.Errorf("got %v", err)
	}
}

// TestEndless: what never ends fills no disk, and stops the run, as no pinned file is that large. Nor does what unpacks to more.
func TestEndless(t *testing.T) {
	p := newPublisher(t)
	p.worse = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		for block := make([]byte, 64<<10); r.Context().Err() == nil; {
			if _, err := w.Write(block); err != nil {
				break
			}
		}
		return true
	}
	work := t.TempDir()
	err := p.downloader(t, linuxAMD64).program(t.Context(), source{url: "https://example.org/part", member: ".", sha256: sum(nil)}, work, filepath.Join(work, "part"))
	if !errors.Is(err, errWrong) || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(filepath.Join(work, "file")); err != nil || info.Size() > shortLimits.most {
		t.Errorf("wrote %v, %v", info, err)
	}
	archive := filepath.Join(work, "bomb.tar.gz")
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	check(t, tar.NewWriter(zipped).WriteHeader(&tar.Header{Name: "part", Size: defaultLimits.most + 1, Typeflag: tar.TypeReg}))
	check(t, zipped.Close())
	check(t, os.WriteFile(archive, content.Bytes(), 0o600))
	if err := extract(archive, "part", filepath.Join(work, "part")); !errors.Is(err, errWrong) {
		t.Errorf("unpacked: %v", err)
	}
}
