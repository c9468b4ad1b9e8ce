// SPDX-License-Identifier: Apache-2.0

// Command mutants says which conditions of a package no test misses. It takes each one out in turn, and runs the package's tests:
//
//	go run ./hack/mutants ./internal/plan
//	go run ./hack/mutants ./controllers/delivery ./controllers/delivery/... ./test/simulation
//
// The first argument is the package, the others are the packages whose tests are run, by default the package itself. An operand of && is
// taken for true, an operand of || for false, and any other condition of an if or a case for false. Nothing in the checkout changes: each
// mutant is a build overlay. A condition that no test misses is a question and no answer: more often it lacks a test than it has no use.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "mutants: name a package, such as ./internal/plan")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(pkg string, tests []string) error {
	if len(tests) == 0 {
		tests = []string{pkg}
	}
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}\n{{join .GoFiles \"\\n\"}}", pkg).Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", pkg, err)
	}
	dir, rest, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if missed, err := mutant("", nil, temp, tests); err != nil || missed {
		return errors.Join(err, errors.New("the tests fail without any change"))
	}
	all, survivors := 0, 0
	for _, file := range strings.Fields(rest) {
		name := filepath.Join(dir, file)
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := conditions(name, source)
		if err != nil {
			return err
		}
		for _, c := range found {
			all++
			missed, err := mutant(name, c.without(source), temp, tests)
			if err != nil {
				return err
			}
			if !missed {
				survivors++
				fmt.Printf("%s:%d: taken for %t, no test misses it: %s\n", file, c.line, c.value, source[c.from:c.to])
			}
		}
	}
	fmt.Printf("%d of %d conditions of %s are missed by no test\n", survivors, all, pkg)
	return nil
}

// condition is a part of a source that decides.
type condition struct {
	from, to, line int
	// value is what it is taken for.
	value bool
}

// without returns a source in which the condition has its value. The condition is compiled all the same: it may be the only use of a
// variable.
func (c condition) without(source []byte) []byte {
	open := map[bool]string{true: "(true || (", false: "(false && ("}[c.value]
	return slices.Concat(source[:c.from], []byte(open), source[c.from:c.to], []byte("))"), source[c.to:])
}

// conditions returns those of a file.
func conditions(name string, source []byte) ([]condition, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []condition
	add := func(e ast.Expr, value bool) {
		if b, ok := unwrap(e).(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			return // its operands are
		}
		found = append(found, condition{set.Position(e.Pos()).Offset, set.Position(e.End()).Offset, set.Position(e.Pos()).Line, value})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				add(n.X, n.Op == token.LAND)
				add(n.Y, n.Op == token.LAND)
			}
		case *ast.IfStmt:
			add(n.Cond, false)
		case *ast.SwitchStmt:
			for _, s := range n.Body.List {
				if n.Tag != nil {
					break
				}
				for _, e := range s.(*ast.CaseClause).List { //nolint:forcetypeassert // a switch has nothing else
					add(e, false)
				}
			}
		}
		return true
	})
	return found, nil
}

// unwrap returns an expression without parentheses.
func unwrap(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// mutant runs the tests with another text of a file, and returns whether one of them fails. Without a file it runs them as they are.
func mutant(file string, text []byte, temp string, tests []string) (missed bool, err error) {
	args := []string{"test", "-vet=off", "-failfast", "-timeout=5m"}
	if file != "" {
		other, overlay := filepath.Join(temp, "mutant.go"), filepath.Join(temp, "overlay.json")
		raw, err := json.Marshal(map[string]any{"Replace": map[string]string{file: other}})
		if err := errors.Join(err, os.WriteFile(other, text, 0o600), os.WriteFile(overlay, raw, 0o600)); err != nil {
			return false, err
		}
		args = append(args, "-overlay", overlay)
	}
	out, err := exec.Command("go", append(args, tests...)...).CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return false, err
	}
	if strings.Contains(string(out), "[build failed]") {
		return false, fmt.Errorf("%s does not build:\n%s", file, out)
	}
	return err != nil, nil
}
