// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// Helm runs Helm as the administrator of the node's cluster.
func (n *Node) Helm(ctx context.Context, args ...string) error {
	_, err := n.program(ctx, parts.Helm, args...)
	return err
}

// program runs a part to its end as the administrator, and returns what it printed.
func (n *Node) program(ctx context.Context, part string, args ...string) (string, error) {
	path, err := parts.Path(part)
	if err != nil {
		return "", err
	}
	home := n.in(part)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.KubeconfigFile(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", part, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// InstallFlux installs the controllers as `flux install` would, from images with our builds of them.
func (n *Node) InstallFlux(ctx context.Context) error {
	files, err := localfleet.FluxManifests()
	if err != nil {
		return err
	}
	dir := n.in("flux")
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	text, err := n.program(ctx, parts.Kustomize, "build", dir)
	if err != nil {
		return err
	}
	for _, found := range regexp.MustCompile(`image: (fluxcd/(\S+):\S+)`).FindAllStringSubmatch(text, -1) {
		path, err := parts.Path(found[2])
		if err != nil {
			return err
		}
		if err := n.Load(ctx, Image{Ref: "docker.io/" + found[1], Files: map[string]string{"/manager": path},
			Entrypoint: []string{"/manager"}, User: "65534"}); err != nil {
			return err
		}
	}
	if err := n.Apply(ctx, text); err != nil {
		return err
	}
	for _, name := range []string{parts.SourceController, parts.KustomizeController, parts.HelmController} {
		if err := n.Available(ctx, client.ObjectKey{Namespace: localfleet.FluxNamespace, Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// HubImage is the image of a hub, as the Dockerfile has it: a file system with the program, and a user by number.
func HubImage(ref, program string) Image {
	return Image{Ref: "docker.io/library/" + ref, Files: map[string]string{"/hub": program}, Entrypoint: []string{"/hub"}, User: "65532:65532"}
}

// HelloImage is the image of command hello, which Build has built.
func HelloImage(ref, program string) Image {
	return Image{Ref: ref, Files: map[string]string{"/hello": program}, Entrypoint: []string{"/hello"}, User: "65532"}
}
