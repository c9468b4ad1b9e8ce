// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// words are how a report names a kind, and signs how it marks it.
var words = map[Kind]string{
	Removed: "REMOVED", Reinstalled: "REINSTALLED", Orphaned: "orphaned", Winner: "another set wins", Moved: "moved", Adopted: "adopted",
	New: "new", Changed: "changed", Content: "other content", Waits: "waits", NotWon: "not delivered",
}

var signs = map[Kind]string{Removed: "-", Reinstalled: "!", Orphaned: "-", Winner: "!", Moved: "~", Adopted: "+", New: "+", Changed: "~",
	Content: "~", Waits: "!", NotWon: "!"}

// verb is one of as many as n.
func verb(n int, plural string) string {
	if n == 1 {
		return plural + "s"
	}
	return plural
}

// headline says in one line what happens.
func (r *Result) headline() string {
	text := fmt.Sprintf("%d of %s %s", r.Summary.Changed, status.Count(r.Fleet.Clusters, "cluster"), verb(r.Summary.Changed, "change"))
	if len(r.Groups) == 0 {
		text = fmt.Sprintf("No changes on %s", status.Count(r.Fleet.Clusters, "cluster"))
	}
	if len(r.Settings) > 0 {
		text += ", " + status.Count(len(r.Settings), "setting") + " changed"
	}
	if len(r.Problems) > 0 {
		text += ", as far as it could be compared"
	}
	return text
}

// tally counts add-ons by what happens to them.
func (r *Result) tally() string {
	var out []string
	for _, k := range kinds {
		if n := r.Summary.Addons[k]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, words[k]))
		}
	}
	return strings.Join(out, ", ")
}

// fleet says how old what is known of the clusters is; "" if it is not an export.
func (r *Result) fleet() string {
	if r.Fleet.Snapshot == nil {
		return ""
	}
	return fmt.Sprintf("The fleet was exported at %s, %s ago.", r.Fleet.Snapshot.Format(time.RFC3339), ago(r.Fleet.Age))
}

func ago(age int64) string {
	switch d := time.Duration(age) * time.Second; {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	case d >= time.Hour:
		return excerpt.Duration(d.Truncate(time.Hour))
	case d >= time.Minute:
		return excerpt.Duration(d.Truncate(time.Minute))
	default:
		return excerpt.Duration(d)
	}
}

// title says which clusters a group has.
func (g *Group) title() string {
	text := named(g.Clusters, g.Where)
	switch g.State {
	case Joins:
		text += ", new in the fleet"
	case Leaves:
		text += ", gone from the fleet"
	}
	return text
}

// subject says what a change is about.
func (c *Change) subject() string {
	addon := c.Addon
	if c.CRDs {
		addon = "the CustomResourceDefinitions of " + addon
	}
	text := fmt.Sprintf("%s (%s)", addon, c.Set)
	from := c.FromSet
	if c.FromAddon != "" {
		from = strings.TrimSpace(c.FromAddon + " " + parens(from))
	}
	if from != "" {
		text += ", before " + from
	}
	return text
}

func parens(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// explained is what is said after the subject.
func (c *Change) explained() string {
	var parts []string
	for _, s := range []string{c.What, c.Reason} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "; ")
}

// blame says which layer a change of a field is from.
func (f *Field) blame() string {
	switch {
	case f.Layer == "":
		return ""
	case f.Was != "":
		return fmt.Sprintf("%s; was: %s", f.Layer, f.Was)
	}
	return f.Layer
}

// values returns a field's values as people write them, each in at most n characters.
func (f *Field) values(n int) (old, next string) {
	old, next = plain(f.Old), plain(f.New)
	if cut := common(old, next); f.Op == "Changed" && max(len(old), len(next)) > n && cut > n/4 {
		old, next = "…"+old[cut-n/8:], "…"+next[cut-n/8:]
	}
	return excerpt.Cut(old, n), excerpt.Cut(next, n)
}

// common returns how many bytes two texts begin with together, up to the beginning of a character that can be cut before.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && a[n] < 0x80 {
		n++
	}
	return n
}

// plain writes a value without the quotes that it does not need.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && s != "" && !strings.ContainsAny(s, " \t\n\r\"") {
		if _, err := strconv.ParseFloat(s, 64); err != nil && s != "true" && s != "false" && s != "null" {
			return s
		}
	}
	return string(raw)
}

// shape is a group without the values of its fields.
func (g *Group) shape() string {
	changes := make([]Change, len(g.Changes))
	for i, c := range g.Changes {
		fields := make([]Field, len(c.Fields))
		for j, f := range c.Fields {
			fields[j] = f
			fields[j].Old, fields[j].New = nil, nil
		}
		c.Fields, c.Reason, c.What, c.Inside = fields, "", "", c.Inside.shape()
		changes[i] = c
	}
	return string(g.State) + text(changes)
}

// paragraph is a group as people read it: with those that differ from it only in values, and what it has beside another one.
type paragraph struct {
	title   string
	changes []Change
	// clusters is how many clusters it is about.
	clusters int
}

// folds returns the groups, the biggest first; those that differ in values alone are together, if they are many.
func (r *Result) folds() [][]*Group {
	var out [][]*Group
	shapes := map[string][]*Group{}
	for i := range r.Groups {
		s := r.Groups[i].shape()
		shapes[s] = append(shapes[s], &r.Groups[i])
	}
	told := map[string]bool{}
	for i := range r.Groups {
		g := &r.Groups[i]
		s := g.shape()
		switch {
		case told[s]:
		case len(shapes[s]) > few:
			told[s] = true
			out = append(out, shapes[s])
		default:
			out = append(out, []*Group{g})
		}
	}
	return out
}

// paragraphs returns the groups, the biggest first, numbered where a later one says that it is like another one.
func (r *Result) paragraphs() []paragraph {
	var out []paragraph
	var before []*Group
	for _, alike := range r.folds() {
		g := alike[0]
		p := paragraph{title: g.title(), changes: g.Changes, clusters: len(g.Clusters)}
		if len(alike) > 1 {
			p.clusters = 0
			for _, a := range alike {
				p.clusters += len(a.Clusters)
			}
			p.title = fmt.Sprintf("%s with the same changes, but in %d ways with other values; here those of %s",
				status.Count(p.clusters, "cluster"), len(alike), g.title())
		} else if base, also := g.beside(before); base != nil {
			p.title, p.changes = fmt.Sprintf("%s: what is said of %s, and also", g.title(), base.title()), also
		}
		before = append(before, g)
		out = append(out, p)
	}
	return out
}

// compared is with how many other groups a group is compared.
const compared = 20

// beside returns a bigger group all of whose changes a group has, and what it has beside them; nil if there is none.
func (g *Group) beside(bigger []*Group) (base *Group, also []Change) {
	for _, b := range bigger[:min(compared, len(bigger))] {
		if b.State != g.State || base != nil && weight(b.Changes) <= weight(base.Changes) {
			continue
		}
		if rest, ok := without(g.Changes, b.Changes); ok {
			base, also = b, rest
		}
	}
	return base, also
}

// without returns what some changes have beside others, if all of the others are among them.
func without(changes, others []Change) (rest []Change, all bool) {
	there := map[string]*Change{}
	for i := range others {
		there[others[i].key()] = &others[i]
	}
	for i := range changes {
		base := there[changes[i].key()]
		if base == nil {
			rest = append(rest, changes[i])
			continue
		}
		more, all := beside(changes[i].Fields, base.Fields)
		inside, within := changes[i].Inside.beside(base.Inside)
		if !all || !within {
			return nil, false
		}
		if len(more) > 0 || inside != nil {
			one := changes[i]
			one.Fields, one.Inside = more, inside
			rest = append(rest, one)
		}
		delete(there, changes[i].key())
	}
	return rest, len(there) == 0
}

// beside returns the fields that are not among others, if all of the others are among them.
func beside(fields, others []Field) (rest []Field, all bool) {
	there := map[string]bool{}
	for i := range others {
		there[text(others[i])] = true
	}
	for i := range fields {
		if k := text(fields[i]); there[k] {
			delete(there, k)
		} else {
			rest = append(rest, fields[i])
		}
	}
	return rest, len(there) == 0
}

// key tells the changes of a cluster apart, whatever their fields.
func (c *Change) key() string {
	one := *c
	one.Fields, one.Inside = nil, nil
	return text(one)
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

func weight(changes []Change) int {
	n := len(changes)
	for i := range changes {
		n += len(changes[i].Fields)
		if in := changes[i].Inside; in != nil {
			n += len(in.Objects)
		}
	}
	return n
}
