// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/jsontype"
	"github.com/chandler-hub/chandler/internal/metakey"
)

// Metadata are the labels and annotations of their own that people give to what the hub makes of a set, as they have written them. No
// revision has them: nothing that runs depends on them.
type Metadata struct {
	// Set are those of the whole set, and Addons those of its add-ons, which win.
	Set    *hubv1.OwnMetadata           `json:"set,omitempty"`
	Addons map[string]hubv1.OwnMetadata `json:"addons,omitempty"`
}

// MetadataOf returns what a set says of labels and annotations.
func MetadataOf(spec *hubv1.AddonSetSpec) *Metadata {
	out := &Metadata{Set: spec.Metadata}
	for i := range spec.Addons {
		if a := &spec.Addons[i]; a.Metadata != nil {
			if out.Addons == nil {
				out.Addons = map[string]hubv1.OwnMetadata{}
			}
			out.Addons[a.Name] = *a.Metadata
		}
	}
	return out
}

// OwnEntry is one label or annotation.
type OwnEntry struct {
	// Addon whose it is; empty if it is the whole set's.
	Addon string
	Label bool
	Key   string
	// Text may hold expressions.
	Text string
}

// Path is where it is written, in the set or the add-on.
func (e *OwnEntry) Path() string {
	if e.Label {
		return "metadata.labels[" + e.Key + "]"
	}
	return "metadata.annotations[" + e.Key + "]"
}

// Entries returns all labels and annotations, those of the set first.
func (m *Metadata) Entries() []OwnEntry {
	if m == nil {
		return nil
	}
	var out []OwnEntry
	add := func(addon string, of *hubv1.OwnMetadata) {
		for _, k := range slices.Sorted(maps.Keys(of.Labels)) {
			out = append(out, OwnEntry{addon, true, k, of.Labels[k]})
		}
		for _, k := range slices.Sorted(maps.Keys(of.Annotations)) {
			out = append(out, OwnEntry{addon, false, k, of.Annotations[k]})
		}
	}
	if m.Set != nil {
		add("", m.Set)
	}
	for _, addon := range slices.Sorted(maps.Keys(m.Addons)) {
		of := m.Addons[addon]
		add(addon, &of)
	}
	return out
}

// MayReadOrigin returns whether an expression may read the origin. It does not compile any.
func (m *Metadata) MayReadOrigin() bool {
	return slices.ContainsFunc(m.Entries(), func(e OwnEntry) bool { return expression.Has(e.Text) && strings.Contains(e.Text, "origin") })
}

// The hub evaluates labels and annotations of the set as it is, also of one that does not compile, so the limits are those of Bounded.
const (
	maxOwnExpressions = 200
	maxOwnText        = 16 << 10
	// maxOwnValue is how long an annotation may be. All that a set and an add-on may have fit Kubernetes' limit.
	maxOwnValue = 2 << 10
)

// Bounded returns the entries that the hub evaluates, and why it leaves out others; "" if it evaluates all.
func (m *Metadata) Bounded() (entries []OwnEntry, over string) {
	n, text := 0, 0
	for _, e := range m.Entries() {
		if expression.Has(e.Text) {
			if n, text = n+1, text+len(e.Text); n > maxOwnExpressions || text > maxOwnText {
				over = fmt.Sprintf("more than %d labels and annotations of the set hold expressions, or these have more than %d KiB together; "+
					"write what repeats itself into variables, or split the set", maxOwnExpressions, maxOwnText>>10)
				continue
			}
		}
		entries = append(entries, e)
	}
	return entries, over
}

// Refuses says why a label or annotation may not have a value; "" if it may.
func (e *OwnEntry) Refuses(value any) string {
	text, ok := value.(string)
	switch {
	case !ok:
		return fmt.Sprintf("gives %s, and must give %s", jsontype.Of(value), jsontype.Text)
	case len(text) > maxOwnValue:
		return fmt.Sprintf("has %d bytes, and %d are the most; write a name or an address in place of the text", len(text), maxOwnValue)
	case !e.Label:
		return ""
	}
	if problems := content.IsLabelValue(text); len(problems) > 0 {
		return fmt.Sprintf("is %q, which no label can have: %s; write another value, or an annotation, which takes any text", text, problems[0])
	}
	return ""
}

// RefusesKey says why people may not write a label or annotation of that key; "" if they may.
func (e *OwnEntry) RefusesKey() string { return metakey.Refusal(e.Key, e.Label) }

// CheckMetadata returns Errors for labels and annotations that the hub does not write. It is apart from Compile for who compiles a
// revision, which has none.
func CheckMetadata(spec *hubv1.AddonSetSpec, author Author) error {
	c := compiler{author: author, p: &Program{templates: map[string]*expression.Template{}}}
	if c.metadata(spec); len(c.errs) > 0 {
		return c.errs
	}
	return nil
}

func (c *compiler) metadata(spec *hubv1.AddonSetSpec) {
	m := MetadataOf(spec)
	entries, over := m.Bounded()
	if len(entries) > 0 {
		c.p.Metadata = m
	}
	if over != "" {
		c.fail("", "", "metadata", "%s", over)
	}
	for i := range entries {
		e := &entries[i]
		if why := e.RefusesKey(); why != "" {
			c.fail("", e.Addon, e.Path(), "%s", why)
			continue
		}
		before := len(c.errs)
		c.scan("", e.Addon, e.Path(), e.Text, 0)
		if why := e.refusesNow(c.hole(e.Text)); why != "" && len(c.errs) == before {
			c.fail("", e.Addon, e.Path(), "%s", why)
		}
	}
}

// refusesNow is Refuses for what is known before there is a cluster: a value, or a Hole for what an expression gives.
func (e *OwnEntry) refusesNow(value any) string {
	hole, later := value.(fluxspec.Hole)
	if !later {
		return e.Refuses(value)
	}
	if _, text := hole.Sample.(string); text || hole.Sample == nil {
		return ""
	}
	const at = "value"
	return Blame(fluxspec.Problem{Path: at, Message: "must be " + jsontype.Text}, map[string]any{at: e.Text}, map[string]any{at: hole})
}
