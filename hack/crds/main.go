// SPDX-License-Identifier: Apache-2.0

// Command crds copies CRDs into internal/crdschema/crds, from where they are built into the hub and the command line: our own, and
// those of Flux, of the versions that hack/tools pins. Flux's are data of the modules of its controllers, which are
// licensed as this project is (Apache-2.0). A copy says in an annotation where it comes from. It has only what an API
// server validates an object by.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const out = "internal/crdschema/crds"

// controllers are those of Flux, with the resources that add-ons and their sources are made of.
var controllers = map[string][]string{
	"helm-controller":      {"helm.toolkit.fluxcd.io_helmreleases"},
	"kustomize-controller": {"kustomize.toolkit.fluxcd.io_kustomizations"},
	"source-controller": {"source.toolkit.fluxcd.io_buckets", "source.toolkit.fluxcd.io_gitrepositories",
		"source.toolkit.fluxcd.io_helmcharts", "source.toolkit.fluxcd.io_helmrepositories", "source.toolkit.fluxcd.io_ocirepositories"},
}

// ours are the kinds that people write. AddonDeliveries are the hub's.
var ours = []string{"addonsets", "clusterregistrations", "teams"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, plural := range ours {
		if err := write(filepath.Join("config/crd/bases", "chandler.dev_"+plural+".yaml"), "config/crd/bases"); err != nil {
			return err
		}
	}
	for controller, resources := range controllers {
		dir, version, err := module(controller)
		if err != nil {
			return err
		}
		for _, r := range resources {
			from := "github.com/fluxcd/" + controller + "@" + version + ", Apache-2.0"
			if err := write(filepath.Join(dir, "config/crd/bases", r+".yaml"), from); err != nil {
				return err
			}
		}
	}
	return nil
}

// module returns the folder of a controller's module in the module cache, downloaded if it has to be, and its version.
func module(controller string) (dir, version string, err error) {
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/fluxcd/"+controller)
	cmd.Dir = filepath.Join("hack/tools", controller)
	raw, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", "", fmt.Errorf("download %s: %w: %s", controller, err, exit.Stderr)
	}
	if err != nil {
		return "", "", err
	}
	var m struct{ Dir, Version string }
	err = json.Unmarshal(raw, &m)
	return m.Dir, m.Version, err
}

// write copies one CRD.
func write(file, from string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	in := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, in); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	crd := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": in.Name, "annotations": map[string]string{"chandler.dev/copied-from": from}},
	}
	spec := map[string]any{"group": in.Spec.Group, "scope": in.Spec.Scope,
		"names": apiextensionsv1.CustomResourceDefinitionNames{Kind: in.Spec.Names.Kind, Plural: in.Spec.Names.Plural}}
	var versions []any
	for i := range in.Spec.Versions {
		v := &in.Spec.Versions[i]
		if !v.Storage {
			continue
		}
		schema := v.Schema.OpenAPIV3Schema
		delete(schema.Properties, "status")
		strip(schema)
		versions = append(versions, map[string]any{"name": v.Name, "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": schema}})
	}
	spec["versions"] = versions
	crd["spec"] = spec
	text, err := json.MarshalIndent(crd, "", " ")
	if err != nil {
		return err
	}
	name := strings.ToLower(in.Spec.Names.Kind) + "." + in.Spec.Group + ".json"
	return os.WriteFile(filepath.Join(out, name), append(text, '\n'), 0o644)
}

// strip takes out what is for people.
func strip(s *apiextensionsv1.JSONSchemaProps) {
	s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
	for name, p := range s.Properties {
		strip(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		strip(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		strip(s.AdditionalProperties.Schema)
	}
	for _, several := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range several {
			strip(&several[i])
		}
	}
}
