// SPDX-License-Identifier: Apache-2.0

// Command marks counts how much a person has to hold in mind to change the hub: lines of code, kinds of conditions, words of the API,
// memories. The numbers are to go down.
//
//	go run ./hack/marks
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints a line for each mark. It is run in the root of the repository.
func run(out io.Writer) error {
	hub, err := packages("./cmd/hub", "./controllers/...")
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say := func(what string, n any) { fmt.Fprintf(w, "%s\t%v\n", what, n) }
	lines, largest := 0, pkg{}
	for _, p := range hub {
		lines += p.lines
		if p.lines > largest.lines {
			largest = p
		}
	}
	say("packages of the hub", len(hub))
	say("lines of code of the hub", lines)
	say("lines of the largest package", fmt.Sprintf("%d (%s)", largest.lines, largest.path))
	words, err := constants("api/v1alpha1")
	if err != nil {
		return err
	}
	for _, suffix := range []string{"Condition", "Reason", "Event", "Label", "Annotation", "Finalizer", "FieldManager"} {
		say("constants of the API that end in "+suffix, words[suffix])
	}
	verbs, err := typed("internal/plan", "Verb")
	if err != nil {
		return err
	}
	say("verbs of the plan", verbs)
	stores := 0
	for _, p := range hub {
		stores += p.stores
	}
	say("structs with a mutex", stores)
	return errors.Join(oracle(say), w.Flush())
}

// pkg is a package of this module that the hub is made of.
type pkg struct {
	path          string
	lines, stores int
}

// packages returns those of this module that some packages are made of, with those.
func packages(patterns ...string) ([]pkg, error) {
	raw, err := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,Module"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var out []pkg
	for d := json.NewDecoder(strings.NewReader(string(raw))); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			Module          *struct{ Main bool }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		one := pkg{path: p.ImportPath}
		for _, name := range p.GoFiles {
			lines, stores, err := count(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			one.lines, one.stores = one.lines+lines, one.stores+stores
		}
		out = append(out, one)
	}
}

// count returns how many lines of a file hold code, without comments and what is generated, and how many of its structs have a mutex.
func count(file string) (lines, stores int, err error) {
	if strings.HasPrefix(filepath.Base(file), "zz_generated") {
		return 0, 0, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, raw, parser.ParseComments)
	if err != nil {
		return 0, 0, err
	}
	text := slices.Clone(raw)
	for _, group := range f.Comments {
		for at := set.Position(group.Pos()).Offset; at < set.Position(group.End()).Offset; at++ {
			if text[at] != '\n' {
				text[at] = ' '
			}
		}
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok && slices.ContainsFunc(s.Fields.List, isMutex) {
			stores++
		}
		return true
	})
	return lines, stores, nil
}

func isMutex(f *ast.Field) bool {
	s, ok := f.Type.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "Mutex" || s.Sel.Name == "RWMutex")
}

// constants counts the constants of a package by the last word of their names.
func constants(dir string) (map[string]int, error) {
	last := regexp.MustCompile(`(FieldManager|[A-Z][a-z]*)$`)
	out := map[string]int{}
	return out, each(dir, func(s *ast.ValueSpec) {
		for _, name := range s.Names {
			out[last.FindString(name.Name)]++
		}
	})
}

// typed counts the constants of a package of a type.
func typed(dir, typ string) (n int, err error) {
	current := ""
	return n, each(dir, func(s *ast.ValueSpec) {
		if id, ok := s.Type.(*ast.Ident); ok {
			current = id.Name
		} else if len(s.Values) > 0 {
			current = ""
		}
		if current == typ {
			n += len(s.Names)
		}
	})
}

// each calls f with each declaration of constants of a package.
func each(dir string, f func(*ast.ValueSpec)) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, s := range g.Specs {
					f(s.(*ast.ValueSpec))
				}
			}
		}
	}
	return nil
}

// oracle counts the part of the simulation that says what the hub is to do, its scripts, and the words about a teardown.
func oracle(say func(string, any)) error {
	lines := 0
	for _, name := range []string{"wishes", "losses", "staying", "statuses", "registrations", "waves", "starts", "rest", "written"} {
		n, _, err := count(filepath.Join("test/simulation", name+".go"))
		if errors.Is(err, os.ErrNotExist) {
			continue // it has gone
		} else if err != nil {
			return err
		}
		lines += n
	}
	say("lines of code of the simulation's oracle", lines)
	scripts := 0
	for _, pattern := range []string{"*.txt", "*/*.txt"} {
		found, err := filepath.Glob(filepath.Join("test/simulation/testdata", pattern))
		if err != nil {
			return err
		}
		scripts += len(found)
	}
	say("scripts of the simulation", scripts)
	page, err := os.ReadFile("docs/teardown.md")
	say("words of docs/teardown.md", len(strings.Fields(string(page))))
	return err
}
