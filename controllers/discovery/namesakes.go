// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"strings"

	"github.com/chandler-hub/chandler/internal/origin"
)

// firstNames returns the names of the origins that may be registered under a name: alone, or with their kind.
func firstNames(name string) []string {
	names := []string{name}
	for _, kind := range origin.Kinds {
		if first, ok := strings.CutSuffix(name, suffix(kind)); ok && first != "" {
			names = append(names, first)
		}
	}
	return names
}

// secondName is the name by which an origin is registered if another one has the first.
func secondName(kind origin.Kind, first string) string {
	return origin.RegistrationNames(kind, first)[1]
}

func suffix(kind origin.Kind) string { return secondName(kind, "") }
