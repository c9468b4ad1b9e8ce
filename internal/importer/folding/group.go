// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// group is one add-on: the same one on several clusters.
type group struct {
	name    string
	home    string
	kind    string
	members []*member
	set     *set
}

// groups puts together what is the same add-on on several clusters: of one kind, with one name and one release, but for
// the cluster's name, that waits for the same add-ons.
func groups(members []*member, reserved map[string]bool) []*group {
	byKey := map[string]*member{}
	for _, m := range members {
		byKey[m.key()] = m
	}
	found := map[string]*group{}
	var order []string
	add := func(key string, m *member) {
		if found[key] == nil {
			found[key] = &group{home: m.home, kind: m.GetKind()}
			order = append(order, key)
		}
		found[key].members = append(found[key].members, m)
	}
	for _, m := range sorted(members) {
		needs := make([]string, len(m.needs))
		for i, need := range m.needs {
			needs[i] = likeness(byKey[need])
		}
		slices.Sort(needs)
		add(likeness(m)+" after "+strings.Join(needs, ", "), m)
	}
	var out []*group
	for _, key := range order {
		out = append(out, found[key].apart()...)
	}
	name(out, reserved)
	return out
}

func sorted(members []*member) []*member {
	return slices.SortedFunc(slices.Values(members), func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.cluster.String(), b.cluster.String()), cmp.Compare(a.key(), b.key()))
	})
}

// likeness is the same for objects that are one add-on.
func likeness(m *member) string {
	text := func(field string) string { s, _ := m.body[field].(string); return without(s, m.cluster, "\x00") }
	if m.GetKind() == fluxspec.KustomizationKind {
		return fmt.Sprint(m.home, " ", m.GetKind(), " ", called(m))
	}
	return fmt.Sprint(m.home, " ", m.GetKind(), " ", called(m), " ", text("targetNamespace"), " ", text("storageNamespace"))
}

// without returns a text with something in place of the cluster's names.
func without(s string, c *Cluster, instead string) string {
	for _, t := range tokensOf(c) {
		at := places(s, t.name)
		for _, i := range slices.Backward(at) {
			s = s[:i] + instead + s[i+len(t.name):]
		}
	}
	return s
}

// called returns what an object is called without the name of its cluster: that of its release, or its own.
func called(m *member) string {
	if release, _ := m.spec()["releaseName"].(string); release != "" {
		if s := label(without(release, m.cluster, "")); s != "" {
			return s
		}
	}
	if s := label(without(m.GetName(), m.cluster, "")); s != "" {
		return s
	}
	if m.GetKind() == fluxspec.HelmReleaseKind {
		if s := label(fluxspec.ChartName(m.body)); s != "" {
			return s
		}
	}
	// A folder that is named after the cluster as well says nothing either, and the one that it lies in may.
	folder, _ := m.body["path"].(string)
	own := func(folder string) string { return label(without(path.Base(folder), m.cluster, "")) }
	return cmp.Or(own(folder), own(path.Dir(folder)), strings.ToLower(m.GetKind()))
}

// maxName is how long the name of an add-on or of an overlay is at most.
const maxName = 53

// label makes a text fit to be a name: small letters, digits and single dashes.
func label(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			b.WriteRune(r)
		} else if n := b.Len(); n > 0 && b.String()[n-1] != '-' {
			b.WriteByte('-')
		}
	}
	out := b.String()
	if len(out) > maxName {
		out = out[:maxName]
	}
	return strings.Trim(out, "-")
}

// apart returns the group as it is, or, if a cluster has several of its objects, as groups of those that are also called
// alike.
func (g *group) apart() []*group {
	seen := map[*Cluster]bool{}
	twice := false
	for _, m := range g.members {
		twice = twice || seen[m.cluster]
		seen[m.cluster] = true
	}
	if !twice {
		return []*group{g}
	}
	found := map[string]*group{}
	var out []*group
	for _, m := range g.members {
		key := without(m.GetName(), m.cluster, "\x00")
		if o := found[key]; o != nil && slices.ContainsFunc(o.members, func(o *member) bool { return o.cluster == m.cluster }) {
			key = m.key()
		}
		if found[key] == nil {
			found[key] = &group{home: g.home, kind: g.kind}
			out = append(out, found[key])
		}
		found[key].members = append(found[key].members, m)
	}
	return out
}

// folder returns the name of the folder that all members have, or of the one above, though it is also that of their clusters, or of
// their namespace; "" if they differ in it.
func (g *group) folder() string {
	of := func(m *member) string { text, _ := m.body["path"].(string); return text }
	for _, at := range []func(string) string{path.Clean, path.Dir} {
		name := path.Base(at(of(g.members[0])))
		differs := func(m *member) bool { return path.Base(at(of(m))) != name }
		if label(name) != "" && !slices.ContainsFunc(g.members, differs) {
			return label(name)
		}
	}
	return ""
}

// name gives each add-on a name that no other one has on any of its clusters, and that is not reserved.
func name(all []*group, reserved map[string]bool) {
	taken := map[string]bool{} // cluster, then name
	free := func(g *group, name string) bool {
		return !reserved[name] && !slices.ContainsFunc(g.members, func(m *member) bool { return taken[m.cluster.String()+" "+name] })
	}
	for _, g := range all {
		m := g.members[0]
		candidates := []string{called(m), label(without(m.GetName(), m.cluster, ""))}
		if candidates[0] == strings.ToLower(g.kind) {
			candidates = append([]string{g.folder()}, candidates...)
		}
		if ns, _ := m.body["targetNamespace"].(string); ns != "" {
			candidates = append(candidates, label(called(m)+"-"+without(ns, m.cluster, "")))
		}
		for i := 2; g.name == ""; i++ {
			for _, c := range candidates {
				if c != "" && g.name == "" && free(g, c) {
					g.name = c
				}
			}
			short := called(m)
			candidates = []string{fmt.Sprintf("%s-%d", short[:min(len(short), maxName-6)], i)}
		}
		for _, m := range g.members {
			taken[m.cluster.String()+" "+g.name] = true
		}
	}
}
