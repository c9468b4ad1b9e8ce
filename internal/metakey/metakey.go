// SPDX-License-Identifier: Apache-2.0

// Package metakey says which labels and annotations have an owner: the marks by which tools know the objects that they own, and the keys
// that steer Flux, the hub and other tools. It is pure.
package metakey

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// marks are labels by which tools, this one included, mark the objects that they own.
var marks = struct {
	prefixes []string
	domains  []string
	exact    []string
}{
	prefixes: []string{
		"argocd.argoproj.io/", "applyset.kubernetes.io/", "helm.sh/", "kapp.k14s.io/", "kluctl.io/", "objectset.rio.cattle.io/", "tanka.dev/",
		"chandler.dev/",
	},
	domains: []string{".toolkit.fluxcd.io"},
	exact:   []string{"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"},
}

// Marks returns whether a key is one by which a tool marks the objects that it owns. If such a mark were copied to another object, its
// tool might prune that.
func Marks(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return slices.ContainsFunc(marks.prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) ||
		prefixed && slices.ContainsFunc(marks.domains, func(d string) bool { return strings.HasSuffix(domain, d) }) ||
		slices.Contains(marks.exact, key)
}

// EventPrefix is how the annotations begin that Flux copies into its events.
const EventPrefix = "event.toolkit.fluxcd.io/"

// steering are the domains, with those below them, whose keys say who looks after an object, and how: which shard of Flux, what Flux or
// Helm prune, what Kyverno deletes after a while, what another tool of the management cluster takes for its own.
var steering = []struct{ domain, whose string }{
	{"chandler.dev", "the hub"},
	{"fluxcd.io", "Flux"},
	{"fluxcd.controlplane.io", "the Flux Operator"},
	{"helm.sh", "Helm"},
	{"argoproj.io", "Argo"},
	{"k14s.io", "kapp"},
	{"kluctl.io", "kluctl"},
	{"tanka.dev", "Tanka"},
	{"cattle.io", "Rancher"},
	{"kyverno.io", "Kyverno"},
	{"projectsveltos.io", "Sveltos"},
	{"gke.io", "Config Sync"},
	{"crossplane.io", "Crossplane"},
	{"k8s.io", "Kubernetes"},
	{"x-k8s.io", "Kubernetes"},
	{"kubernetes.io", "Kubernetes"},
}

// free is the prefix of the keys of Kubernetes that only describe an object. What Marks knows of them is not free.
const free = "app.kubernetes.io/"

// own are the annotations for events that the hub writes itself.
var own = []string{hubv1.EventClusterAnnotation, hubv1.EventSetAnnotation, hubv1.EventAddonAnnotation}

// Refusal says why people may not give a label, or else an annotation, of a key to what the hub makes, and what to do; "" if they may.
func Refusal(key string, label bool) string {
	if problems := content.IsLabelKey(strings.ToLower(key)); len(problems) > 0 {
		return "is no key that Kubernetes takes: " + problems[0]
	}
	domain, name, prefixed := strings.Cut(key, "/")
	domain = strings.ToLower(domain)
	switch {
	case slices.Contains(own, key):
		return "is written by the hub itself; leave it out, and choose another name for what you want to add to events"
	case strings.HasPrefix(key, EventPrefix) && label:
		return "is a label, and Flux copies only annotations into its events; write it below annotations"
	case strings.HasPrefix(key, EventPrefix), strings.HasPrefix(key, free) && !Marks(key):
		return ""
	}
	for _, s := range steering {
		if prefixed && (domain == s.domain || strings.HasSuffix(domain, "."+s.domain)) {
			return fmt.Sprintf("is a key of %s, which may go by it; choose one of your own, such as example.org/%s", s.whose, name)
		}
	}
	return ""
}
