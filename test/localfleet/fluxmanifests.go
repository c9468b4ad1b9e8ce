// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// FluxManifests returns the files of a folder like the one that `flux install --export` writes: CRDs and Deployments of the
// controllers as their modules have them, and the roles of module flux2.
func FluxManifests() (map[string]string, error) {
	const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	files := map[string]string{
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + FluxNamespace + "}\n",
		"kustomization.yaml": head + "namespace: " + FluxNamespace + "\n" +
			"resources: [namespace.yaml, rbac, source-controller, kustomize-controller, helm-controller]\n",
	}
	for folder, set := range map[string]string{
		"rbac": parts.FluxRBAC, parts.SourceController: parts.SourceControllerInstall,
		parts.KustomizeController: parts.KustomizeControllerInstall, parts.HelmController: parts.HelmControllerInstall,
	} {
		dir, err := parts.Files(set)
		if err != nil {
			return nil, err
		}
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			files[folder+"/"+filepath.ToSlash(rel)] = string(raw)
			return err
		}); err != nil {
			return nil, err
		}
		if folder == "rbac" {
			continue
		}
		files[folder+"/account.yaml"] = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + folder + "}\n"
		files[folder+"/kustomization.yaml"] = head + "resources: [crd, manager, account.yaml]\n" +
			"patches: [{target: {kind: Deployment}, patch: '" +
			`[{"op":"add","path":"/spec/template/spec/serviceAccountName","value":"` + folder + `"}]` + "'}]\n"
	}
	return files, nil
}
