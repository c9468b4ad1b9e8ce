// SPDX-License-Identifier: Apache-2.0

package jsontype_test

import (
	"testing"

	"github.com/chandler-hub/chandler/internal/jsontype"
)

// TestOneWord: OpenAPI, Go's decoder and a value itself call one type by one name.
func TestOneWord(t *testing.T) {
	for _, one := range []struct {
		value any
		want  string
		names []string
	}{
		{"x", "a text", []string{"string"}},
		{true, "true or false", []string{"boolean", "bool"}},
		{1.5, "a number", []string{"number", "float64"}},
		{[]any{}, "a list", []string{"array", "[]v1.Addon"}},
		{map[string]any{}, "an object", []string{"object"}},
		{nil, "null", []string{"null"}},
	} {
		if got := jsontype.Of(one.value); got != one.want {
			t.Errorf("%v is %q, want %q", one.value, got, one.want)
		}
		for _, name := range one.names {
			if got := jsontype.Name(name); got != one.want {
				t.Errorf("%s is %q, want %q", name, got, one.want)
			}
		}
	}
}
