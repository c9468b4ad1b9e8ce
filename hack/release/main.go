// SPDX-License-Identifier: Apache-2.0

// Command release makes everything that a release publishes into a folder, and checks what it has made: archives of the command line
// with a manifest for krew, the image of the hub, the chart, the manifests, SBOMs and checksums. It publishes nothing, and needs no
// network once the modules are there. .github/workflows/release.yaml publishes the folder, and docs/development.md says how a release is
// made.
//
//	go -C hack/release run . -version v0.1.0
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	o := options{commands: slices.Clone(commandPlatforms), images: slices.Clone(imagePlatforms)}
	flag.StringVar(&o.version, "version", "", "the version, which is the Git tag: v0.1.0")
	flag.StringVar(&o.out, "out", "dist", "the folder to write; it is emptied first")
	flag.StringVar(&o.registry, "registry", "ghcr.io/chandler-hub", "where the image is published: the registry's host and the owner")
	flag.StringVar(&o.helm, "helm", "helm", "the helm to package with")
	flag.StringVar(&o.kustomize, "kustomize", "kustomize", "the kustomize to build the manifests with")
	flag.StringVar(&o.krew, "krew", "krew", "the krew to check the plugin manifest with")
	flag.BoolVar(&o.dryRun, "dry-run", false, "the checkout may have changes and no tag, and the changelog may call the version Unreleased")
	only := flag.String("only", "", "for a dry run: one platform instead of all, such as linux_amd64")
	flag.Parse()
	if *only != "" {
		o.only(*only)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type options struct {
	version, out, registry, helm, kustomize, krew string
	dryRun                                        bool
	// commands are the platforms of the command line, images those of the hub.
	commands, images []platform
}

// only leaves one platform, and makes this a dry run.
func (o *options) only(name string) {
	other := func(p platform) bool { return p.String() != name }
	o.commands, o.images, o.dryRun = slices.DeleteFunc(o.commands, other), slices.DeleteFunc(o.images, other), true
}

func run(ctx context.Context, o options) error {
	r, err := newRelease(ctx, o)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(r.root, ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r.work = work
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"notes", r.writeNotes},
		{"archives of the command line", r.buildArchives},
		{"image", r.buildImage},
		{"chart", r.packageChart},
		{"manifests", r.buildManifests},
		{"krew manifest", r.writeKrew},
		{"checksums", r.writeChecksums},
		{"check of the checksums", r.checkChecksums},
		{"check of the archives", r.checkArchives},
		{"check of the krew manifest, by krew", r.checkKrew},
		{"check of the image", r.checkImage},
		{"check of the manifests", r.checkManifests},
		{"check of the chart, from a registry on loopback", r.checkPublished},
	} {
		fmt.Println("release:", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	fmt.Printf("release: %s is in %s\n", r.version, filepath.Clean(r.out))
	return nil
}
