// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

const module = "github.com/chandler-hub/chandler"

// platform is what a binary is built for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

var (
	// commandPlatforms are those of the command line, imagePlatforms those of the hub.
	commandPlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"}}
	imagePlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
)

// release is one run: what is made, out of which commit, and where to.
type release struct {
	options
	// root is the checkout, work a folder in it that is thrown away.
	root, work string
	// revision is the commit, and made the time of it: files and images say that they are that old, so that two builds are alike.
	revision string
	made     time.Time
	// imageDigest is that of the index, known once the image is made.
	imageDigest string
	// stamped says that Go notes the commit in what it builds. It does not in a linked worktree.
	stamped bool
}

// newRelease looks at the checkout and refuses what is not ready to be released.
func newRelease(ctx context.Context, o options) (*release, error) {
	r := &release{options: o}
	if semver.Canonical(o.version) != o.version || o.version == "" {
		return nil, fmt.Errorf("version %q is not of the form v1.2.3 or v1.2.3-rc.1", o.version)
	}
	var err error
	if r.root, err = output(ctx, "", "git", "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(r.out) {
		r.out = filepath.Join(r.root, r.out)
	}
	if r.revision, err = output(ctx, r.root, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if r.made, err = r.commitTime(ctx); err != nil {
		return nil, err
	}
	git, err := os.Stat(filepath.Join(r.root, ".git"))
	r.stamped = err == nil && git.IsDir()
	if o.dryRun {
		return r, nil
	}
	return r, r.ready(ctx)
}

// commitTime is $SOURCE_DATE_EPOCH, or the time of the commit.
func (r *release) commitTime(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		var err error
		if text, err = output(ctx, r.root, "git", "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// ready says why this checkout cannot be released: it is not what the tag names.
func (r *release) ready(ctx context.Context) error {
	if !r.stamped {
		return errors.New("this is a linked worktree, and Go would note no commit in the binaries: release from a clone")
	}
	if changes, err := output(ctx, r.root, "git", "status", "--porcelain"); err != nil || changes != "" {
		return errors.Join(err, fmt.Errorf("the checkout has changes:\n%s", changes))
	}
	tags, err := output(ctx, r.root, "git", "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if slices.Contains(strings.Fields(tags), r.version) {
		return nil
	}
	return fmt.Errorf("no tag %s points at this commit (tags here: %q)", r.version, tags)
}

// image is the published name of the hub's image, without a tag.
func (r *release) image() string { return r.registry + "/chandler-hub" }

// path is a file of the release.
func (r *release) path(name string) string { return filepath.Join(r.out, name) }

// output runs a command in a folder and returns what it prints, without white space around it.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
