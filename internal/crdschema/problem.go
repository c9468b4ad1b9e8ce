// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/jsontype"
	"github.com/chandler-hub/chandler/internal/nearest"
)

// Problem is one mistake in an object.
type Problem struct {
	// Path is the field, such as spec.addons[0].name; empty for the object as a whole.
	Path string
	// Message says what is wrong and what to write instead.
	Message string
}

func (p Problem) String() string { return strings.TrimPrefix(p.Path+": "+p.Message, ": ") }

// unknown returns the message for a field that the schema does not have.
func (s *Schema) unknown(path string) string {
	out := "is not a field of " + article(s.kind.Kind)
	if strings.HasSuffix(s.kind.Group, ".fluxcd.io") {
		out = "is not a field of a Flux " + s.kind.Kind
	}
	parent, name := split(path)
	node := s.at(parent)
	if parent == "" {
		node = s.structural
	}
	if node != nil {
		if like := nearest.To(name, slices.Sorted(maps.Keys(node.Properties))); like != "" {
			return out + "; did you mean " + like + "?"
		}
	}
	return out
}

// Items is the name in a path for the items of a list, whichever is meant.
const Items = "[]"

// Lacks says that the names of a path, such as spec and interval, lead to no field; "" if they may lead to one.
func (s *Schema) Lacks(path ...string) string {
	node := s.structural
	for i, name := range path {
		p, ok := node.Properties[name]
		switch {
		case ok:
			node = &p
		case name == Items && node.Items != nil:
			node = node.Items
		case node.AdditionalProperties != nil && node.AdditionalProperties.Structural != nil:
			node = node.AdditionalProperties.Structural
		case node.XPreserveUnknownFields || node.AdditionalProperties != nil || node.Items != nil:
			return ""
		default:
			return s.unknown(strings.Join(path[:i+1], "."))
		}
	}
	return ""
}

func article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIOU") {
		return "an " + kind
	}
	return "a " + kind
}

// split cuts the last name off a path.
func split(path string) (parent, name string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// at returns the schema of a field; nil if there is none, or the path has a key with a dot in it.
func (s *Schema) at(path string) *structural.Structural {
	node := s.structural
	for _, name := range strings.Split(path, ".") {
		name, items, _ := strings.Cut(name, "[")
		if name != "" {
			p, ok := node.Properties[name]
			switch {
			case ok:
				node = &p
			case node.AdditionalProperties != nil && node.AdditionalProperties.Structural != nil:
				node = node.AdditionalProperties.Structural
			default:
				return nil
			}
		}
		for range strings.Count(items, "]") {
			if node = node.Items; node == nil {
				return nil
			}
		}
	}
	return node
}

// reword says in plain words what is wrong with a field, and what to do.
func (s *Schema) reword(path string, e *field.Error, rule bool) string {
	node := s.at(path)
	if node == nil {
		node = &structural.Structural{}
	}
	v := node.ValueValidation
	if v == nil {
		v = &structural.ValueValidation{}
	}
	text, isText := e.BadValue.(string)
	switch {
	case rule:
		return strings.TrimPrefix(e.Detail, "failed rule: ")
	case e.Type == field.ErrorTypeRequired:
		if e.Detail != "" {
			return "is required: " + e.Detail
		}
		return "is required"
	case isText && strings.Contains(text, "<<") && e.Type != field.ErrorTypeTypeInvalid:
		return fmt.Sprintf("is %s, and expressions are not read here: write the value itself", quote(text))
	case e.Type == field.ErrorTypeNotSupported:
		return fmt.Sprintf("is %s: write %s", quote(e.BadValue), oneOf(v.Enum))
	case e.Type == field.ErrorTypeTypeInvalid:
		return "is " + sort(e.BadValue) + ", and must be " + wanted(node, v)
	case e.Type == field.ErrorTypeTooLong && v.MaxLength != nil:
		return fmt.Sprintf("is longer than %d characters, which are the most", *v.MaxLength)
	case e.Type == field.ErrorTypeTooMany:
		return e.Detail
	case e.Type == field.ErrorTypeDuplicate:
		return fmt.Sprintf("is there twice (%s); write it once", quote(e.BadValue))
	}
	if out := limits(v, e); out != "" {
		return out
	}
	if _, detail, ok := strings.Cut(e.Detail, " in body "); ok && isText {
		return fmt.Sprintf("is %s, and %s", quote(text), detail)
	}
	if isText {
		detail, _, _ := strings.Cut(e.Detail, " (e.g. ") // and the regular expression
		return fmt.Sprintf("is %s: %s", quote(text), detail)
	}
	return e.Detail
}

// limits returns the message for a value that is outside of what the schema says of its size or form; "" for any other.
func limits(v *structural.ValueValidation, e *field.Error) string {
	is := "is " + quote(e.BadValue)
	plural := func(n int64, one string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %ss", n, one)
	}
	detail := func(text string) bool { return strings.Contains(e.Detail, text) }
	switch {
	case v.MinLength != nil && detail("should be at least"):
		if e.BadValue == "" {
			return "is empty: write a text, or leave the field out"
		}
		return fmt.Sprintf("%s, and must have at least %s", is, plural(*v.MinLength, "character"))
	case v.MinItems != nil && detail("should have at least"):
		return "must have at least " + strings.Replace(plural(*v.MinItems, "entry"), "entrys", "entries", 1)
	case v.MinProperties != nil && detail("should have at least"):
		return "must have at least " + plural(*v.MinProperties, "field")
	case v.Minimum != nil && detail("should be greater than"):
		return fmt.Sprintf("%s: write a number from %v on", is, *v.Minimum)
	case v.Maximum != nil && detail("should be less than"):
		return fmt.Sprintf("%s: write a number up to %v", is, *v.Maximum)
	case v.Pattern != "" && detail("should match"):
		return is + ": write " + form(v.Pattern)
	}
	return ""
}

var schemes = regexp.MustCompile(`^\^\(?([a-z|]+)\)?://(\.\*)?\$?$`)

// form says what a pattern wants.
func form(pattern string) string {
	if m := schemes.FindStringSubmatch(pattern); m != nil {
		return "an address that begins with " + orList(strings.Split(strings.ReplaceAll(m[1], "|", "://|")+"://", "|"))
	}
	switch pattern {
	case `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:
		return "lower-case letters, digits and -, with a letter or a digit at both ends"
	case `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`:
		return "the name of an object: lower-case letters, digits, - and ., with a letter or a digit at both ends"
	case `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`:
		return "a duration such as 10m, in ms, s, m and h"
	case `^([0-9]+(\.[0-9]+)?(ms|s|m))+$`:
		return "a duration such as 60s, in ms, s and m"
	}
	return "a text that matches " + pattern
}

func oneOf(values []structural.JSON) string {
	var out []string
	for _, v := range values {
		if s, ok := v.Object.(string); !ok || s != "" {
			out = append(out, fmt.Sprint(v.Object))
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return "one of " + orList(out)
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// sort names the kind of a value.
func sort(v any) string {
	switch v := v.(type) {
	case string:
		switch v { // so the validator names what it has not kept
		case "null", "":
			return "null"
		case "object", "array", "string", "boolean", "integer", "number":
			return jsontype.Name(v)
		}
		return "the text " + quote(v)
	case map[string]any, []any:
		return jsontype.Of(v)
	}
	return quote(v)
}

func wanted(node *structural.Structural, v *structural.ValueValidation) string {
	switch {
	case node.XIntOrString:
		return jsontype.Number + " or " + jsontype.Text
	case v.Format == "date-time":
		return "a time such as 2026-01-31T12:00:00Z"
	case v.Format == "duration":
		return "a duration such as 10m"
	}
	if node.Type == "string" {
		return jsontype.Quoted
	}
	return cmp.Or(jsontype.Name(node.Type), "something else")
}

// quote shows a value, cut short.
func quote(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
	return excerpt.Of(text, maxQuote)
}

const maxQuote = 100
