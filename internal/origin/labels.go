// SPDX-License-Identifier: Apache-2.0

package origin

import "strings"

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
