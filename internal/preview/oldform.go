// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// oldForm is how expressions begin in GitHub's workflows and in other hubs, and how they began in drafts of this one.
const oldForm = "${{"

// warnOfOldForm warns of expressions in a form that nothing reads: they are delivered as text.
func (r *renderer) warnOfOldForm(set *hubv1.AddonSet) {
	raw, err := json.Marshal(set.Spec)
	if err != nil || !strings.Contains(string(raw), oldForm) {
		return
	}
	var spec any
	if json.Unmarshal(raw, &spec) != nil {
		return
	}
	if found := textsWith("spec", spec, oldForm); len(found) > 0 {
		r.warn("AddonSet %s/%s: %s: ${{ }} is text here, and nothing replaces it; an expression is written << >>",
			set.Namespace, set.Name, status.List(found, maxWhy))
	}
}

// textsWith returns the fields of a document with a text that holds a part.
func textsWith(at string, v any, part string) []string {
	var out []string
	switch v := v.(type) {
	case string:
		if strings.Contains(v, part) {
			out = append(out, at)
		}
	case []any:
		for i, x := range v {
			out = append(out, textsWith(fmt.Sprintf("%s[%d]", at, i), x, part)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, textsWith(at+"."+k, v[k], part)...)
		}
	}
	return out
}
