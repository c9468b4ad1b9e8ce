// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pinsBefore = `# What is pinned.
parts:
  file:
    url: https://example.org/file-{version}-{os}-{arch}.tar.gz
    member: file
    checksums: https://example.org/file-{version}.sums
  # An image.
  image:
    image: example.org/image
    member: image
    version: v0.9.0
    digest: sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    from: somewhere
`

// pinFixture is a publisher of the two, with pins for neither at this version.
func pinFixture(t *testing.T) (p *publisher, file, digest string, sums map[string]string) {
	p = newPublisher(t)
	digest = p.image(t, "example.org/image", "v1.0.0", "image", linuxAMD64, platform{"linux", "arm64"})
	sums = map[string]string{}
	var list strings.Builder
	for _, on := range []string{"linux-amd64", "linux-arm64", "darwin-arm64"} {
		content := tarGz(t, map[string]string{"file": on})
		name := "file-v1.0.0-" + on + ".tar.gz"
		p.files["/example.org/"+name] = content
		sums[strings.ReplaceAll(on, "-", "/")] = sum(content)
		fmt.Fprintf(&list, "%s  %s\n", sum(content), name)
	}
	p.files["/example.org/file-v1.0.0.sums"] = []byte(list.String())
	file = filepath.Join(t.TempDir(), "pins.yaml")
	check(t, os.WriteFile(file, []byte(pinsBefore), 0o600))
	t.Setenv("PATH", t.TempDir()) // No cosign.
	return p, file, digest, sums
}

func pinBoth(t *testing.T, p *publisher, file string) error {
	pins, err := loadPins(file)
	check(t, err)
	var out bytes.Buffer
	return pinAll(t.Context(), &out, p.downloader(t, linuxAMD64), file, pins, []want{{name: "file", version: "v1.0.0"}, {name: "image", version: "v1.0.0"}})
}

func TestPin(t *testing.T) {
	p, file, digest, sums := pinFixture(t)
	check(t, pinBoth(t, p, file))
	pins, err := loadPins(file)
	check(t, err)
	if pins["image"].Digest != digest || pins["image"].Version != "v1.0.0" {
		t.Errorf("the image is pinned as %+v", pins["image"])
	}
	if got := pins["file"].SHA256; len(got) != 3 || got["linux/amd64"] != sums["linux/amd64"] || got["darwin/arm64"] != sums["darwin/arm64"] {
		t.Errorf("the file is pinned as %v, want %v", got, sums)
	}
	written, err := os.ReadFile(file)
	check(t, err)
	if !strings.HasPrefix(string(written), "# What is pinned.\n") || !strings.Contains(string(written), "# An image.") {
		t.Errorf("the comments are gone:\n%s", written)
	}
	// What has been pinned is asked for again, and stays as it is.
	check(t, pinBoth(t, p, file))
	again, err := os.ReadFile(file)
	check(t, err)
	if !bytes.Equal(written, again) {
		t.Errorf("a second run wrote\n%s\nafter\n%s", again, written)
	}
}

func TestPinRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(t *testing.T, p *publisher, file string)
		why    string
	}{
		"MovedTag": {
			reason: "a version that was pinned is published anew",
			change: func(t *testing.T, p *publisher, file string) {
				check(t, pinBoth(t, p, file))
				p.image(t, "example.org/image", "v1.0.0", "image", platform{"linux", "arm64"}, linuxAMD64)
			},
			why: "image v1.0.0: this is not what is pinned: published is sha256:",
		},
		"ChangedFile": {
			reason: "a file and its sums were replaced",
			change: func(t *testing.T, p *publisher, file string) {
				check(t, pinBoth(t, p, file))
				content := tarGz(t, map[string]string{"file": "other"})
				old := p.files["/example.org/file-v1.0.0-linux-amd64.tar.gz"]
				p.files["/example.org/file-v1.0.0-linux-amd64.tar.gz"] = content
				p.files["/example.org/file-v1.0.0.sums"] = bytes.ReplaceAll(p.files["/example.org/file-v1.0.0.sums"], []byte(sum(old)), []byte(sum(content)))
			},
			why: "for linux/amd64",
		},
		"SumsDiffer": {
			reason: "the file is not the one that the publisher's list is of",
			change: func(t *testing.T, p *publisher, _ string) {
				p.files["/example.org/file-v1.0.0-linux-arm64.tar.gz"] = tarGz(t, map[string]string{"file": "other"})
			},
			why: "its publisher's list says",
		},
		"NotInSums": {
			reason: "the publisher's list does not have the file",
			change: func(_ *testing.T, p *publisher, _ string) { p.files["/example.org/file-v1.0.0.sums"] = nil },
			why:    "says nothing of file-v1.0.0-",
		},
		"NoLinux": {
			reason: "a file for linux has to be there",
			change: func(_ *testing.T, p *publisher, _ string) {
				delete(p.files, "/example.org/file-v1.0.0-linux-amd64.tar.gz")
			},
			why: "answers 404",
		},
		"NoAnswer": {
			reason: "a publisher's fault is not taken for a platform that is not published",
			change: func(_ *testing.T, p *publisher, _ string) {
				p.worse = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					if strings.Contains(r.URL.Path, "darwin") {
						w.WriteHeader(http.StatusBadGateway)
						return true
					}
					return false
				}
			},
			why: "answers 502",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, file, _, _ := pinFixture(t)
			c.change(t, p, file)
			before, err := os.ReadFile(file)
			check(t, err)
			if err := pinBoth(t, p, file); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
			after, err := os.ReadFile(file)
			check(t, err)
			if !bytes.Equal(before, after) {
				t.Errorf("the pins were written:\n%s", after)
			}
		})
	}
}

func TestVerifySignature(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	pin := Pin{Image: "example.org/image", Digest: "sha256:a", Signer: &Signer{Identity: "^https://example.org/.*$", Issuer: "https://issuer.example.org"}}
	if said, err := verifySignature(t.Context(), pin); err != nil || !strings.Contains(said, "no cosign") {
		t.Errorf("without cosign: %q, %v", said, err)
	}
	cosign := func(script string) {
		check(t, os.WriteFile(filepath.Join(bin, "cosign"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	cosign(`[ "$*" = "verify --certificate-identity-regexp=^https://example.org/.*$ --certificate-oidc-issuer=https://issuer.example.org example.org/image@sha256:a" ]`)
	if said, err := verifySignature(t.Context(), pin); err != nil || !strings.Contains(said, "verified by cosign") {
		t.Errorf("a good signature: %q, %v", said, err)
	}
	cosign("echo no matching signatures; exit 1")
	if _, err := verifySignature(t.Context(), pin); err == nil || !strings.Contains(err.Error(), "no matching signatures") || errors.Is(err, errWrong) {
		t.Errorf("a bad signature: %v", err)
	}
}
