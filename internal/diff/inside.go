// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/status"
)

// objectWords are how a report names what happens to an object, and objectSigns how it marks it.
var objectWords = map[ObjectKind]string{
	ObjectRemoved: "removed", ObjectRemade: "made anew", ObjectCreated: "created", ObjectChanged: "changed", ObjectKept: "kept",
}

var objectSigns = map[ObjectKind]string{ObjectRemoved: "-", ObjectRemade: "!", ObjectCreated: "+", ObjectChanged: "~", ObjectKept: " "}

// title counts the objects by what happens to them.
func (in *Inside) title() string {
	if in.Same {
		return "on the cluster: nothing changes; it is when and how Flux applies it"
	}
	var parts []string
	for _, k := range objectKinds {
		n := 0
		for i := range in.Objects {
			if in.Objects[i].Kind == k {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, objectWords[k]))
		}
	}
	switch {
	case len(parts) == 0:
		parts = []string{"nothing changes"}
	case in.Unchanged > 0:
		parts = append(parts, fmt.Sprintf("%d unchanged", in.Unchanged))
	}
	text := "on the cluster: " + strings.Join(parts, ", ")
	if len(in.By) > 0 {
		text += "  [" + strings.Join(in.By, "; ") + "]"
	}
	return text
}

// subject says which object it is.
func (o *ObjectChange) subject() string {
	text := o.Object + " " + o.Name
	if o.Namespace != "" {
		text = fmt.Sprintf("%s %s/%s", o.Object, o.Namespace, o.Name)
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// alike returns the fields that many objects have in common, with how many that are, and the objects with what is left of theirs: a new
// version of a chart changes the same label everywhere.
func (in *Inside) alike() (fields []Field, counts []int, rest []ObjectChange) {
	times := map[string]int{}
	for i := range in.Objects {
		for _, f := range in.Objects[i].Fields {
			times[text(f)]++
		}
	}
	told := map[string]bool{}
	for _, o := range in.Objects {
		var own []Field
		for _, f := range o.Fields {
			k := text(f)
			if times[k] <= few {
				own = append(own, f)
			} else if !told[k] {
				told[k] = true
				fields, counts = append(fields, f), append(counts, times[k])
			}
		}
		if len(own) > 0 || len(o.Fields) == 0 || o.More > 0 || o.Kind == ObjectRemade {
			o.Fields = own
			rest = append(rest, o)
		}
	}
	return fields, counts, rest
}

// How many objects of a change a folded text and Markdown show.
const (
	maxObjects         = 10
	maxMarkdownObjects = 60
)

func (t *terminal) inside(in *Inside) {
	if in == nil {
		return
	}
	t.line("      %s", t.paint(bold, in.title()))
	for _, n := range in.Notes {
		t.line("        note: %s", t.paint("0", n))
	}
	objects := in.Objects
	if !t.All {
		fields, counts, rest := in.alike()
		for i := range fields {
			t.line("        %s %s:", t.paint(yellow, "~"), status.Count(counts[i], "object"))
			t.fieldsAt("            ", fields[i:i+1])
		}
		objects = rest
	}
	n := t.limit(len(objects), maxObjects)
	for i := range objects[:n] {
		o := &objects[i]
		sign := objectSigns[o.Kind]
		t.line("        %s %s", t.paint(colours[sign], sign), t.paint("0", o.told()))
		t.fieldsAt("            ", o.Fields)
		if o.More > 0 {
			t.line("            … and %d more fields, which are not kept", o.More)
		}
	}
	if len(objects) > n {
		t.line("        … and %d more objects (--full shows them)", len(objects)-n)
	}
}

// told is what a report says of an object beside its sign.
func (o *ObjectChange) told() string {
	switch o.Kind {
	case ObjectRemade, ObjectKept:
		return objectWords[o.Kind] + " " + o.subject()
	}
	return o.subject()
}

// markdownInside writes what a change does to objects.
func markdownInside(in *Inside) []string {
	if in == nil {
		return nil
	}
	lines := []string{"#     " + in.title()}
	for _, n := range in.Notes {
		lines = append(lines, "#       note: "+n)
	}
	fields, counts, objects := in.alike()
	for i := range fields {
		lines = append(lines, "#       "+status.Count(counts[i], "object")+":")
		lines = append(lines, markdownFields("          ", fields[i:i+1])...)
	}
	n := min(len(objects), maxMarkdownObjects)
	for i := range objects[:n] {
		o := &objects[i]
		sign := strings.Replace(objectSigns[o.Kind], "~", "#", 1)
		lines = append(lines, sign+"       "+o.told())
		lines = append(lines, markdownFields("          ", o.Fields)...)
	}
	if len(objects) > n {
		lines = append(lines, fmt.Sprintf("        … and %d more objects", len(objects)-n))
	}
	return lines
}

// shape is what it does without the values of fields.
func (in *Inside) shape() *Inside {
	if in == nil {
		return nil
	}
	out := &Inside{By: in.By, Same: in.Same, Objects: slices.Clone(in.Objects)}
	for i := range out.Objects {
		fields := slices.Clone(out.Objects[i].Fields)
		for j := range fields {
			fields[j].Old, fields[j].New = nil, nil
		}
		out.Objects[i].Fields = fields
	}
	return out
}

// beside returns what it does beside another one, if it does all of that; nil if it does no more.
func (in *Inside) beside(base *Inside) (more *Inside, all bool) {
	if in == nil || base == nil {
		return nil, in == base
	}
	there := map[string]*ObjectChange{}
	for i := range base.Objects {
		there[base.Objects[i].key()] = &base.Objects[i]
	}
	out := &Inside{By: in.By, Same: in.Same, Unchanged: in.Unchanged, Objects: []ObjectChange{}}
	if own := slices.DeleteFunc(slices.Clone(in.By), func(by string) bool { return slices.Contains(base.By, by) }); len(own) > 0 {
		out.By = own
	}
	for _, o := range in.Objects {
		b := there[o.key()]
		if b == nil {
			out.Objects = append(out.Objects, o)
			continue
		}
		delete(there, o.key())
		rest, whole := beside(o.Fields, b.Fields)
		if !whole {
			return nil, false
		}
		if len(rest) > 0 {
			o.Fields = rest
			out.Objects = append(out.Objects, o)
		}
	}
	for _, n := range in.Notes {
		if !slices.Contains(base.Notes, n) {
			out.Notes = append(out.Notes, n)
		}
	}
	if len(there) > 0 {
		return nil, false
	}
	if len(out.Objects)+len(out.Notes) == 0 {
		return nil, true
	}
	return out, true
}

// key tells the objects of a change apart, whatever their fields.
func (o *ObjectChange) key() string {
	one := *o
	one.Fields, one.More = nil, 0
	return text(one)
}
