// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

var (
	// secretly matches the fields of a Secret that hold what is secret, in YAML or JSON, also in a text within a text.
	secretly = regexp.MustCompile(`\b(data|stringData)[\\"']*\s*:`)
	// aKind and inGroup match what every whole object has.
	aKind   = regexp.MustCompile(`\bkind[\\"']*\s*:`)
	inGroup = regexp.MustCompile(`\bapiVersion[\\"']*\s*:`)
	// packed matches gzip or JSON in base64, of which nobody sees what it holds.
	packed = regexp.MustCompile(`^\s*(H4sI|eyJ|eyA|ewo)[A-Za-z0-9+/_=\s-]*$`)
)

// WithoutCopies returns annotations without those in which a tool keeps a copy of the whole object: kubectl, kapp, Rancher and others do. A
// copy of a Secret holds what the Secret holds. What belongs to the hub stays.
func WithoutCopies(annotations map[string]string, ofSecret bool) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(name, text string) bool {
		switch {
		case IsOurs(name):
			return false
		case name == corev1.LastAppliedConfigAnnotation, packed.MatchString(text), aKind.MatchString(text) && inGroup.MatchString(text):
			return true
		}
		return ofSecret && secretly.MatchString(text)
	})
	return out
}

// IsOurs returns whether an annotation is one of the hub's.
func IsOurs(name string) bool { return strings.HasPrefix(name, hubv1.GroupVersion.Group+"/") }
