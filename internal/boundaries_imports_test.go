// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/chandler-hub/chandler/"

// TestPurePackagesImportPureOnes: what a pure package imports of this module, however far down, is itself pure. Names are
// resolved through the imports of a file, so that an alias hides nothing.
func TestPurePackagesImportPureOnes(t *testing.T) {
	pure := purePackages
	calls := []string{"time.Now", "time.Since", "time.Until", "time.After", "time.Sleep", "os.Getenv", "os.LookupEnv"}
	forbidden := []string{"os", "os/exec", "syscall", "net/http", "math/rand", "math/rand/v2", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
	seen := map[string]bool{}
	var visit func(pkg, via string)
	visit = func(pkg, via string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		dir := strings.TrimPrefix(pkg, "internal/")
		if dir == pkg {
			dir = filepath.Join("..", pkg)
		}
		for _, f := range parse(t, dir) {
			for name, imported := range imports(t, f) {
				if own, ok := strings.CutPrefix(imported, module); ok {
					if in, internal := strings.CutPrefix(own, "internal/"); own != "api/v1alpha1" && (!internal || !slices.Contains(pure, in)) {
						t.Errorf("%s imports %s, which is not pure", via, own)
						continue
					}
					visit(own, via+" > "+own)
					continue
				}
				for _, bad := range forbidden {
					if (imported == bad || strings.HasPrefix(imported, bad+"/")) && !allowed[path.Base(pkg)+" "+imported] {
						t.Errorf("%s imports %s as %s", via, imported, name)
					}
				}
			}
			names := imports(t, f)
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && slices.Contains(calls, names[x.Name]+"."+s.Sel.Name) {
						t.Errorf("%s uses %s.%s", via, names[x.Name], s.Sel.Name)
					}
				}
				return true
			})
		}
	}
	for _, p := range pure {
		visit("internal/"+p, "internal/"+p)
	}
}

// parse reads the files of a package that are no tests.
func parse(t *testing.T, dir string) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatalf("%s has no files", dir)
	}
	return files
}

// imports returns the imports of a file by the name that they have there. A dot import would hide calls.
func imports(t *testing.T, f *ast.File) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, i := range f.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		if name == "." {
			t.Errorf("%s: dot import of %s", f.Name, imported)
		}
		if name == "_" {
			name = "_ " + imported
		}
		out[name] = imported
	}
	return out
}
