// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/nearest"
)

// dependencies rejects unknown names and cycles. Flux drops whole batches of events when its dependencies form a
// cycle (fluxcd/pkg/runtime/dependency, Sort), so no cycle may ever reach it.
func (c *compiler) dependencies() {
	needs := map[string][]string{}
	for _, a := range c.p.Addons {
		for _, d := range a.DependsOn {
			if d.AddonSet != "" {
				continue // Graph looks at other sets
			}
			if _, ok := c.kinds[d.Name]; !ok {
				c.fail("", a.Name, "dependsOn", "there is no add-on %q in this set; it has %s%s For one of another set, write its addonSet", d.Name,
					strings.Join(c.names(), ", "), cmp.Or(nearest.Meant(d.Name, c.names()), "."))
				continue
			}
			needs[a.Name] = append(needs[a.Name], d.Name)
		}
		if base, ok := strings.CutSuffix(a.Name, CRDSuffix); ok && c.kinds[base] == fluxspec.ManifestsKind {
			c.fail("", a.Name, "", "the name is taken by the CustomResourceDefinitions of add-on %q", base)
		}
	}
	if cycle := findCycle(c.names(), needs); cycle != nil {
		c.fail("", cycle[0], "dependsOn", "add-ons wait for each other: %s", strings.Join(cycle, " -> "))
	}
}

// findCycle returns one cycle, its first name repeated at the end, or nil.
func findCycle(names []string, needs map[string][]string) []string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(string) []string
	visit = func(name string) []string {
		switch state[name] {
		case done:
			return nil
		case visiting:
			return append(slices.Clone(path[slices.Index(path, name):]), name)
		}
		state[name] = visiting
		path = append(path, name)
		for _, d := range needs[name] {
			if cycle := visit(d); cycle != nil {
				return cycle
			}
		}
		path = path[:len(path)-1]
		state[name] = done
		return nil
	}
	for _, name := range names {
		if cycle := visit(name); cycle != nil {
			return cycle
		}
	}
	return nil
}

// releases rejects two add-ons with the same Helm release: each would upgrade over the other forever.
func (c *compiler) releases() {
	seen := map[Release]string{}
	for _, a := range c.p.Addons {
		if a.Kind == fluxspec.KustomizationKind || a.Body == nil {
			continue
		}
		r, known := ReleaseOf(a.Name, a.Kind, c.holes(a.Body), c.author.Team)
		if !known {
			continue // the clusters will tell
		}
		if other, ok := seen[r]; ok {
			c.fail("", a.Name, Field(a.Kind)+".releaseName", "release %q in namespace %q is add-on %q's already", r.Name, r.Namespace, other)
		}
		seen[r] = a.Name
	}
}

// Release is a Helm release on a cluster. Namespace is where Helm keeps its records.
type Release struct{ Namespace, Name string }

// ReleaseOf returns the Helm release of an add-on. It returns false if the body does not determine it yet, or the
// namespaces of the Team differ from cluster to cluster.
func ReleaseOf(addon, kind string, in map[string]any, team *fluxspec.TeamRules) (Release, bool) {
	body := map[string]any{}
	for _, f := range []string{"releaseName", "targetNamespace", "storageNamespace"} {
		v, ok := in[f]
		if _, hole := v.(fluxspec.Hole); hole {
			return Release{}, false
		}
		if ok {
			body[f] = v
		}
	}
	fluxspec.Default(kind, body, addon, team)
	name, _, _ := unstructured.NestedString(body, "releaseName")
	namespace, _, _ := unstructured.NestedString(body, "storageNamespace")
	return Release{Namespace: namespace, Name: name}, team == nil || namespace != ""
}
