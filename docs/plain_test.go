// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The most words of a sentence, a paragraph (or an item of a list) and a cell of a table.
const (
	maxSentence  = 40
	maxParagraph = 90
	maxCell      = 30
)

// notYet has the pages that are not as plain as that yet. There is none, and there should be none: a page on it that passes has to
// leave it.
var notYet []string

// generated has the pages that are made of comments in the code.
var generated = []string{"api.md"}

// removed has words that users met before anything explained them, and others in which nobody knows who does something. A mirror of images is
// one to everybody.
var removed = []struct {
	word   *regexp.Regexp
	unless *regexp.Regexp
	write  string
}{
	{regexp.MustCompile(`(?i)\brooms?\b`), nil, "controller"},
	{regexp.MustCompile(`(?i)\btwins?\b`), nil, "placeholder ServiceAccount"},
	{regexp.MustCompile(`(?i)\b(let|lets|letting) (it |them |all |these |that |an add-on |add-ons |its add-ons |the add-ons )?go\b`), nil, "orphan"},
	{regexp.MustCompile(`(?i)\bmirror(s|ed)?\b`), regexp.MustCompile(`(?i)image|registry|registries`), "kubeconfig copy"},
	{regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody)\b`), nil, "who it is: you, a tenant, a person, Flux"},
	{regexp.MustCompile(`(?i)\bbeside the set\b`), nil, "in the set's namespace"},
}

var (
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	sentence = regexp.MustCompile(`[.!?]['")*]*\s+`)
	item     = regexp.MustCompile(`^\s*([-*]|\d+\.) +`)
	image    = regexp.MustCompile(`!\[[^]]*\]\([^)]*\)`)
)

// plain returns what is too long, or has a removed word, on a page.
func plain(text string) []string {
	var out []string
	text = comment.ReplaceAllString(fence.ReplaceAllString(text, "\n"), "")
	text = marked.ReplaceAllString(image.ReplaceAllString(text, ""), "$1")
	var paragraph []string
	end := func() {
		whole := strings.Join(paragraph, " ")
		if paragraph = nil; whole == "" {
			return
		}
		if n := words(whole); n > maxParagraph {
			out = append(out, fmt.Sprintf("a paragraph of %d words: %s", n, begin(whole)))
		}
		for _, s := range sentence.Split(whole, -1) {
			if n := words(s); n > maxSentence {
				out = append(out, fmt.Sprintf("a sentence of %d words: %s", n, begin(s)))
			}
		}
		out = append(out, wrong(whole)...)
	}
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case strings.HasPrefix(strings.TrimSpace(line), "|"):
			end()
			for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
				if n := words(cell); n > maxCell {
					out = append(out, fmt.Sprintf("a cell of %d words: %s", n, begin(cell)))
				}
			}
			out = append(out, wrong(line)...)
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			end()
			out = append(out, wrong(line)...)
		case item.MatchString(line):
			end()
			paragraph = append(paragraph, item.ReplaceAllString(line, ""))
		default:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	end()
	return out
}

// words counts what a reader takes for one: a span of code is one word.
func words(s string) int { return len(strings.Fields(code.ReplaceAllString(s, "code"))) }

func begin(s string) string {
	f := strings.Fields(s)
	return strings.Join(f[:min(len(f), 9)], " ") + " …"
}

func wrong(s string) []string {
	var out []string
	bare := code.ReplaceAllString(s, "code")
	for _, r := range removed {
		if w := r.word.FindString(bare); w != "" && (r.unless == nil || !r.unless.MatchString(bare)) {
			out = append(out, fmt.Sprintf("%q (write %s): %s", w, r.write, begin(s)))
		}
	}
	return out
}

// TestPlain: no page, for users or for contributors, has a long sentence, a long paragraph, a full cell or a removed word.
func TestPlain(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "adr/*.md", "../CONTRIBUTING.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no pages (%v)", pattern, err)
		}
		files = append(files, found...)
	}
	for _, page := range append(files, "../README.md", "../examples/README.md") {
		if slices.Contains(generated, page) {
			continue
		}
		found := plain(read(t, page))
		switch listed := slices.Contains(notYet, page); {
		case listed && len(found) == 0:
			t.Errorf("%s is plain: take it off the list", page)
		case listed:
			t.Logf("%s: %d to do", page, len(found))
		default:
			for _, f := range found {
				t.Errorf("%s: %s", page, f)
			}
		}
	}
	for _, page := range notYet {
		if !slices.Contains(files, page) && page != "../README.md" && page != "../examples/README.md" {
			t.Errorf("there is no page %s", page)
		}
	}
}

// TestPlainFinds: what the check is to find, and what it is to leave alone.
func TestPlainFinds(t *testing.T) {
	long := strings.Repeat("word ", maxSentence)
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"Short":       {"The hub asks. The cluster answers.", 0},
		"Sentence":    {long + "more.", 1},
		"TwoHalves":   {strings.Repeat("word ", 30) + "end. " + strings.Repeat("word ", 30) + "end.", 0},
		"Paragraph":   {strings.Repeat("One two three. ", 31), 1},
		"Items":       {"- " + strings.Repeat("One two three. ", 20) + "\n- " + strings.Repeat("One two three. ", 20), 0},
		"Cell":        {"| a | " + strings.Repeat("word ", maxCell+1) + "|\n", 1},
		"Code":        {"```\n" + long + "room somebody\n```\n`the room of somebody`", 0},
		"Link":        {"See [the page](let-go-of-the-room.md).", 0},
		"Room":        {"The delivery room does it.", 1},
		"LetGo":       {"The hub lets its add-ons go.", 1},
		"Heading":     {"## Nobody knows", 1},
		"ImageMirror": {"Images come from a mirror.", 0},
	} {
		if got := plain(tc.text); len(got) != tc.want {
			t.Errorf("%s: %q, want %d", name, got, tc.want)
		}
	}
}
