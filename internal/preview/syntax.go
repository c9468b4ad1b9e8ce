// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/yamlfile"
)

// syntax reports a document that does not parse, by its line in the file.
func (p *parser) syntax(d yamlfile.Document, err error) {
	line, text := place(d, err)
	p.errs = append(p.errs, errors.New(oneLine(fmt.Sprintf("%s, line %d: %s", p.file, line, text))))
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// place returns on which line of the file a document goes wrong, counted from 1, and what is wrong there.
func place(d yamlfile.Document, err error) (line int, text string) {
	line = d.Line + 1
	text = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	if isTemplate(d.Raw, err) {
		before, _, _ := bytes.Cut(d.Raw, []byte("{{"))
		return line + bytes.Count(before, []byte("\n")),
			"holds {{ and }} outside of quotes: if it is a Helm template, render that first; if it is text for Helm, put it in quotes"
	}
	said := 0
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		said, _ = strconv.Atoi(text[m[2]:m[3]])
		text = text[m[1]:]
		line = d.Line + said
	}
	if strings.Contains(text, "already set in map") {
		return line, text // the parser counts right here, and the lines before are in order
	}
	lines := bytes.SplitAfter(d.Raw, []byte("\n"))
	// The parser may name a line after the last one, where something that is open should have ended.
	if at := min(culprit(lines, said, text), len(lines)-1); at >= 0 {
		line, text = d.Line+at+1, remedy(text, string(lines[at]))
	}
	return line, text
}

// inBrackets returns the index of the first line, from one on, with an expression that brackets around it do not bear; or that one. If
// brackets are open over several lines, the parser names one of the first.
func inBrackets(lines [][]byte, from int, text string) int {
	if !strings.Contains(text, "expected ','") {
		return from
	}
	for i := from; i < len(lines); i++ {
		if m := bare.FindSubmatch(lines[i]); m != nil && bytes.ContainsAny(m[1], "[]{},") {
			return i
		}
	}
	return from
}

// searched is how many lines of a document are tried, one after the other.
const searched = 3000

// culprit returns the index of the line with which a document stops to be YAML, or -1. The parser itself often names the line before, the
// end of the document, or the first line. said is the line that it names, counted from 1, or 0.
func culprit(lines [][]byte, said int, text string) int {
	if len(lines) > searched {
		return said - 1
	}
	open := strings.Contains(text, "end of stream") // a quote that is never closed: look for where it begins
	last := len(lines)
	if said > 0 && !open {
		last = min(last, said+1)
	}
	n := longest(lines, last)
	if open {
		return n
	}
	return inBrackets(lines, max(n, said-1), text) // within brackets over several lines, the parser knows better
}

// steps is into how many parts a document is cut to look where it stops to be YAML.
const steps = 16

// longest returns how many lines of a document, fewer than a number, are YAML by themselves. It tries some prefixes, the longest first,
// and goes on between the one that is YAML and those after it: to try all of them takes time that grows with the square of the lines.
// A part that ends in a text of several lines is no YAML, so it looks two parts further.
func longest(lines [][]byte, below int) int {
	good := 0 // nothing is YAML
	for bad := below; bad-good > 1; {
		step := max(1, (bad-good)/steps)
		n := bad - 1
		for ; n > good; n -= step {
			if _, err := yaml.YAMLToJSON(bytes.Join(lines[:n], nil)); err == nil {
				break
			}
		}
		found := max(n, good)
		if step == 1 {
			return found
		}
		good, bad = found, min(bad, found+2*step)
	}
	return good
}

// bare matches an expression that is a value, and not in quotes. A value begins after a colon, a dash, a comma or a bracket.
var bare = regexp.MustCompile(`(?:^\s*|[:,\[{-]\s+|[\[{])(<<.*?>>)`)

// remedy adds to the parser's words what to do, where the line shows it.
func remedy(text, line string) string {
	line = strings.TrimSpace(line)
	if m := bare.FindStringSubmatch(line); m != nil {
		return "the expression " + m[1] + " is not in quotes, and YAML takes signs in it, such as : ? [ { , and #, for its own; write " +
			quoted(m[1])
	}
	switch {
	case strings.Contains(text, "cannot start any token"):
		return text + ": put the value in quotes"
	case strings.Contains(text, "expected ','"):
		return text + ": close the bracket, or put a value that holds one of [ ] { } or a comma in quotes"
	case strings.Contains(text, "end of stream"):
		return "a quote or bracket is opened here, and never closed"
	case strings.Contains(text, "expected key"), strings.Contains(text, "expected '-' indicator"):
		return text + ": does this line begin in the same column as its neighbours?"
	case strings.Contains(text, "unknown anchor"):
		return text + ": a value that begins with * must be in quotes"
	case strings.Contains(text, "mapping values are not allowed"):
		return text + ": a value that holds \": \" must be in quotes"
	}
	return text
}

// quoted returns an expression as YAML reads it whole.
func quoted(expression string) string {
	switch {
	case !strings.Contains(expression, "'"):
		return "'" + expression + "'"
	case !strings.Contains(expression, `"`):
		return `"` + expression + `"`
	}
	return "'" + strings.ReplaceAll(expression, "'", "''") + "'"
}
