// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandler-hub/chandler/internal/expression"
)

// token is a name of a cluster, and the expression for it. A cluster that has no such name has an empty one.
type token struct{ name, expression string }

// tokensOf returns the names of a cluster: that of its registration, that without what kubeconfigs are usually called, that
// of its namespace, and its words. They are as many for every cluster.
func tokensOf(c *Cluster) []token {
	out := []token{{c.Name, "cluster.name"}, {}}
	for _, suffix := range []string{"-admin-kubeconfig", "-kubeconfig"} {
		if short, ok := strings.CutSuffix(c.Name, suffix); ok && short != "" && short != "cluster" {
			out[1] = token{short, "cluster.name.replace('" + suffix + "', '')"}
			break
		}
	}
	return append(append(out, token{c.Namespace, "cluster.namespace"}), c.words...)
}

// tokensOfAll returns those of some clusters, with the labels in which they differ.
func tokensOfAll(members []*member) [][]token {
	out := make([][]token, len(members))
	keys := map[string]bool{}
	for k := range members[0].cluster.Labels {
		keys[k] = !strings.HasPrefix(k, "chandler.dev/")
	}
	for i, m := range members {
		out[i] = tokensOf(m.cluster)
		for k := range keys {
			keys[k] = keys[k] && len(m.cluster.Labels[k]) > 1
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		first := members[0].cluster.Labels[k]
		if !keys[k] || !slices.ContainsFunc(members, func(m *member) bool { return m.cluster.Labels[k] != first }) {
			continue
		}
		for i, m := range members {
			out[i] = append(out[i], token{m.cluster.Labels[k], "cluster.labels['" + k + "']"})
		}
	}
	return out
}

// common returns the text that gives each cluster its own value; false if there is none.
func common(values []value, tokens [][]token) (any, bool) {
	for _, which := range choices(len(tokens[0])) {
		var out any
		fits := true
		for i, v := range values {
			text, ok := template(v.v, tokens[i], which)
			if fits = v.there && ok && (i == 0 || equal(out, text)); !fits {
				break
			}
			out = text
		}
		if fits {
			return out, true
		}
	}
	return nil, false
}

// most returns the text that gives most clusters their own values, and which these are.
func most(values []value, tokens [][]token) (text any, fits []bool, count int) {
	for _, which := range choices(len(tokens[0])) {
		texts := written(values, tokens, which)
		for _, t := range texts {
			n := 0
			for _, other := range texts {
				if t != nil && other == t {
					n++
				}
			}
			if n > count {
				text, count = t, n
				fits = make([]bool, len(values))
				for i := range texts {
					fits[i] = texts[i] == t
				}
			}
		}
	}
	return text, fits, count
}

// written returns the text of each value with expressions in it; nil for one without.
func written(values []value, tokens [][]token, which []int) []any {
	out := make([]any, len(values))
	for i, v := range values {
		s, ok := v.v.(string)
		if t, found := template(s, tokens[i], which); ok && v.there && found {
			out[i] = t
		}
	}
	return out
}

// choices are the lists of tokens that are tried: each alone, two of them, and all. With several, each is looked for in what
// the ones before it left, so that a text is read in one way on all clusters.
func choices(n int) [][]int {
	var out [][]int
	all := []int{}
	for i := range n {
		out = append(out, []int{i})
		all = append(all, i)
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			out = append(out, []int{i, j})
		}
	}
	return append(out, all)
}

// piece is a part of a text: as it is, or an expression.
type piece struct {
	text    string
	written bool
}

// template writes expressions in place of a cluster's names, and escapes everything else. It returns false if one of them is
// nowhere, or the result could be read in another way.
func template(v any, tokens []token, which []int) (any, bool) {
	found, clean := map[int]bool{}, true
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			out, here := write(v, tokens, which, found)
			if here && (expression.Has(v) || strings.Contains(out, "<<<") || strings.Contains(out, ">>>")) {
				clean = false
			}
			return out
		case map[string]any:
			out := make(map[string]any, len(v))
			for k, x := range v {
				out[k] = walk(x)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = walk(v[i])
			}
			return out
		}
		return v
	}
	out := walk(v)
	return out, len(found) > 0 && clean
}

// write writes one text. It notes which tokens it found.
func write(s string, tokens []token, which []int, found map[int]bool) (out string, here bool) {
	pieces := []piece{{text: s}}
	for _, t := range which {
		var next []piece
		for _, p := range pieces {
			if p.written {
				next = append(next, p)
				continue
			}
			rest := 0
			for _, at := range places(p.text, tokens[t].name) {
				next = append(next, piece{text: p.text[rest:at]}, piece{"<< " + tokens[t].expression + " >>", true})
				rest = at + len(tokens[t].name)
				found[t], here = true, true
			}
			next = append(next, piece{text: p.text[rest:]})
		}
		pieces = next
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.written {
			b.WriteString(p.text)
		} else {
			b.WriteString(expression.Escape(p.text))
		}
	}
	return b.String(), here
}

// tableVariable is the variable that has the words of each cluster.
const tableVariable = "clusters"

// variables returns the variables that a set reads: each from a table with a row for each cluster.
func (s *set) variables(words []word) map[string]apiextensionsv1.JSON {
	raw, _ := json.Marshal(s.object.Spec) // it was made of JSON
	names := map[string]bool{}
	for _, c := range s.clusters {
		names[c.Name] = true
	}
	key, of := "cluster.name", func(c *Cluster) string { return c.Name }
	if len(names) < len(s.clusters) {
		key, of = "cluster.namespace + '/' + cluster.name", (*Cluster).String
	}
	table := map[string]map[string]string{}
	out := map[string]any{}
	for _, w := range words {
		if !usesVariable(string(raw), w.variable) {
			continue
		}
		out[w.variable] = fmt.Sprintf("<< vars.%s[%s].%s >>", tableVariable, key, w.variable)
		for _, c := range s.clusters {
			if table[of(c)] == nil {
				table[of(c)] = map[string]string{}
			}
			table[of(c)][w.variable] = w.of[c]
		}
	}
	if len(out) == 0 {
		return nil
	}
	out[tableVariable] = table
	variables := map[string]apiextensionsv1.JSON{}
	for name, v := range out {
		raw, _ := json.Marshal(v) // texts, and maps of these
		variables[name] = apiextensionsv1.JSON{Raw: raw}
	}
	return variables
}

// usesVariable returns whether a set holds the expression that stands for a word. Within JSON, << is written as it is or escaped.
func usesVariable(raw, name string) bool {
	return strings.Contains(raw, "<< vars."+name+" >>") || strings.Contains(raw, `\u003c\u003c vars.`+name+` \u003e\u003e`)
}
