// SPDX-License-Identifier: Apache-2.0

// Package docs tests the pages: every link leads somewhere, and everything that a user may come across is explained.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw := must.Read(t, path)
	return string(raw)
}

// pages returns every Markdown file of the checkout.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".github") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			out = append(out, path)
		}
		return nil
	})
	if err != nil || len(out) < 20 {
		t.Fatalf("%d pages (%v)", len(out), err)
	}
	return out
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code   = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	marked = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	odd    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns those of a page's headings, as repository pages make them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !strings.HasPrefix(line, "#") || !ok {
			continue
		}
		title = marked.ReplaceAllString(title, "$1")
		anchor := strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
		for name, n := anchor, 1; ; n++ {
			if !out[name] {
				out[name] = true
				break
			}
			name = anchor + "-" + string(rune('0'+n))
		}
	}
	return out
}

// TestLinks: each relative link of each page leads to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	count := 0
	for _, page := range pages(t) {
		text := code.ReplaceAllString(fence.ReplaceAllString(read(t, page), ""), "``")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			count++
			path, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			info, err := os.Stat(to)
			switch {
			case err != nil:
				t.Errorf("%s: %s leads nowhere", page, m[1])
			case anchor != "" && (info.IsDir() || !anchors(read(t, to))[anchor]):
				t.Errorf("%s: there is no heading %s", page, m[1])
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d links were found", count)
	}
}

// TestIndex: the index leads to every page.
func TestIndex(t *testing.T) {
	index := read(t, "README.md")
	files := must.Get(filepath.Glob("*.md")).Or(t)
	for _, f := range files {
		if f != "README.md" && !strings.Contains(index, "("+f+")") {
			t.Errorf("docs/README.md does not lead to %s", f)
		}
	}
}

// reasons returns the values of the constants of a package that are called as a pattern says.
func reasons(t *testing.T, dir, name string) []string {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(dir, "*.go"))).Or(t)
	named := regexp.MustCompile(name)
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0)).Or(t)
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && named.MatchString(v.Names[0].Name) && len(v.Values) == 1 {
				if lit, ok := v.Values[0].(*ast.BasicLit); ok {
					out = append(out, strings.Trim(lit.Value, `"`))
				}
			}
			return true
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestConditions: every condition, reason, state and event is explained on the page for it.
func TestConditions(t *testing.T) {
	page := read(t, "conditions.md")
	for _, of := range []struct {
		dir, name string
		least     int
	}{
		{"../api/v1alpha1", `Reason$`, 50},
		{"../api/v1alpha1", `Condition$`, 12},
		{"../api/v1alpha1", `Event$`, 20},
		{"../api/v1alpha1", `^Addon[A-Z]\w+`, 15},
		{"../internal/probe", `^Reason`, 13},
	} {
		words := reasons(t, of.dir, of.name)
		if len(words) < of.least {
			t.Errorf("only %d words were found in %s: %q", len(words), of.dir, words)
		}
		for _, w := range words {
			// One that no probe of the hub ever reports.
			if w != "Canceled" && !strings.Contains(w, "/") && !regexp.MustCompile("`"+w+"[`=]|^### "+w+"$").MatchString(page) {
				t.Errorf("docs/conditions.md does not explain %s (%s)", w, of.dir)
			}
		}
	}
}

// TestLabels: every label, annotation and finalizer is on the page for them.
func TestLabels(t *testing.T) {
	page, keys := read(t, "labels.md"), reasons(t, "../api/v1alpha1", `(Label|Annotation|Finalizer)$`)
	if len(keys) < 45 {
		t.Errorf("only %d keys were found", len(keys))
	}
	for _, key := range keys {
		if !strings.Contains(page, "`"+key+"`") {
			t.Errorf("docs/labels.md does not have %s", key)
		}
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# One, two & three\n\n```\n# not this\n```\n## What the `hub` does: a [page](x.md)\n## Twice\n## Twice\n")
	for _, want := range []string{"one-two--three", "what-the-hub-does-a-page", "twice", "twice-1"} {
		if !got[want] {
			t.Errorf("there is no %s in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %v", got)
	}
}
