// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

func doc(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// tables returns the Markdown tables of text by their header, each as the cells of its rows.
func tables(text string) map[string][][]string {
	out := map[string][][]string{}
	header := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") {
			header = ""
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case header == "":
			header = strings.Join(cells, ",")
		case strings.Trim(line, "|- ") != "":
			out[header] = append(out[header], cells)
		}
	}
	return out
}

// TestDocumentedTable: the tables of rules in docs/kubeconfig.md and docs/threat-model.md say what Table says, in the same order.
func TestDocumentedTable(t *testing.T) {
	var rules, whys [][]string
	for _, r := range kubeconfig.Table() {
		flag := "none"
		if r.Flag != "" {
			flag = "`--" + r.Flag + "`"
		}
		row, why := []string{"`" + r.Name + "`", r.Input, r.Remedy, "`" + r.Reason + "`", flag}, []string{"`" + r.Name + "`", r.Why}
		if strings.Contains(strings.Join(append(row, why...), ""), "|") {
			t.Errorf("row %q holds a |, which ends a cell of a table", r.Name)
		}
		rules, whys = append(rules, row), append(whys, why)
	}
	for _, table := range []struct {
		page, header string
		want         [][]string
	}{
		{"kubeconfig.md", "rule,what it refuses,what to do,reason,lifted by", rules},
		{"threat-model.md", "rule,why", whys},
	} {
		if diff := cmp.Diff(table.want, tables(doc(t, table.page))[table.header]); diff != "" {
			t.Errorf("docs/%s differs from Table: -Table, +document:\n%s", table.page, diff)
		}
	}
}

// TestDocumentedReasons: every reason that an Error can have is in docs/kubeconfig.md.
func TestDocumentedReasons(t *testing.T) {
	file := must.Get(parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)).Or(t)
	text, count := doc(t, "kubeconfig.md"), 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Reason") {
			count++
			if reason := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`); !strings.Contains(text, "`"+reason+"`") {
				t.Errorf("the reason %s is not in docs/kubeconfig.md", reason)
			}
		}
		return true
	})
	if count < 20 {
		t.Errorf("only %d reasons found", count)
	}
}

// TestTableNamesWhatExists: flags that lift a rule are flags of the hub, and fields that a remedy names are in the API.
func TestTableNamesWhatExists(t *testing.T) {
	flags := doc(t, "flags.md")
	for _, r := range kubeconfig.Table() {
		if r.Flag != "" && !strings.Contains(flags, "| `--"+r.Flag+"` |") {
			t.Errorf("row %s: the hub has no flag --%s", r.Name, r.Flag)
		}
		for _, path := range regexp.MustCompile(`\bspec(\.[a-zA-Z]+)+`).FindAllString(r.Input+" "+r.Why+" "+r.Remedy, -1) {
			if !hasField(reflect.TypeFor[hubv1.ClusterRegistration](), strings.Split(path, ".")) {
				t.Errorf("row %s: a ClusterRegistration has no field %s", r.Name, path)
			}
		}
	}
}

// hasField follows path by the names in JSON.
func hasField(typ reflect.Type, path []string) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if len(path) == 0 || typ.Kind() != reflect.Struct {
		return len(path) == 0
	}
	for field := range typ.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == path[0] {
			return hasField(field.Type, path[1:])
		}
	}
	return false
}
