// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/expression"
)

// Unmergeable returns the first path at which a layer has an object, and the body an expression that may give one; nil if there is none.
// Layers are merged before expressions are evaluated, so that the object would replace all that the expression gives.
func (p *Program) Unmergeable(body, layer map[string]any) (path []string, why string) {
	for _, k := range slices.Sorted(maps.Keys(layer)) {
		below, ok := layer[k].(map[string]any)
		if !ok {
			continue
		}
		switch there := body[k].(type) {
		case map[string]any:
			if path, why = p.Unmergeable(there, below); path != nil {
				return append([]string{k}, path...), why
			}
		case string:
			if p.mayGiveObject(there) {
				return []string{k}, fmt.Sprintf("is one expression in the set, %s, and an object cannot be merged with what it gives. Write the "+
					"object in the set, with an expression for each value, or change in an overlay what the expression reads",
					excerpt.Cut(there, maxShown))
			}
		}
	}
	return nil, ""
}

// mayGiveObject returns whether a text is one expression that may give an object.
func (p *Program) mayGiveObject(text string) bool {
	if !expression.Has(text) {
		return false
	}
	t, err := p.Template(text)
	return err == nil && (t.Type() == expression.Map || t.Type() == expression.Dyn)
}
