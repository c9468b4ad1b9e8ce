// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// TextOptions say how a text looks.
type TextOptions struct {
	// Colour is for a terminal.
	Colour bool
	// All shows every group, change and field, in full. Otherwise the long tail is folded.
	All bool
}

// How much of a folded text is shown: groups, changes of a group, fields of a change, and characters of a value.
const (
	maxGroups  = 20
	maxChanges = 20
	maxFields  = 12
	maxValue   = 60
)

// Text writes a result for a terminal.
func Text(w io.Writer, r *Result, o TextOptions) error {
	t := &terminal{out: bufio.NewWriter(w), TextOptions: o}
	t.line("%s → %s", t.paint("0", r.From), t.paint("0", r.To))
	if fleet := r.fleet(); fleet != "" {
		t.line("%s", fleet)
	}
	t.line("%s", t.paint(bold, r.headline()))
	if tally := r.tally(); tally != "" {
		t.line("Add-ons on clusters: %s.", tally)
	}
	for i := range r.Problems {
		p := &r.Problems[i]
		t.line("%s", t.paint(red, "error: "+p.line()))
	}
	for _, s := range r.Warnings {
		t.line("%s", t.paint(yellow, "warning: "+s))
	}
	for _, s := range r.Notes {
		t.line("note: %s", t.paint("0", s))
	}
	t.settings(r)
	t.groups(r)
	t.tried(r)
	t.guards(r)
	t.rollouts(r)
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

type terminal struct {
	out *bufio.Writer // keeps the first error, for Flush
	TextOptions
}

const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint makes a text safe for a terminal, and gives it a colour.
func (t *terminal) paint(colour, s string) string {
	if s = excerpt.Visible(s); !t.Colour {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// line writes a line. What other people chose among the arguments is made safe by paint.
func (t *terminal) line(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !t.Colour {
		s = excerpt.Visible(s)
	}
	_, _ = t.out.WriteString(strings.TrimRight(s, " ") + "\n")
}

func (t *terminal) limit(n, most int) int {
	if t.All {
		return n
	}
	return min(n, most)
}

var colours = map[string]string{"-": red, "!": red, "+": green, "~": yellow}

func (t *terminal) groups(r *Result) {
	all := r.paragraphs()
	n := t.limit(len(all), maxGroups)
	for _, p := range all[:n] {
		t.line("")
		t.line("%s", t.paint(bold, p.title))
		t.changes(p.changes)
	}
	if rest := all[n:]; len(rest) > 0 {
		clusters := 0
		for _, p := range rest {
			clusters += p.clusters
		}
		t.line("")
		t.line("… and %d more groups with %s (--full shows them)", len(rest), status.Count(clusters, "cluster"))
	}
}

func (t *terminal) changes(changes []Change) {
	n := t.limit(len(changes), maxChanges)
	for i := range changes[:n] {
		c := &changes[i]
		sign := signs[c.Kind]
		text := c.subject()
		if more := c.explained(); more != "" {
			text += ": " + more
		}
		t.line("  %s %s", t.paint(colours[sign], sign+" "+words[c.Kind]), t.paint("0", text))
		t.fields(c.Fields)
		t.inside(c.Inside)
	}
	if len(changes) > n {
		t.line("  … and %d more", len(changes)-n)
	}
}

func (t *terminal) settings(r *Result) {
	n := t.limit(len(r.Settings), maxGroups)
	for _, s := range r.Settings[:n] {
		t.line("%s %s", t.paint(yellow, "~"), t.paint("0", s))
	}
	if len(r.Settings) > n {
		t.line("… and %d more settings", len(r.Settings)-n)
	}
}

func (t *terminal) fields(fields []Field) { t.fieldsAt("      ", fields) }

func (t *terminal) fieldsAt(indent string, fields []Field) {
	n := t.limit(len(fields), maxFields)
	for i := range fields[:n] {
		f := &fields[i]
		most := maxValue
		if t.All {
			most = 1 << 20
		}
		old, next := f.values(most)
		var is string
		switch {
		case f.Hidden:
			is = map[string]string{"Added": "added", "Removed": "removed", "Changed": "changed"}[f.Op] + " (not shown)"
		case f.Op == "Added":
			is = t.paint(green, next) + " (new)"
		case f.Op == "Removed":
			is = t.paint(red, old) + " (gone)"
		default:
			is = t.paint(red, old) + " → " + t.paint(green, next)
		}
		by := ""
		if b := f.blame(); b != "" {
			by = "  " + t.paint(cyan, "["+b+"]")
		}
		t.line("%s%s: %s%s", indent, t.paint("0", f.Path), is, by)
	}
	if len(fields) > n {
		t.line("%s… and %d more fields", indent, len(fields)-n)
	}
}

func (t *terminal) guards(r *Result) {
	for i := range r.Guards {
		g := &r.Guards[i]
		t.line("")
		t.line("%s", t.paint(red, g.title()))
		t.line("  first: %s", t.paint("0", strings.Join(g.Sample, ", ")))
		t.line("  if all of it is intended, when it is held: %s", t.paint("0", g.Approve))
	}
}

func (t *terminal) rollouts(r *Result) {
	for i := range r.Rollouts {
		o := &r.Rollouts[i]
		t.line("")
		t.line("%s", t.paint(bold, o.title()))
		for j := range o.Waves {
			t.line("  %s", t.paint("0", o.Waves[j].line()))
		}
		for _, n := range o.Notes {
			t.line("  %s", t.paint("0", n))
		}
	}
}

// title says how much the guard of a set holds.
func (g *Guard) title() string {
	text := fmt.Sprintf("The removal guard of AddonSet %s would hold what %s would lose", g.Set, status.Count(g.Held, "cluster"))
	if g.Goes > 0 {
		text += fmt.Sprintf("; on %s it goes without approval within %s", status.Count(g.Goes, "other cluster"), g.Window)
	}
	return text
}

// title says how a revision is rolled out.
func (o *Rollout) title() string {
	text := fmt.Sprintf("AddonSet %s gets a new revision, ", o.Set)
	switch {
	case o.AtOnce:
		text += "on all clusters at once"
	case o.Soak > 0:
		text += fmt.Sprintf("in %s; the soaks before the last one add up to %s", status.Count(len(o.Waves), "wave"), seconds(o.Soak))
	default:
		text += fmt.Sprintf("in %s without a soak", status.Count(len(o.Waves), "wave"))
	}
	return text
}

// line says what a wave has.
func (w *Wave) line() string {
	text := fmt.Sprintf("wave %s: %s (%s)", w.Name, status.Count(len(w.Clusters), "cluster"), list(w.Clusters))
	if w.AtOnce < len(w.Clusters) {
		text += fmt.Sprintf(", %d at once", w.AtOnce)
	}
	if w.Soak > 0 {
		text += ", soaks " + seconds(w.Soak)
	}
	if w.Approval {
		text += ", waits for approval"
	}
	if w.Same > 0 {
		text += fmt.Sprintf("; on %d more nothing changes", w.Same)
	}
	return text
}

// line says what could not be compared, and where.
func (p *Problem) line() string {
	text := p.Text
	if len(p.Clusters) > 0 {
		text = named(p.Clusters, p.Where) + ": " + text
	}
	switch p.Side {
	case "Old":
		text += " (before, so it is not known what is there)"
	case "Both":
		text += " (before and after)"
	}
	return text
}

// YAML writes a result as JSON does, as YAML.
func YAML(w io.Writer, r *Result) error {
	raw, err := yaml.Marshal(r)
	if err != nil {
		return fmt.Errorf("write as YAML: %w", err)
	}
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// JSON writes a result by the schema in docs/diff.schema.json.
func JSON(w io.Writer, r *Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
