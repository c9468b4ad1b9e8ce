// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// chartVersion is the version without the v: Helm takes Semantic Versioning by the letter.
func (r *release) chartVersion() string { return strings.TrimPrefix(r.version, "v") }

func (r *release) chartName() string { return "chandler-" + r.chartVersion() + ".tgz" }

// packageChart packages the chart with the version, and with the published image where the checkout names none.
func (r *release) packageChart(ctx context.Context) error {
	chart := filepath.Join(r.work, "chandler")
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(r.root, "charts", "chandler"))); err != nil {
		return err
	}
	if err := replaceOnce(filepath.Join(chart, "values.yaml"), "\n  repository: chandler-hub\n",
		"\n  repository: "+r.image()+"\n"); err != nil {
		return err
	}
	_, err := output(ctx, r.root, r.helm, "package", chart, "--version", r.chartVersion(), "--app-version", r.version, "--destination", r.out)
	return err
}

// replaceOnce replaces a text that must stand in a file exactly once.
func replaceOnce(path, old, replacement string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(content, []byte(old)); n != 1 {
		return fmt.Errorf("%s has %q %d times, and not once", filepath.Base(path), old, n)
	}
	return os.WriteFile(path, bytes.Replace(content, []byte(old), []byte(replacement), 1), 0o644)
}

// buildManifests writes config/default with the published image, for kubectl apply -f. The image is named by its digest too.
func (r *release) buildManifests(ctx context.Context) error {
	overlay := filepath.Join(r.work, "overlay")
	base, err := filepath.Rel(overlay, filepath.Join(r.root, "config", "default"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(overlay, 0o755); err != nil {
		return err
	}
	kustomization := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\n"+
		"images: [{name: chandler-hub, newName: %q, newTag: %s, digest: %q}]\n", base, r.image(), r.version, r.imageDigest)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o644); err != nil {
		return err
	}
	manifests, err := output(ctx, r.root, r.kustomize, "build", overlay)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path("install.yaml"), []byte(manifests+"\n"), 0o644)
}
