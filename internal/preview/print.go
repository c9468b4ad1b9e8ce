// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes a report as one stream of YAML that kubectl can read. Add-ons that cannot be rendered are there as
// comments, so that nothing is missing silently. With explain, each field has a comment that says who set it.
func Print(w io.Writer, r *Report, explain bool) error {
	p := &printer{out: bufio.NewWriter(w), explain: explain}
	if len(r.Shared) > 0 {
		p.comment("shared by all clusters")
	}
	for _, u := range r.Shared {
		p.separator()
		p.object(u.Object, nil)
	}
	for i := range r.Clusters {
		p.cluster(&r.Clusters[i])
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return p.err
}

type printer struct {
	out     *bufio.Writer // keeps the first error, for Flush
	explain bool
	begun   bool
	err     error // of an object that cannot be written as YAML
}

func (p *printer) write(text string) {
	p.begun = true
	_, _ = p.out.WriteString(text)
}

func (p *printer) comment(format string, args ...any) {
	p.write("# " + oneLine(fmt.Sprintf(format, args...)) + "\n")
}

func (p *printer) separator() { p.write("---\n") }

func (p *printer) cluster(c *Cluster) {
	if p.begun {
		p.write("\n")
	}
	p.comment("cluster %s/%s", c.Namespace, c.Name)
	if c.Nothing != "" {
		p.comment("%s", c.Nothing)
		return
	}
	if c.Paused != "" {
		p.comment("%s", c.Paused+standstill)
	}
	nothing := c.empty()
	if nothing {
		p.comment(undelivered)
	}
	p.notes("failed", c.Failed)
	p.notes("later", c.Later)
	for _, n := range c.Stays {
		p.comment("stays: %s: add-on %s of AddonSet %s: %s", n.Object, n.Addon, n.Set, n.Reason)
	}
	p.notes("refused", c.Refused)
	p.notes("not known", c.Unknown)
	p.notes("left out", c.Excluded)
	p.notes("lost", c.Lost)
	p.notes("not owned", c.NotOwned)
	if p.explain || nothing {
		p.notes("not selected", c.NotSelected)
	}
	if p.explain {
		p.variables(c.Variables)
	}
	for i := range c.Objects {
		p.rendered(&c.Objects[i])
	}
}

func (p *printer) notes(what string, notes []Note) {
	for _, n := range notes {
		switch {
		case n.Set == "":
			p.comment("%s: %s", what, n.Reason)
			continue
		case n.Addon == "":
			p.comment("%s: AddonSet %s: %s", what, n.Set, n.Reason)
			continue
		}
		p.comment("%s: add-on %s of AddonSet %s: %s", what, n.Addon, n.Set, n.Reason)
	}
}

func (p *printer) variables(variables []Variable) {
	for _, v := range variables {
		value := v.Value
		if value == "" {
			value = "(not read)"
		}
		p.comment("variable %s of AddonSet %s: %s, set by %s", v.Name, v.Set, value, by(v.Layer))
	}
}

func (p *printer) rendered(o *Rendered) {
	p.separator()
	what := fmt.Sprintf("add-on %s of AddonSet %s", o.Addon, o.Set)
	if o.CRDs {
		what = fmt.Sprintf("the CustomResourceDefinitions of add-on %s of AddonSet %s", o.Addon, o.Set)
	}
	p.comment("%s", what)
	for _, remark := range o.Remarks {
		p.comment("%s", remark)
	}
	if !p.explain {
		p.object(o.Manifest.Object, nil)
		return
	}
	e := explainer{o}
	for _, line := range e.chart() {
		p.comment("%s", line)
	}
	p.object(o.Manifest.Object, e.layer)
}

// object writes one document. layer returns who set a field, or ""; it may be nil.
func (p *printer) object(o map[string]any, layer func(path []string) string) {
	var text strings.Builder
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	n, err := node(o, nil, layer)
	if err == nil {
		err = e.Encode(n)
	}
	if err == nil {
		err = e.Close()
	}
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("write the object as YAML: %w", err)
	}
	p.write(text.String())
}

// node makes a YAML node of a JSON value, its keys in order.
func node(v any, path []string, layer func(path []string) string) (*yaml.Node, error) {
	switch v := v.(type) {
	case map[string]any:
		out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := append(path[:len(path):len(path)], k)
			name, err := scalar(k)
			if err != nil {
				return nil, err
			}
			value, err := node(v[k], at, layer)
			if err != nil {
				return nil, err
			}
			if m, inner := v[k].(map[string]any); layer != nil && !(inner && len(m) > 0) {
				remark(name, value, layer(at))
			}
			out.Content = append(out.Content, name, value)
		}
		return out, nil
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, x := range v {
			value, err := node(x, nil, nil) // layers are known for whole lists
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, value)
		}
		return out, nil
	}
	return scalar(v)
}

// remark adds a comment at the end of the line on which a field begins.
func remark(name, value *yaml.Node, text string) {
	switch {
	case text == "":
	case value.Kind == yaml.SequenceNode && len(value.Content) > 0, value.Style == yaml.LiteralStyle:
		name.LineComment = "# " + text
	default:
		value.LineComment = "# " + text
	}
}

func scalar(v any) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := v.(type) {
	case string:
		if isPlain(v) {
			out.Tag, out.Value = "!!str", v
			return out, nil
		}
	case bool:
		out.Tag, out.Value = "!!bool", strconv.FormatBool(v)
		return out, nil
	case int64:
		out.Tag, out.Value = "!!int", strconv.FormatInt(v, 10)
		return out, nil
	}
	err := out.Encode(v)
	return out, err
}

// words are texts that some version of YAML reads as something else, in any case.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// isPlain returns whether a text certainly needs no quotes. Most do not, and the encoder is slow to find out.
func isPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !('0' <= c && c <= '9') && c != '-' && c != '.' && c != '/' && c != '_') {
			return false
		}
	}
	return s != "" && (len(s) > len("false") || !slices.Contains(words, strings.ToLower(s)))
}
