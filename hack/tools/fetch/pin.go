// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.yaml.in/yaml/v3"
)

// filePlatforms are those that files are pinned for, where they are published. An image's index has its own.
var filePlatforms = []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}}

// pinAll asks the publishers for the digests of these versions and writes them to the pins. All of them are asked before it fails, and
// nothing is written then. A digest that differs from the one that is pinned for the same version is an error.
func pinAll(ctx context.Context, out io.Writer, d *downloader, file string, pins map[string]Pin, wants []want) error {
	var errs []error
	for _, w := range wants {
		pin, ok := pins[w.name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s does not say where it is published", w.name, file))
			continue
		}
		fresh, err := d.resolve(ctx, out, pin, w)
		if err == nil && pin.Version == w.version {
			err = unchanged(pin, fresh)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", w.name, w.version, err))
			continue
		}
		pins[w.name] = fresh
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return writePins(file, pins)
}

// unchanged compares what was pinned of a version with what is published under it now. A published version does not change.
func unchanged(old, fresh Pin) error {
	if old.Digest != "" && old.Digest != fresh.Digest {
		return fmt.Errorf("%w: published is %s, and %s is pinned; remove the pin if that is right", errWrong, fresh.Digest, old.Digest)
	}
	for _, on := range slices.Sorted(maps.Keys(old.SHA256)) {
		if sum := fresh.SHA256[on]; sum != old.SHA256[on] {
			return fmt.Errorf("%w for %s: published is %q, and %s is pinned; remove the pin if that is right", errWrong, on, sum, old.SHA256[on])
		}
	}
	return nil
}

// resolve returns the pin for a version, with what the publisher has and what was checked of it.
func (d *downloader) resolve(ctx context.Context, out io.Writer, pin Pin, w want) (Pin, error) {
	pin.Version = w.version
	work, err := os.MkdirTemp("", "pin-")
	if err != nil {
		return pin, err
	}
	defer os.RemoveAll(work)
	if pin.Image != "" {
		return d.resolveImage(ctx, out, pin, work)
	}
	return d.resolveFiles(ctx, out, pin, work)
}

// resolveImage asks the registry for the digest of the tag, has cosign look at the signature, and takes the program out for linux on
// both architectures.
func (d *downloader) resolveImage(ctx context.Context, out io.Writer, pin Pin, work string) (Pin, error) {
	ref, err := name.NewTag(d.mirrored(pin.Image+":"+pin.Version), d.nameOptions()...)
	if err != nil {
		return pin, err
	}
	head, err := remote.Get(ref, d.remoteOptions(ctx)...)
	if err != nil {
		return pin, err
	}
	pin.Digest = head.Digest.String()
	checked, err := verifySignature(ctx, pin)
	if err != nil {
		return pin, err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		there := *d
		there.on = platform{"linux", arch}
		from, err := pin.source(pin.Version, there.on)
		if err != nil {
			return pin, err
		}
		if err := there.program(ctx, from, work, filepath.Join(work, "program")); err != nil {
			return pin, err
		}
	}
	pin.From = "the registry" + checked
	fmt.Fprintf(out, "%s:%s %s, from %s\n", pin.Image, pin.Version, pin.Digest, pin.From)
	return pin, nil
}

// verifySignature runs cosign on an image that has a signer, where cosign is installed. It returns what is to be said of it.
func verifySignature(ctx context.Context, pin Pin) (string, error) {
	if pin.Signer == nil {
		return "", nil
	}
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		return "; its signature was not verified, as there is no cosign", nil
	}
	identity := "--certificate-identity=" + pin.Signer.Identity
	if strings.HasPrefix(pin.Signer.Identity, "^") {
		identity = "--certificate-identity-regexp=" + pin.Signer.Identity
	}
	cmd := exec.CommandContext(ctx, cosign, "verify", identity, "--certificate-oidc-issuer="+pin.Signer.Issuer, pin.Image+"@"+pin.Digest)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, output)
	}
	return "; its signature was verified by cosign", nil
}

// resolveFiles downloads the file of each platform that is published, and compares it with the publisher's list of sums.
func (d *downloader) resolveFiles(ctx context.Context, out io.Writer, pin Pin, work string) (Pin, error) {
	pin.SHA256 = map[string]string{}
	for _, on := range filePlatforms {
		address := pin.fill(pin.URL, on)
		sum, err := d.save(ctx, address, filepath.Join(work, "file"))
		if err != nil {
			err = explain(ctx, hostOf(address), err)
			if on.os == "linux" || !strings.HasSuffix(err.Error(), "answers 404") {
				return pin, fmt.Errorf("%s: %w", address, err)
			}
			continue
		}
		if err := d.compare(ctx, pin, on, address, sum, work); err != nil {
			return pin, err
		}
		if member := pin.member(on); member != "." {
			if err := extract(filepath.Join(work, "file"), member, filepath.Join(work, "program")); err != nil {
				return pin, err
			}
		}
		pin.SHA256[on.String()] = sum
		fmt.Fprintf(out, "%s %s\n", address, sum)
	}
	pin.From = "the publisher, who publishes no sums"
	if pin.Checksums != "" {
		pin.From = "the publisher, whose own sums they are"
	}
	return pin, nil
}

// compare looks for the sum of a file in the publisher's list.
func (d *downloader) compare(ctx context.Context, pin Pin, on platform, address, sum, work string) error {
	if pin.Checksums == "" {
		return nil
	}
	list := filepath.Join(work, "sums")
	if _, err := d.save(ctx, pin.fill(pin.Checksums, on), list); err != nil {
		return err
	}
	content, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == path.Base(address) {
			if fields[0] == sum {
				return nil
			}
			return fmt.Errorf("%w: %s has sha256 %s, and its publisher's list says %s", errWrong, address, sum, fields[0])
		}
	}
	return fmt.Errorf("%s says nothing of %s", pin.fill(pin.Checksums, on), path.Base(address))
}

// writePins writes version, digest, sha256 and from of each pin into the file, and leaves the rest of it, with its comments.
func writePins(file string, pins map[string]Pin) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return err
	}
	parts := value(document.Content[0], "parts")
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		pin := pins[name]
		for _, field := range []struct {
			name  string
			value any
		}{{"version", pin.Version}, {"digest", pin.Digest}, {"sha256", pin.SHA256}, {"from", pin.From}} {
			if err := set(value(parts, name), field.name, field.value); err != nil {
				return err
			}
		}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// value returns the value of a key of a mapping, nil where it has none.
func value(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// set sets a key of a mapping, unless it is there with this value, or neither there nor needed.
func set(mapping *yaml.Node, key string, to any) error {
	var fresh yaml.Node
	if err := fresh.Encode(to); err != nil {
		return err
	}
	empty := fresh.Value == "" && len(fresh.Content) == 0
	old := value(mapping, key)
	switch {
	case old == nil && empty:
	case old == nil:
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &fresh)
	case !same(old, &fresh):
		*old = fresh
	}
	return nil
}

// same compares what two nodes say, an alias by what it stands for.
func same(a, b *yaml.Node) bool {
	if a.Kind == yaml.AliasNode {
		a = a.Alias
	}
	if a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
