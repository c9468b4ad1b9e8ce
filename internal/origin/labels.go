// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"maps"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/metakey"
)

// CopiedLabels returns the labels of an origin that the hub copies to its registration: all but the marks of tools, which might prune the
// registration by a copied one, and so strip a cluster.
func CopiedLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if !metakey.Marks(k) {
			out[k] = v
		}
	}
	return out
}

// KeptMark stands before a label, in the annotation that names the labels of an origin, whose value on the registration is
// somebody else's.
const KeptMark = "!"

// Labels returns the labels that a registration has as soon as those of its origin are copied to it. has are those that it has,
// and copied is its annotation.
func Labels(has map[string]string, copied string, of map[string]string) map[string]string {
	out := maps.Clone(has)
	if out == nil {
		out = map[string]string{}
	}
	kept := map[string]bool{hubv1.NameLabel: true, hubv1.ProviderLabel: true}
	for _, k := range strings.Split(copied, ",") {
		if k, is := strings.CutPrefix(k, KeptMark); is {
			kept[k] = true
		} else if !kept[k] {
			delete(out, k)
		}
	}
	for k, v := range CopiedLabels(of) {
		if _, there := has[k]; !kept[k] || !there {
			out[k] = v
		}
	}
	return out
}
