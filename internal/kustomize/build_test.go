// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/kustomize"
	"github.com/chandler-hub/chandler/internal/must"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: web:v1}]}\n"

// folder writes files into a folder below another one, which has a secret.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	above, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files = maps.Clone(files)
	if files == nil {
		files = map[string]string{"web.yaml": pod}
	}
	files["../secret.yaml"] = strings.ReplaceAll(pod, "web", "hidden")
	root := filepath.Join(above, "root")
	for name, text := range files {
		at := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(at), 0o750))
		if to, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(to, at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestBuild: what Flux makes of a folder, and of which files; and what leads out of it, or would be fetched or run, is refused.
func TestBuild(t *testing.T) {
	for name, tc := range map[string]struct {
		files            map[string]string
		spec, want, read string
	}{
		"Plain": {files: map[string]string{"a/web.yaml": pod, "a/note.txt": "x", "b.yaml": pod}, spec: "{path: ./a, namePrefix: x-}", want: "x-web image: web:v1", read: "a/web.yaml"},
		"ImagesAndComponents": {files: map[string]string{"a/web.yaml": pod, "a/kustomization.yaml": "resources: [web.yaml]",
			"c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -c\n"},
			spec: "{path: a, components: [../c], images: [{name: web, newTag: v2}]}", want: "web-c image: web:v2", read: "a/kustomization.yaml a/web.yaml c/kustomization.yaml"},
		"Generator": {files: map[string]string{"a/x.conf": "hello", "a/kustomization.yaml": "configMapGenerator: [{name: x, files: [x.conf]}]"}, spec: "{path: a}",
			want: "x.conf: hello", read: "a/kustomization.yaml a/x.conf"},
		"NoFolder":     {spec: "{path: a}", want: "its folder is not in the files"},
		"Above":        {files: map[string]string{"a/kustomization.yaml": "resources: [../../secret.yaml]"}, spec: "{path: a}", want: `names "../../secret.yaml"`},
		"AbovePath":    {files: map[string]string{"web.yaml": pod}, spec: "{path: ../..}", want: "web image: web:v1", read: "web.yaml"},
		"Link":         {files: map[string]string{"a/web.yaml": "-> ../../secret.yaml"}, spec: "{path: a}", want: "/a/web.yaml leads out of the source"},
		"NamedLink":    {files: map[string]string{"a/web.yaml": "-> ../../secret.yaml", "a/kustomization.yaml": "resources: [web.yaml]"}, spec: "{path: a}", want: `names "web.yaml"`},
		"LinkedFolder": {files: map[string]string{"a": "-> .."}, spec: "{path: a}", want: "its folder is not in the files"},
		"FileAbove":    {files: map[string]string{"a/kustomization.yaml": "configMapGenerator: [{name: x, files: [../../secret.yaml]}]"}, spec: "{path: a}", want: "secret.yaml"},
		"Remote":       {files: map[string]string{"a/kustomization.yaml": "resources: [\"https://example.org/x\"]"}, spec: "{path: a}", want: "names an address, and nothing is fetched"},
		"RemoteGit":    {files: map[string]string{"a/kustomization.yaml": "resources: [\"git@example.org:x\"]"}, spec: "{path: a}", want: "nothing but the source is fetched"},
		"Circle":       {files: map[string]string{"a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]"}, spec: "{path: a}", want: "a: its folders refer to each other in a circle"},
		"Helm":         {files: map[string]string{"a/kustomization.yaml": "helmCharts: [{name: x}]"}, spec: "{path: a}", want: "are not built here"},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, tc.files)
			spec := map[string]any{}
			must.Do(t, yaml.Unmarshal([]byte(tc.spec), &spec))
			built, err := kustomize.Build(root, spec)
			got, read := "", ""
			if err != nil {
				got = err.Error()
			} else {
				for _, r := range built.Resources {
					got += r.GetName() + " " + r.MustYaml()
				}
				read = strings.Join(slices.Sorted(maps.Keys(built.Files)), " ")
			}
			for _, want := range strings.SplitN(tc.want, " image", 2) {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %s", want, got)
				}
			}
			if strings.Contains(got, "hidden") || strings.Contains(got, root) || read != tc.read {
				t.Errorf("it reads %q, and says %s", read, got)
			}
			if name == "NoFolder" && !errors.Is(err, kustomize.ErrNoFolder) {
				t.Error(err)
			}
		})
	}
}
