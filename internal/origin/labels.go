// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"maps"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// foreignMarks are labels by which tools, this one included, mark the objects that they own. If such a mark were
// copied, its tool might prune the registration, and so strip a cluster.
var foreignMarks = struct {
	prefixes []string
	domains  []string
	exact    map[string]bool
}{
	prefixes: []string{
		"argocd.argoproj.io/", "applyset.kubernetes.io/", "helm.sh/", "kapp.k14s.io/", "kluctl.io/", "objectset.rio.cattle.io/", "tanka.dev/",
		"chandler.dev/",
	},
	domains: []string{".toolkit.fluxcd.io/"},
	exact: map[string]bool{
		"app.kubernetes.io/instance": true, "app.kubernetes.io/managed-by": true, "app.kubernetes.io/part-of": true,
	},
}

// MirroredLabels returns the labels of an origin that the hub copies to its registration.
func MirroredLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if !isForeignMark(k) {
			out[k] = v
		}
	}
	return out
}

// KeptMark stands before a label, in the annotation that names the labels of an origin, whose value on the registration is
// somebody else's.
const KeptMark = "!"

// Labels returns the labels that a registration has as soon as those of its origin are copied to it. has are those that it has,
// and mirrored is its annotation.
func Labels(has map[string]string, mirrored string, of map[string]string) map[string]string {
	out := maps.Clone(has)
	if out == nil {
		out = map[string]string{}
	}
	kept := map[string]bool{hubv1.NameLabel: true, hubv1.ProviderLabel: true}
	for _, k := range strings.Split(mirrored, ",") {
		if k, is := strings.CutPrefix(k, KeptMark); is {
			kept[k] = true
		} else if !kept[k] {
			delete(out, k)
		}
	}
	for k, v := range MirroredLabels(of) {
		if _, there := has[k]; !kept[k] || !there {
			out[k] = v
		}
	}
	return out
}

func isForeignMark(key string) bool {
	if foreignMarks.exact[key] {
		return true
	}
	for _, p := range foreignMarks.prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	for _, d := range foreignMarks.domains {
		if domain, _, ok := strings.Cut(key, "/"); ok && strings.HasSuffix(domain+"/", d) {
			return true
		}
	}
	return false
}
