// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// Mark is at the beginning of the Markdown, by which a workflow finds the comment that it posted before.
const Mark = "<!-- chandler diff -->"

// LeastLength is the shortest Markdown that is of use, in bytes: it has the mark, and a summary.
const LeastLength = 1000

// Markdown writes a result for a pull request, in at most so many bytes; 0 is without a limit. What counts most comes first, and what
// does not fit is counted.
func Markdown(w io.Writer, r *Result, most int) error {
	var out strings.Builder
	const room = 200 // for the last line, and for its numbers
	head := Mark + "\n" + summary(r)
	if most > room {
		head = cut(head, most-room)
	}
	out.WriteString(head)
	left, clusters := 0, 0
	for _, s := range sections(r) {
		if most > 0 && out.Len()+len(s.text)+room > most {
			left, clusters = left+1, clusters+s.clusters
			continue
		}
		out.WriteString("\n" + s.text)
	}
	if left > 0 {
		fmt.Fprintf(&out, "\n… and %s more, about %s: they do not fit here. `chandler diff --output text --full` shows them.\n",
			status.Count(left, "section"), status.Count(clusters, "cluster"))
	}
	if _, err := io.WriteString(w, cut(out.String(), most)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// cut returns the beginning of a text, in at most so many bytes.
func cut(s string, most int) string {
	const more = "…\n"
	if most <= 0 || len(s) <= most {
		return s
	}
	at := max(most-len(more), 0)
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + more
}

// section is a part of the Markdown that is there as a whole or not at all.
type section struct {
	text     string
	clusters int
}

// summary says how much happens, and what needs attention.
func summary(r *Result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n\n`%s` → `%s`\n", prose(r.headline()), code(r.From), code(r.To))
	if fleet := r.fleet(); fleet != "" {
		fmt.Fprintf(&out, "\n%s\n", prose(fleet))
	}
	if len(r.Summary.Addons) > 0 {
		out.WriteString("\n| what | add-ons on clusters |\n|---|---|\n")
		for _, k := range kinds {
			if n := r.Summary.Addons[k]; n > 0 {
				fmt.Fprintf(&out, "| %s | %d |\n", words[k], n)
			}
		}
	}
	listed := func(title string, n int, line func(int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(&out, "\n**%s**\n\n", title)
		for i := range min(n, maxListed) {
			fmt.Fprintf(&out, "- %s\n", prose(line(i)))
		}
		if n > maxListed {
			fmt.Fprintf(&out, "- … and %d more\n", n-maxListed)
		}
	}
	listed("Could not be compared", len(r.Problems), func(i int) string { return r.Problems[i].line() })
	listed("Settings", len(r.Settings), func(i int) string { return r.Settings[i] })
	listed("Warnings", len(r.Warnings), func(i int) string { return r.Warnings[i] })
	listed("Notes", len(r.Notes), func(i int) string { return r.Notes[i] })
	for i := range r.Guards {
		g := &r.Guards[i]
		fmt.Fprintf(&out, "\n> **%s.** First: %s. If all of it is intended, when it is held: `%s`\n", prose(g.title()),
			prose(strings.Join(g.Sample, ", ")), code(g.Approve))
	}
	return out.String()
}

// maxListed is how many lines of one list the summary has.
const maxListed = 10

func sections(r *Result) []section {
	var out []section
	for i := range r.Rollouts {
		o := &r.Rollouts[i]
		var lines []string
		for j := range o.Waves {
			lines = append(lines, o.Waves[j].line())
		}
		out = append(out, section{details(o.title(), append(lines, o.Notes...)), 0})
	}
	for _, p := range r.paragraphs() {
		var lines []string
		for i := range p.changes {
			lines = append(lines, markdownChange(&p.changes[i])...)
		}
		out = append(out, section{details(p.title+": "+brief(p.changes), lines), p.clusters})
	}
	for i := range r.Tried {
		t := &r.Tried[i]
		var lines []string
		for j := range t.Objects {
			lines = append(lines, markdownTried(&t.Objects[j])...)
		}
		out = append(out, section{details(t.title(), lines), t.Clusters})
	}
	return out
}

// brief says in a few words what changes.
func brief(changes []Change) string {
	var out []string
	for i := range changes[:min(few, len(changes))] {
		out = append(out, changes[i].Addon+" "+words[changes[i].Kind])
	}
	if n := len(changes) - few; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}

// markdownChange writes a change in the colours that a diff has.
func markdownChange(c *Change) []string {
	head := fmt.Sprintf("%s %s %s", signs[c.Kind], words[c.Kind], c.subject())
	if more := c.explained(); more != "" {
		head += ": " + more
	}
	lines := append([]string{strings.Replace(head, "~", "#", 1)}, markdownFields("    ", c.Fields)...)
	return append(lines, markdownInside(c.Inside)...)
}

func markdownFields(indent string, fields []Field) []string {
	var lines []string
	for i := range fields {
		f := &fields[i]
		by := ""
		if b := f.blame(); b != "" {
			by = "   # " + b
		}
		old, next := f.values(maxMarkdownValue)
		if f.Hidden {
			old, next = notShown, notShown
		}
		if f.Op != "Added" {
			lines = append(lines, fmt.Sprintf("- %s%s: %s", indent, f.Path, old))
		}
		if f.Op != "Removed" {
			lines = append(lines, fmt.Sprintf("+ %s%s: %s%s", indent, f.Path, next, by))
		}
	}
	return lines
}

// How many characters of a value, of a title and of a line there are at the most: a long one leaves no room for all others.
const (
	maxMarkdownValue = 200
	maxTitle         = 300
	maxLine          = 600
)

var ticks = regexp.MustCompile("`+")

// details is a part that a reader unfolds, if there is more than its title.
func details(title string, lines []string) string {
	if len(lines) == 0 {
		return "- " + prose(excerpt.Cut(title, maxTitle)) + "\n"
	}
	fence := "```"
	for _, l := range lines {
		for _, t := range ticks.FindAllString(l, -1) {
			fence = fence + strings.Repeat("`", max(0, len(t)+1-len(fence)))
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "<details><summary>%s</summary>\n\n%sdiff\n", html.EscapeString(excerpt.Cut(excerpt.Line(title), maxTitle)), fence)
	for _, l := range lines {
		out.WriteString(excerpt.Cut(excerpt.Visible(l), maxLine) + "\n")
	}
	fmt.Fprintf(&out, "%s\n</details>\n", fence)
	return out.String()
}

// prose makes a text that other people wrote safe in Markdown: one line, without markup and without a name that is called.
func prose(s string) string {
	return html.EscapeString(markup.Replace(excerpt.Cut(excerpt.Line(s), maxLine)))
}

// markup is escaped before HTML is: the entities of HTML have a # of their own. What is invisible keeps a name from being called, and an
// address from becoming a link.
var markup = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`,
	"#", `\#`, "@", "@\u200b", "://", ":\u200b//", "www.", "www\u200b.")

// code makes a text safe between backticks.
func code(s string) string { return strings.ReplaceAll(excerpt.Line(s), "`", "'") }
