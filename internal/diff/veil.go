// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"regexp"
	"slices"
	"strings"
)

const notShown = "(not shown)"

// veiled is a value of which only is told whether it is another one.
type veiled struct{ is any }

// MarshalJSON never fails.
func (veiled) MarshalJSON() ([]byte, error) { return []byte(`"` + notShown + `"`), nil }

// Better too much is veiled than too little: texts are not parsed, since they may be texts within texts, or templates.
var (
	// secretText matches a text that mentions the kind Secret or SecretList.
	secretText = regexp.MustCompile(`(?i:kind)\W(?:[^\n]{0,60}?\b|[^\n]{0,60}\n\s*["']?)Secret(?:List)?\b`)
	// secretField matches a text with a field that only Secrets have, or that makes one.
	secretField = regexp.MustCompile(`(?:stringData|secretGenerator)[\\"']*\s*:`)
	// patchText and patchPath match a JSON patch, and the path of what a Secret holds.
	patchText = regexp.MustCompile(`op[\\"']*\s*:`)
	patchPath = regexp.MustCompile(`/(?:data|stringData)\b`)
)

// plainOfSecret are the fields of a Secret, and of a reference to one, that hold nothing of it.
var plainOfSecret = []string{"apiVersion", "kind", "name", "namespace", "type", "immutable", "key", "valuesKey", "targetPath", "optional"}

// plainOfMetadata are those of its metadata. Tools keep copies of whole objects in annotations.
var plainOfMetadata = []string{"name", "namespace", "generateName", "labels"}

// isSecret returns whether an object is a Secret, a list of some, or a reference to one, of whatever version.
func isSecret(m map[string]any) bool { return m["kind"] == "Secret" || m["kind"] == "SecretList" }

// hides returns whether a field of an object may hold what is secret.
func hides(m map[string]any, field string) bool {
	switch field {
	case "stringData", "secretGenerator":
		return true
	case "metadata":
		return false
	case "value":
		if path, ok := m["path"].(string); ok && m["op"] != nil && patchPath.MatchString(path) {
			return true
		}
	case "patch":
		if target, ok := m["target"].(map[string]any); ok && selectsSecrets(target) {
			return true
		}
	}
	return isSecret(m) && !slices.Contains(plainOfSecret, field)
}

// selectsSecrets returns whether a target of kustomize, whose fields are patterns, selects Secrets by their kind.
func selectsSecrets(target map[string]any) bool {
	kind, _ := target["kind"].(string)
	pattern, err := regexp.Compile("^(?:" + kind + ")$")
	return kind != "" && (err != nil || pattern.MatchString("Secret"))
}

// veil returns a value in which everything that may be secret is veiled; all of it below secret.
func veil(v any, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = veil(x, secret || hides(v, k))
		}
		if meta, ok := v["metadata"].(map[string]any); ok && isSecret(v) && !secret {
			inner := make(map[string]any, len(meta))
			for k, x := range meta {
				inner[k] = veil(x, !slices.Contains(plainOfMetadata, k))
			}
			out["metadata"] = inner
		}
		return out
	case []any:
		if secret {
			return veiled{v}
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = veil(x, false)
		}
		return out
	case string:
		if secret || mentions(v) {
			return veiled{v}
		}
		return v
	}
	if secret {
		return veiled{v}
	}
	return v
}

// mentions returns whether a text may have a Secret in it, or a patch of one.
func mentions(text string) bool {
	if !strings.ContainsAny(text, ":") {
		return false
	}
	return secretText.MatchString(text) || secretField.MatchString(text) || patchText.MatchString(text) && patchPath.MatchString(text)
}
