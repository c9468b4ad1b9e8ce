// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/nearest"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/status"
)

// What the files name and do not have may be in another repository, so these are warnings. What is wrong whatever else there is,
// compile and render tell.

// warnOfAbsent warns of sets that a set depends on and that are not there.
func (r *renderer) warnOfAbsent(c *compiled, absent compile.Errors) {
	if r.options.Incomplete {
		return
	}
	for _, e := range absent {
		if hasVariable(e.Message) {
			continue
		}
		r.warn("AddonSet %s, which the hub reports as Stalled until that is there: %s", c, e)
	}
}

// dangling warns of what leads nowhere, whatever the clusters.
func (r *renderer) dangling() {
	if r.options.Incomplete {
		return
	}
	for _, m := range r.fleet.members {
		if s := &m.registration.Spec; s.OriginRef == nil && s.KubeConfig == nil {
			r.warnings.add(m.String(), ": spec has neither originRef nor kubeConfig, and no origin in the files has its name: without one the "+
				"hub cannot reach the cluster")
		}
	}
	for _, c := range r.sets {
		r.movedFrom(c)
		r.overlays(c)
	}
}

// movedFrom warns of earlier names in sets that are not there.
func (r *renderer) movedFrom(c *compiled) {
	if c.program == nil {
		return
	}
	for _, a := range c.program.Addons {
		for i, m := range a.MovedFrom {
			var there []string
			for _, o := range r.all {
				if o.Namespace == m.Namespace {
					there = append(there, o.Name)
				}
			}
			if slices.Contains(there, m.AddonSet) || hasVariable(m.Namespace+m.AddonSet) {
				continue
			}
			there = slices.DeleteFunc(there, func(name string) bool { return name == c.set.Name && m.Namespace == c.set.Namespace })
			r.warn("AddonSet %s: add-on %q: movedFrom[%d] takes nothing over, and can go if it was done: there is no AddonSet %s/%s%s", c, a.Name, i,
				m.Namespace, m.AddonSet, nearest.Meant(m.AddonSet, there))
		}
	}
}

// overlays warns of those that match no cluster of their set.
func (r *renderer) overlays(c *compiled) {
	if c.program == nil || c.selector == nil {
		return
	}
	var of []labels.Set
	for _, m := range r.fleet.members {
		if c.selector.Matches(m.registration) {
			of = append(of, labels.Set(m.registration.Labels))
		}
	}
	for i, o := range c.program.Overlays {
		if len(of) == 0 || o.Selector == nil || slices.ContainsFunc(of, func(l labels.Set) bool { return o.Selector.Matches(l) }) {
			continue
		}
		r.warn("AddonSet %s: overlay %q matches none of the %s that the set selects (%s)%s", c, o.Name, count(len(of), "cluster"), o.Selector,
			whyNone(c.set.Spec.Overlays[i].ClusterSelector, of))
	}
}

// hasVariable returns whether Flux substitutes variables in a text before the API server sees it: nobody knows here what it names.
func hasVariable(text string) bool { return strings.Contains(text, "${") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// whyNone says which label of a selector no cluster has; "" if each is on some.
func whyNone(selector *metav1.LabelSelector, of []labels.Set) string {
	names, values := map[string]bool{}, map[string]map[string]bool{}
	for _, l := range of {
		for k, v := range l {
			if names[k] = true; values[k] == nil {
				values[k] = map[string]bool{}
			}
			values[k][v] = true
		}
	}
	wants := map[string][]string{}
	for k, v := range selector.MatchLabels {
		wants[k] = append(wants[k], v)
	}
	for _, e := range selector.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			wants[e.Key] = append(wants[e.Key], e.Values...)
		case metav1.LabelSelectorOpExists:
			wants[e.Key] = append(wants[e.Key], "")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(wants)) {
		if !names[k] {
			return fmt.Sprintf(": none has a label %q%s", k, nearest.Meant(k, slices.Sorted(maps.Keys(names))))
		}
		known := slices.Sorted(maps.Keys(values[k]))
		if !slices.ContainsFunc(wants[k], func(v string) bool { return v == "" || values[k][v] }) {
			return fmt.Sprintf(": of %s there are %s%s", k, status.List(known, maxWhy), nearest.Meant(wants[k][0], known))
		}
	}
	return ""
}

// source is what the objects of a set are fetched from.
type source struct {
	set string
	key
}

// sources collects them, each with the add-ons that refer to it.
type sources map[source][]string

// note adds what an object of an add-on is fetched from, unless the hub makes it.
func (s sources) note(set, addon string, manifest *unstructured.Unstructured, shared []flux.Shared) {
	made := map[key]bool{}
	objects := []*unstructured.Unstructured{manifest}
	for _, o := range shared {
		made[key{o.Object.GroupVersionKind().GroupKind(), o.Object.GetNamespace(), o.Object.GetName()}] = true
		objects = append(objects, o.Object)
	}
	for _, o := range objects {
		for _, field := range []string{"sourceRef", "chartRef"} {
			ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", field)
			kind := schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: ref["kind"]}
			k := key{kind, cmp.Or(ref["namespace"], o.GetNamespace()), ref["name"]}
			if at := (source{set, k}); k.name != "" && !made[k] && !slices.Contains(s[at], addon) {
				s[at] = append(s[at], addon)
			}
		}
	}
}

// warnOfSources warns of sources that are neither in the files nor made by the hub.
func (r *renderer) warnOfSources() {
	if r.options.Incomplete {
		return
	}
	var order []group
	absent := map[group][]string{}
	for _, at := range slices.SortedFunc(maps.Keys(r.wanted), compareSources) {
		there := r.fleet.sourcesLike(at.key)
		if slices.Contains(there, at.name) || hasVariable(at.namespace+at.name) {
			continue
		}
		g := group{at.set, at.Kind, at.namespace, addonsOf(r.wanted[at])}
		if absent[g] == nil {
			order = append(order, g)
		}
		absent[g] = append(absent[g], at.name)
	}
	for _, g := range order {
		r.warnOfGroup(g, absent[g])
	}
}

// group is what is said together of sources: a name with an expression may give one for each cluster.
type group struct{ set, kind, namespace, addons string }

func (r *renderer) warnOfGroup(g group, names []string) {
	if len(names) > maxWhy {
		r.warn("AddonSet %s: %s: %d of kind %s in namespace %s are not in the files: %s", g.set, g.addons, len(names), g.kind, g.namespace,
			status.List(names, maxWhy))
		return
	}
	for _, name := range names {
		there := r.fleet.sourcesLike(key{schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: g.kind}, g.namespace, name})
		also := nearest.Meant(name, there)
		if also == "" && len(there) > 0 {
			also = "; the files have " + status.List(there, maxWhy)
		}
		r.warn("AddonSet %s: %s: %s %s/%s is not in the files%s", g.set, g.addons, g.kind, g.namespace, name, also)
	}
}

// sourcesLike returns the names of the sources in the files that have the kind and the namespace of one.
func (f *Fleet) sourcesLike(k key) []string {
	var there []string
	for _, o := range f.sources {
		if o.GroupKind == k.GroupKind && (o.namespace == k.namespace || o.namespace == "") { // a kustomization may say the namespace
			there = append(there, o.name)
		}
	}
	return there
}

func addonsOf(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("add-on %q", names[0])
	}
	return "add-ons " + status.List(names, maxWhy)
}

func compareSources(a, b source) int {
	return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}
