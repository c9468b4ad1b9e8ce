// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// checkManifests finds the image in the manifests once, by tag and digest.
func (r *release) checkManifests(context.Context) error {
	content, err := os.ReadFile(r.path("install.yaml"))
	if err != nil {
		return err
	}
	return onlyImage(string(content), r.image()+":"+r.version+"@"+r.imageDigest)
}

// onlyImage says whether manifests run this image and no other.
func onlyImage(manifests, image string) error {
	var images []string
	for _, line := range strings.Split(manifests, "\n") {
		if name, ok := strings.CutPrefix(strings.TrimLeft(line, " -"), "image: "); ok {
			images = append(images, strings.Trim(name, `"`))
		}
	}
	if len(images) != 1 || images[0] != image {
		return fmt.Errorf("the manifests run %q, and not %s", images, image)
	}
	return nil
}

// checkPublished publishes image and chart as the workflow does, but to a registry on loopback, and reads both back as a user does.
func (r *release) checkPublished(ctx context.Context) error {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	if err := r.checkPushedImage(ctx, host); err != nil {
		return err
	}
	// Helm keeps what it logs in to and what it has fetched in folders of its own.
	env := []string{"env", "HELM_CACHE_HOME=" + r.work, "HELM_CONFIG_HOME=" + r.work, "HELM_DATA_HOME=" + r.work, r.helm}
	helm := func(args ...string) (string, error) {
		return output(ctx, r.work, env[0], append(env[1:len(env):len(env)], args...)...)
	}
	if _, err := helm("lint", "--strict", "--quiet", r.path(r.chartName())); err != nil {
		return err
	}
	if _, err := helm("push", r.path(r.chartName()), "oci://"+host+"/charts", "--plain-http"); err != nil {
		return err
	}
	remote := []string{"oci://" + host + "/charts/chandler", "--version", r.chartVersion(), "--plain-http"}
	shown, err := helm(append([]string{"show", "chart"}, remote...)...)
	if err != nil {
		return err
	}
	for _, line := range []string{"version: " + r.chartVersion(), "appVersion: " + r.version} {
		if !strings.Contains("\n"+shown+"\n", "\n"+line+"\n") {
			return fmt.Errorf("the chart does not say %q:\n%s", line, shown)
		}
	}
	rendered, err := helm(append([]string{"template", "chandler"}, remote...)...)
	if err != nil {
		return err
	}
	return onlyImage(rendered, r.image()+":"+r.version)
}

// checkPushedImage pushes the image and reads its digest back by its tag.
func (r *release) checkPushedImage(ctx context.Context, host string) error {
	index, err := r.readImage()
	if err != nil {
		return err
	}
	tag, err := name.NewTag(host+"/chandler-hub:"+r.version, name.Insecure)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx)); err != nil {
		return err
	}
	got, err := remote.Head(tag, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	if got.Digest.String() != r.imageDigest {
		return fmt.Errorf("%s was pushed, and %s is in the registry", filepath.Base(r.imageDigest), got.Digest)
	}
	return nil
}
