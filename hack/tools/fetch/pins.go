// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Pin says where a program is published, and what has to arrive from there; pins.yaml describes the fields.
type Pin struct {
	Image     string            `yaml:"image"`
	URL       string            `yaml:"url"`
	Member    string            `yaml:"member"`
	Checksums string            `yaml:"checksums"`
	Signer    *Signer           `yaml:"signer"`
	Version   string            `yaml:"version"`
	Digest    string            `yaml:"digest"`
	SHA256    map[string]string `yaml:"sha256"`
	From      string            `yaml:"from"`
}

// Signer is who signs an image, as cosign knows them.
type Signer struct {
	// Identity is an address, or a regular expression that starts with ^.
	Identity string `yaml:"identity"`
	Issuer   string `yaml:"issuer"`
}

// platform is an operating system and an architecture, in Go's words.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// source is a program at one version for one platform, with what it has to be.
type source struct {
	// image is a repository with its digest; url is a file. One of the two is empty.
	image, url string
	// sha256 of the file, in hex.
	sha256 string
	// member is the program's path in the image or in the archive; it is empty where the file is the program.
	member string
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// loadPins reads the pins by the name of their part, and refuses those that say too much or too little.
func loadPins(file string) (map[string]Pin, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list struct {
		Parts map[string]Pin `yaml:"parts"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for name, pin := range list.Parts {
		if err := pin.validate(); err != nil {
			return nil, fmt.Errorf("%s: %s %w", file, name, err)
		}
	}
	return list.Parts, nil
}

func (p Pin) validate() error {
	digests := []string{}
	if p.Digest != "" {
		digests = append(digests, strings.TrimPrefix(p.Digest, "sha256:"))
	}
	for _, sum := range p.SHA256 {
		digests = append(digests, sum)
	}
	switch {
	case (p.Image == "") == (p.URL == ""):
		return fmt.Errorf("needs an image or a url")
	case p.Image != "" && p.Member == "":
		return fmt.Errorf("needs the member of its image")
	case p.Image != "" && len(p.SHA256) > 0, p.URL != "" && p.Digest != "":
		return fmt.Errorf("has a digest of another kind than it needs")
	case len(digests) > 0 && p.Version == "":
		return fmt.Errorf("has a digest, and does not say of which version")
	}
	for _, digest := range digests {
		if !hexDigest.MatchString(digest) {
			return fmt.Errorf("has digest %q, which is no sha256 in hex", digest)
		}
	}
	return nil
}

// source returns where the program is at this version for this platform, or why it cannot be had.
func (p Pin) source(version string, on platform) (source, error) {
	switch {
	case p.Digest == "" && len(p.SHA256) == 0:
		return source{}, unavailable("no digest is pinned in hack/tools/pins.yaml")
	case p.Version != version:
		return source{}, unavailable(fmt.Sprintf("pinned is %s, and wanted %s: run `go run ./hack/tools pin`", p.Version, version))
	case p.Image != "" && on.os != "linux":
		return source{}, unavailable("it is published in images for linux only")
	case p.Image != "":
		return source{image: p.Image + "@" + p.Digest, member: p.member(on)}, nil
	case p.SHA256[on.String()] == "":
		return source{}, unavailable("no digest is pinned for " + on.String())
	}
	return source{url: p.fill(p.URL, on), sha256: p.SHA256[on.String()], member: p.member(on)}, nil
}

func (p Pin) member(on platform) string { return path.Clean(p.fill(p.Member, on)) }

// fill puts the version and the platform into an address or a path.
func (p Pin) fill(text string, on platform) string {
	return strings.NewReplacer("{version}", p.Version, "{os}", on.os, "{arch}", on.arch).Replace(text)
}
