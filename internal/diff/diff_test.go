// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func options() preview.Options {
	return preview.Options{
		Shared: hubconfig.Shared{
			HubID: "chandler", PlatformNamespaces: []string{"flux-system"},
			Chart: render.ManifestChart{URL: "http://chandler.chandler-system.svc", Name: manifestchart.Name, Digest: manifestchart.Digest()},
		},
		Now: now,
	}
}

// fleet reads the files of a case that are there.
func fleet(t testing.TB, files ...string) *preview.Fleet {
	t.Helper()
	var objects []preview.Object
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		found, _, err := preview.Parse(filepath.Base(file), raw)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, found...)
	}
	return must.Get(preview.NewFleet(objects, origin.Policy{SecretNamespaces: []string{"flux-system"}})).Or(t)
}

func computed(t testing.TB, dir string) *diff.Result {
	t.Helper()
	file := func(name string) string { return filepath.Join(dir, name+".yaml") }
	in := &diff.Input{Before: fleet(t, file("fleet"), file("old")), After: fleet(t, file("fleet"), file("new")), Options: options(),
		From: "main", To: "fleet/"}
	withCharts(dir, in)
	return diff.Compute(in)
}

// outputs are all that a result looks like.
func outputs(t *testing.T, r *diff.Result) map[string]string {
	t.Helper()
	out := map[string]string{}
	write := func(name string, err error, b *bytes.Buffer) {
		if err != nil {
			t.Fatal(err)
		}
		out[name] = b.String()
	}
	b := &bytes.Buffer{}
	write("want.txt", diff.Text(b, r, diff.TextOptions{}), b)
	b = &bytes.Buffer{}
	write("want.md", diff.Markdown(b, r, 0), b)
	b = &bytes.Buffer{}
	write("want.json", diff.JSON(b, r), b)
	return out
}

// whole are the cases of which every output is kept.
var whole = []string{"upgrade", "removed", "charts"}

// TestGolden compares old.yaml with new.yaml, each with fleet.yaml, of every folder under testdata. want.txt is what comes out; want.md
// and want.json are kept of a few cases.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got := outputs(t, computed(t, dir))
			if d := cmp.Diff(got, outputs(t, computed(t, dir))); d != "" {
				t.Errorf("not the same the second time: %s", d)
			}
			for name, text := range got {
				if file := filepath.Join(dir, name); name == "want.txt" || slices.Contains(whole, filepath.Base(dir)) {
					golden.Compare(t, file, text)
				}
			}
		})
	}
}

// TestNothingSecret: no output has what a Secret holds, and no hash of it.
func TestNothingSecret(t *testing.T) {
	for name, text := range outputs(t, computed(t, "testdata/secrets")) {
		for _, secret := range []string{"hunter", "aHVudGVy"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q:\n%s", name, secret, text)
			}
		}
	}
}

// TestMarkdownFits: the summary comes first, and what does not fit is counted.
func TestMarkdownFits(t *testing.T) {
	r := computed(t, "testdata/removed")
	whole := &strings.Builder{}
	must.Do(t, diff.Markdown(whole, r, 0))
	for _, most := range []int{whole.Len(), 4000, 3000, 600, 50} {
		b := &strings.Builder{}
		must.Do(t, diff.Markdown(b, r, most))
		got := b.String()
		if len(got) > most || !strings.HasPrefix(got, diff.Mark[:min(20, most)]) {
			t.Errorf("%d bytes of at most %d:\n%s", len(got), most, got)
		}
		if most > 600 && strings.Count(got, "<details>")+strings.Count(got, "more, about") == 0 || strings.Count(got, "<details>") != strings.Count(got, "</details>") {
			t.Errorf("in %d bytes something is missing silently:\n%s", most, got)
		}
	}
}

// TestNamesMoveNothing: what other people chose moves no cursor, closes no block and calls nobody.
func TestNamesMoveNothing(t *testing.T) {
	evil := "a\x1b[2J```\n</details><script>@everyone\u202e"
	r := &diff.Result{From: evil, To: evil, Summary: diff.Summary{Changed: 1}, Warnings: []string{evil}, Groups: []diff.Group{{
		Clusters: []string{evil}, Where: evil, State: diff.Stays, Changes: []diff.Change{{Kind: diff.Changed, Set: evil, Addon: evil, Reason: evil,
			Fields: []diff.Field{{Path: evil, Op: "Changed", Old: []byte(`"` + "```\u202e" + `"`), New: []byte("1"), Layer: evil}}}}}}}
	for name, text := range outputs(t, r) {
		if strings.ContainsAny(text, "\x1b\u202e") && name != "want.json" {
			t.Errorf("%s has what moves a cursor: %q", name, text)
		}
		if name == "want.md" && (strings.Contains(text, "<script>@") && !strings.Contains(text, "````diff") || strings.Contains(text, "**@everyone")) {
			t.Errorf("%s lets a name out of its block: %s", name, text)
		}
	}
}

// TestLongLines: one long line leaves controller for all others, and for the count of what does not fit.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("long ", 4000)
	r := &diff.Result{From: "main", To: "fleet/", Summary: diff.Summary{Changed: 3}, Warnings: []string{long, "the second"}, Notes: []string{long}}
	for _, name := range []string{long, "b", "c"} {
		r.Groups = append(r.Groups, diff.Group{Clusters: []string{name}, State: diff.Stays, Changes: []diff.Change{{Kind: diff.Changed, Set: "s", Addon: "a", Reason: long}}})
	}
	for _, most := range []int{6000, 2000, 1000} {
		b := &strings.Builder{}
		must.Do(t, diff.Markdown(b, r, most))
		got := b.String()
		if len(got) > most || most > 2000 && !strings.Contains(got, "the second") || !(strings.Contains(got, "cluster b") && strings.Contains(got, "cluster c")) && !strings.Contains(got, "more section") && !strings.Contains(got, "sections") {
			t.Errorf("at most %d bytes:\n%s", most, got)
		}
	}
}

// TestProse: quotes stay quotes, and nothing is struck out or becomes a link.
func TestProse(t *testing.T) {
	b := &strings.Builder{}
	must.Do(t, diff.Markdown(b, &diff.Result{Warnings: []string{`"a" ~~b~~ c\*d https://example.com www.example.com #1`}}, 0))
	want := "- &#34;a&#34; \\~\\~b\\~\\~ c\\\\\\*d https:\u200b//example.com www\u200b.example.com \\#1\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("want %q in %q", want, b.String())
	}
}

// TestColoured: also in colour, what other people chose is made visible.
func TestColoured(t *testing.T) {
	evil := "a\x1b[2Jb"
	b := &strings.Builder{}
	must.Do(t, diff.Text(b, &diff.Result{From: evil, To: evil, Notes: []string{evil}}, diff.TextOptions{Colour: true}))
	if strings.Contains(b.String(), "\x1b[2J") {
		t.Errorf("%q clears the terminal", b.String())
	}
}
