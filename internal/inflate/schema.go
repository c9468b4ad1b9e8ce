// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"encoding/json"
	"slices"
	"strings"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// refersElsewhere returns whether the schema of a chart, or of one that it depends on, refers to anything outside of itself. Helm would
// read that from the network, or from the disk.
func refersElsewhere(chart *chartv2.Chart) bool {
	var schema any
	if len(chart.Schema) > 0 && (json.Unmarshal(chart.Schema, &schema) != nil || leaves(schema)) {
		return true
	}
	return slices.ContainsFunc(chart.Dependencies(), refersElsewhere)
}

// drafts is where the schemas of JSON Schema itself are, which are built into the library.
var drafts = []string{"http://json-schema.org/", "https://json-schema.org/"}

func leaves(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, leaves)
	case map[string]any:
		for k, x := range v {
			to, _ := x.(string)
			switch k {
			case "$ref", "$dynamicRef", "$recursiveRef":
				if !strings.HasPrefix(to, "#") && !isDraft(to) {
					return true
				}
			case "$schema":
				if !isDraft(to) {
					return true
				}
			}
			if leaves(x) {
				return true
			}
		}
	}
	return false
}

func isDraft(to string) bool {
	return slices.ContainsFunc(drafts, func(d string) bool { return strings.HasPrefix(to, d) })
}
