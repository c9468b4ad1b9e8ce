// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

func bodyOf(in *hubv1.AddonBody) *apiextensionsv1.JSON {
	switch {
	case in.HelmRelease != nil:
		return in.HelmRelease
	case in.Kustomization != nil:
		return in.Kustomization
	}
	return in.Manifests
}

// object decodes a raw body and compiles the expressions in it. It returns nil if the body is not an object.
func (c *compiler) object(overlay, addon, path string, raw *apiextensionsv1.JSON) map[string]any {
	m, ok := c.value(overlay, addon, path, raw).(map[string]any)
	if !ok {
		c.fail(overlay, addon, path, "must be an object")
	}
	return m
}

func (c *compiler) value(overlay, addon, path string, raw *apiextensionsv1.JSON) any {
	if raw == nil || len(raw.Raw) == 0 {
		return nil // apiextensions' JSON keeps no bytes of a null
	}
	var v any
	if err := json.Unmarshal(raw.Raw, &v); err != nil {
		c.fail(overlay, addon, path, "cannot be read as JSON")
		return nil
	}
	c.scan(overlay, addon, path, v, 0)
	return v
}

func (c *compiler) variables(overlay string, in map[string]apiextensionsv1.JSON) map[string]any {
	if len(in) == 0 {
		return nil
	}
	names := make([]string, 0, len(in))
	for name := range in {
		names = append(names, name)
	}
	sort.Strings(names)
	out := make(map[string]any, len(in))
	for _, name := range names {
		raw := in[name]
		out[name] = c.value(overlay, "", "variables."+name, &raw)
	}
	return out
}

// scan compiles every expression in a value.
func (c *compiler) scan(overlay, addon, path string, v any, depth int) {
	switch v := v.(type) {
	case string:
		c.template(overlay, addon, path, v)
	case map[string]any:
		if depth >= maxDepth {
			c.fail(overlay, addon, path, "is nested deeper than %d levels", maxDepth)
			return
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if expression.Has(k) && !isLiteral(k) {
				c.fail(overlay, addon, Join(path, k), "expressions stand in values, not in keys")
			}
			c.scan(overlay, addon, Join(path, k), v[k], depth+1)
		}
	case []any:
		if depth >= maxDepth {
			c.fail(overlay, addon, path, "is nested deeper than %d levels", maxDepth)
			return
		}
		for i, x := range v {
			c.scan(overlay, addon, fmt.Sprintf("%s[%d]", path, i), x, depth+1)
		}
	}
}

// template compiles the expressions in a text, if it has any and is new.
func (c *compiler) template(overlay, addon, path, text string) {
	if !expression.Has(text) || c.p.templates[text] != nil || c.cost.over {
		return
	}
	if why := c.cost.tooMany(); why != "" {
		c.cost.over = true
		c.fail(overlay, addon, path, "%s; repeat less by variables, or split the set", why)
		return
	}
	t, err := expression.Compile(text)
	if err != nil {
		c.fail(overlay, addon, path, "%s", err)
		return
	}
	if t.UsesOrigin() && c.author.Team != nil {
		c.fail(overlay, addon, path, "%s", c.author.Team.Refusal("", "the origin of a cluster may be in a namespace that is not the Team's, so "+
			"its expressions do not read it; a label or a variable of the ClusterRegistration can tell the same"))
	}
	c.cost.n, c.cost.text, c.cost.work = c.cost.n+1, c.cost.text+len(text), c.cost.work+t.Work()
	c.p.templates[text] = t
}

// isLiteral returns whether a text that contains << contains no expression.
func isLiteral(s string) bool {
	t, err := expression.Compile(s)
	if err != nil {
		return true
	}
	_, ok := t.Literal()
	return ok
}

// holes returns a copy of a body in which each text with expressions is a Hole of its result type. A text that did
// not compile becomes a Hole of unknown type, so that one mistake gives one error.
func (c *compiler) holes(body map[string]any) map[string]any {
	out, _ := c.hole(body).(map[string]any)
	return out
}

func (c *compiler) hole(v any) any {
	switch v := v.(type) {
	case string:
		if !expression.Has(v) {
			return v
		}
		return holeOf(c.p.templates[v])
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = c.hole(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = c.hole(x)
		}
		return out
	}
	return v
}

func holeOf(t *expression.Template) any {
	if t == nil {
		return fluxspec.Hole{}
	}
	if s, ok := t.Literal(); ok {
		return s
	}
	switch t.Type() {
	case expression.Text, expression.String:
		return fluxspec.Hole{Sample: fluxspec.TextSample}
	case expression.Bool:
		return fluxspec.Hole{Sample: true}
	case expression.Int:
		return fluxspec.Hole{Sample: 1}
	case expression.Double:
		return fluxspec.Hole{Sample: 1.5}
	case expression.List:
		return fluxspec.Hole{Sample: []any{}}
	case expression.Map:
		return fluxspec.Hole{Sample: map[string]any{}}
	}
	return fluxspec.Hole{}
}
