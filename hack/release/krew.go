// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
)

// krewName is the plugin manifest, by which krew installs the command line as kubectl chandler.
const krewName = "krew.yaml"

// krewManifest is one of krew.googlecontainertools.github.com/v1alpha2.
var krewManifest = template.Must(template.New(krewName).Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: chandler
spec:
  version: {{.Version}}
  homepage: https://{{.Module}}
  shortDescription: Add-ons for fleets of clusters that run on Flux
  description: |
    Shows and steers a Chandler hub: label a cluster on your management cluster, and its add-ons arrive, stay, and leave cleanly.
    It renders and compares AddonSets before they are merged, explains why a cluster has an add-on or waits for it, and serves a
    page of the fleet on your machine.
  platforms:
{{- range .Platforms}}
  - selector:
      matchLabels: {os: {{.OS}}, arch: {{.Arch}}}
    uri: {{.URI}}
    sha256: {{.Sum}}
    bin: {{.Binary}}
    files:
    - {from: {{.Binary}}, to: .}
    - {from: LICENSE, to: .}
{{- end}}
`))

type krewPlatform struct{ OS, Arch, URI, Sum, Binary string }

// writeKrew writes the plugin manifest. The archives are those of the GitHub release.
func (r *release) writeKrew(context.Context) error {
	var platforms []krewPlatform
	for _, p := range r.commands {
		name, binary := r.archiveName(p), "chandler"
		if p.os == "windows" {
			binary += ".exe"
		}
		content, err := os.ReadFile(r.path(name))
		if err != nil {
			return err
		}
		platforms = append(platforms, krewPlatform{OS: p.os, Arch: p.arch, Binary: binary, Sum: fmt.Sprintf("%x", sha256.Sum256(content)),
			URI: fmt.Sprintf("https://%s/releases/download/%s/%s", module, r.version, name)})
	}
	var out bytes.Buffer
	err := krewManifest.Execute(&out, map[string]any{"Version": r.version, "Module": module, "Platforms": platforms})
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(krewName), out.Bytes(), 0o644)
}

// checkKrew has krew itself install each platform's archive by the manifest, and runs that of this machine as kubectl would.
func (r *release) checkKrew(ctx context.Context) error {
	for _, p := range r.commands {
		root := filepath.Join(r.work, "krew", p.String())
		cmd := exec.CommandContext(ctx, r.krew, "install", "--manifest="+r.path(krewName), "--archive="+r.path(r.archiveName(p)))
		cmd.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_OS="+p.os, "KREW_ARCH="+p.arch, "KREW_NO_UPGRADE_CHECK=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", p, err, out)
		}
		if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
			continue
		}
		said, err := output(ctx, r.work, filepath.Join(root, "bin", "kubectl-chandler"), "--version")
		if err != nil {
			return err
		}
		if !strings.Contains(said, r.version+" ") {
			return fmt.Errorf("kubectl chandler says that it is %q, and not %s", said, r.version)
		}
	}
	return nil
}
