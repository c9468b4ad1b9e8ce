// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// purePackages decide, and neither read nor write.
var purePackages = []string{"assembly", "breaker", "compile", "drain", "excerpt", "explain", "expression", "facts", "fluxspec", "fluxstate", "guard", "hubconfig", "identity", "kubeconfig", "manifestchart", "match", "merge", "origin", "pace", "plan", "preview", "provenance", "render", "report", "shard", "status", "teardown", "workloadidentity"}

// TestPurePackagesArePure holds the packages that decide to their word: no client, no clock, no environment.
func TestPurePackagesArePure(t *testing.T) {
	forbidden := []string{"os", "net/http", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "k8s.io/client-go/tools", "sigs.k8s.io/controller-runtime"}
	calls := map[string]bool{"time.Now": true, "time.Since": true, "time.Until": true, "os.Getenv": true}
	for _, pkg := range purePackages {
		files, err := filepath.Glob(pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files (%v)", pkg, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				path := strings.Trim(i.Path.Value, `"`)
				for _, bad := range forbidden {
					if (path == bad || strings.HasPrefix(path, bad+"/")) && !allowed[pkg+" "+path] {
						t.Errorf("%s imports %s", file, path)
					}
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && calls[x.Name+"."+s.Sel.Name] {
						t.Errorf("%s calls %s.%s", file, x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// allowed are imports for types alone.
var allowed = map[string]bool{
	"fluxstate sigs.k8s.io/controller-runtime/pkg/client": true, // the Object interface
	"kubeconfig net/http":                                true, // the proxy of a rest.Config
	"manifestchart net/http":                             true, // the handler that serves the chart from memory
	"kubeconfig k8s.io/client-go/rest":                   true, // the Config struct
	"kubeconfig k8s.io/client-go/tools/clientcmd":        true,
	"kubeconfig k8s.io/client-go/tools/clientcmd/api":    true,
	"kubeconfig k8s.io/client-go/tools/clientcmd/api/v1": true,
}
