// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/jsontype"
)

// maxShown is how much of an expression a message shows.
const maxShown = 200

// Blame returns what is wrong with a field of a body. If an expression gives the value, it names the expression, and how to write it.
// before is the body with its expressions as text; body has what they give, or a Hole of that type.
func Blame(p fluxspec.Problem, before, body map[string]any) string {
	path := strings.Split(p.Path, ".")
	text, _, _ := unstructured.NestedString(before, path...)
	if !expression.Has(text) {
		return p.Message
	}
	shown := excerpt.Cut(text, maxShown)
	v, _, _ := unstructured.NestedFieldNoCopy(body, path...)
	if h, ok := v.(fluxspec.Hole); ok {
		v = h.Sample
	}
	is := jsontype.Of(v)
	inner, whole := strings.CutPrefix(strings.TrimSpace(text), "<<")
	inner, closed := strings.CutSuffix(inner, ">>")
	if is != jsontype.Boolean && is != jsontype.Number || !fluxspec.WantsText(p) {
		return p.Message + "; it comes from " + shown
	}
	message := fmt.Sprintf("%s gives %s, and must give %s", shown, is, jsontype.Text)
	if whole && closed && len(text) <= maxShown && !strings.Contains(inner, "<<") {
		message += fmt.Sprintf(": write << string(%s) >>", strings.TrimSpace(inner))
	}
	return message
}

// typeName is how messages call the type of what an expression gives.
func typeName(t expression.Type) string {
	switch t {
	case expression.Text, expression.String:
		return jsontype.Text
	case expression.Bool:
		return jsontype.Boolean
	case expression.Int, expression.Double:
		return jsontype.Number
	case expression.List:
		return jsontype.List
	case expression.Map:
		return jsontype.Object
	}
	return "a value"
}
