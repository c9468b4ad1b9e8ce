// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dependencies finds the objects that one depends on.
func (f *folder) dependencies(m *member, spec map[string]any) string {
	list, _, err := unstructured.NestedSlice(spec, "dependsOn")
	if err != nil {
		return "spec.dependsOn is not a list"
	}
	for _, x := range list {
		d, _ := x.(map[string]any)
		name, _ := d["name"].(string)
		namespace, _ := d["namespace"].(string)
		need := m.GetKind() + " " + cmp.Or(namespace, m.GetNamespace()) + "/" + name
		if d["readyExpr"] != nil {
			m.judged = append(m.judged, need)
		}
		m.needs = append(m.needs, need)
	}
	slices.Sort(m.needs)
	m.needs = slices.Compact(m.needs)
	return ""
}

// note records what the set does not take over from an object.
func (m *member) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// remarks returns what the set does not take over from an object.
func (m *member) remarks() []string {
	out := slices.Clone(m.notes)
	for _, need := range m.judged {
		if slices.Contains(m.needs, need) {
			out = append(out, "spec.dependsOn has a readyExpr for "+need+", which the add-on does not take over: it waits until "+
				"that is Ready")
		}
	}
	if own := m.ownMetadata(); len(own) > 0 {
		out = append(out, "the object that the hub makes does not have "+strings.Join(own, ", "))
	}
	return out
}

// tools are what begins the labels and annotations that tools put on objects.
var tools = []string{"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "reconcile.fluxcd.io/", "kubectl.kubernetes.io/",
	"meta.helm.sh/", "argocd.argoproj.io/", "app.kubernetes.io/", "helm.sh/", "chandler.dev/"}

func byTool(key string) bool {
	return slices.ContainsFunc(tools, func(tool string) bool { return strings.HasPrefix(key, tool) })
}

// ownMetadata returns the labels and annotations that people put on an object, and that the set does not have.
func (m *member) ownMetadata() []string {
	var out []string
	for what, texts := range map[string]map[string]string{"annotation ": m.GetAnnotations(), "label ": m.GetLabels()} {
		for k := range texts {
			if !byTool(k) && !m.carried[what+k] {
				out = append(out, what+k)
			}
		}
	}
	slices.Sort(out)
	return out
}

// dependable takes out of dependsOn what an add-on cannot wait for. The object runs already, so its order no longer matters
// to it, and a note says what a new cluster would miss. It is called again when more objects turn out to be left.
func (f *folder) dependable(members []*member) {
	there := map[string]*member{}
	for _, m := range members {
		there[m.key()] = m
	}
	for _, m := range members {
		m.needs = slices.DeleteFunc(m.needs, func(need string) bool {
			why := f.cannotWait(m, need, there[need])
			if why == "" && there[need] != nil {
				return false
			}
			if why != "" {
				m.note("the add-on does not wait for %s, which spec.dependsOn names: %s", need, why)
			}
			return true
		})
	}
}

// cannotWait says why an add-on cannot wait for what an object needs; "" if it can, or has no need to, since the hub waits
// for the cluster anyway.
func (f *folder) cannotWait(m *member, need string, other *member) string {
	switch {
	case other == nil && f.makes(need, m.cluster):
		return ""
	case other == nil && f.left[need]:
		return "that is left as it is"
	case other == nil && f.reads(need):
		return "that is for the management cluster, and add-ons wait for add-ons of their cluster only. The hub waits for the cluster itself"
	case other == nil && m.cluster.calledLike(need):
		return "it is not among what was read. It is called like the cluster, and so seems to make it. The hub waits for the cluster itself"
	case other == nil:
		return "it is not among what was read. If it is an add-on of the cluster, import it too"
	case other.cluster != m.cluster:
		return fmt.Sprintf("that is for another cluster, %s, and add-ons wait for those of their own cluster only", other.cluster)
	case other.home != m.home:
		return fmt.Sprintf("the set of that one has to be in namespace %q, and add-ons wait for those of their own namespace only, %q",
			other.home, m.home)
	}
	return ""
}

// makes returns whether an object makes a cluster: Flux notes in labels what applies each object.
func (f *folder) makes(need string, c *Cluster) bool {
	for _, o := range f.in.Origins {
		if madeBy(&Object{Unstructured: o}) == need && c.comesFrom(o) {
			return true
		}
	}
	return false
}

// calledLike returns whether an object has the name and namespace of the cluster.
func (c *Cluster) calledLike(object string) bool {
	_, name, _ := strings.Cut(object, " ")
	return slices.Contains([]string{c.Namespace + "/" + c.Origin, c.Namespace + "/" + shortName(c)}, name)
}

// reads returns whether an object is among those that were read.
func (f *folder) reads(need string) bool {
	_, found := slices.BinarySearchFunc(f.in.Objects, need, func(o Object, key string) int { return cmp.Compare(o.key(), key) })
	return found
}

// homes decides in which namespace the set of each add-on goes: that of the objects, if Flux resolves anything there, and
// with these all that they wait for or that waits for them.
func (f *folder) homes(members []*member) {
	byKey := map[string]*member{}
	for _, m := range members {
		byKey[m.key()] = m
		m.home = f.in.Namespace
		m.local = local(m.GetKind(), m.GetNamespace(), m.spec(), f.in.CrossNamespace)
		if f.readsBeside(m) {
			m.local = ""
		}
		if m.local != "" || !f.in.Hub.IsPlatform(m.home) {
			m.home = m.GetNamespace()
		}
	}
	for changed := true; changed; {
		changed = false
		for _, m := range members {
			for _, need := range m.needs {
				changed = f.together(m, byKey[need]) || changed
			}
		}
	}
}

// together puts the set of an object, and of one that it waits for, into their own namespace, if one of them has to be
// there. It returns whether that was new. If one of them cannot be delivered from there, both stay where they are: that
// costs the order of the two, and not the other object too, with all that waits for it.
func (f *folder) together(m, other *member) bool {
	if other == nil || other.GetNamespace() != m.GetNamespace() || other.home == m.home {
		return false
	}
	at := m.GetNamespace()
	for _, one := range []*member{m, other} {
		was := one.home
		one.home = at
		why := f.place(one)
		one.home = was
		if why != "" {
			return false
		}
	}
	for _, one := range []*member{m, other} {
		if one.local == "" {
			one.local = "dependsOn"
		}
		one.home = at
	}
	return true
}
