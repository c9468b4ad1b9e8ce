// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// An object in the namespace of its cluster may read values there. A set of the platform reads them with from: Cluster, when
// their owner shares them, so the object need not have a set of its own beside the cluster.

// readsBeside returns whether all that keeps an object in its own namespace is what it reads beside its cluster, and no set there could
// have it.
func (f *folder) readsBeside(m *member) bool {
	path, entries := fluxspec.Documents(m.GetKind(), m.spec())
	if m.local != path || !f.in.Hub.IsPlatform(f.in.Namespace) || m.GetNamespace() == f.in.Namespace ||
		m.GetNamespace() != m.cluster.registration().Namespace || len(entries) == 0 {
		return false
	}
	without := fluxspec.SetDocuments(m.GetKind(), m.spec(), nil)
	if local(m.GetKind(), m.GetNamespace(), without, f.in.CrossNamespace) != "" {
		return false
	}
	m.home = m.GetNamespace()
	m.beside = f.place(m) != ""
	m.home = f.in.Namespace
	return m.beside
}

// fromCluster has a body read beside the cluster, and notes who has to share what.
func (m *member) fromCluster(home string) {
	_, entries := fluxspec.Documents(m.GetKind(), m.body)
	out := make([]any, len(entries))
	for i := range entries {
		entry, _ := entries[i].(map[string]any)
		entry = maps.Clone(entry)
		entry[fluxspec.From] = fluxspec.FromCluster
		if _, says := entry["literal"]; entry["targetPath"] != nil && !says {
			entry["literal"] = false // the hub's default differs from Flux's
		}
		out[i] = entry
		note := fmt.Sprintf("it reads %v %v beside the cluster, whose owner has to share it: kubectl annotate %v %v -n %s %s=%s", entry["kind"],
			entry["name"], entry["kind"], entry["name"], m.GetNamespace(), hubv1.ShareAnnotation, home)
		if !slices.Contains(m.notes, note) {
			m.notes = append(m.notes, note)
		}
	}
	m.body = fluxspec.SetDocuments(m.GetKind(), m.body, out)
}

// document stands for what lies beside a cluster while a set is tried: it is not known what that holds.
func (s *set) document(ref document.Ref) document.Document {
	if ref.Namespace == "" {
		return document.Document{}
	}
	doc := document.Document{Found: true, SharedWith: []string{s.home}}
	for _, g := range s.groups {
		for _, m := range g.members {
			_, entries := fluxspec.Documents(m.GetKind(), m.body)
			for _, entry := range entries {
				key, _, _ := unstructured.NestedString(entry.(map[string]any), "valuesKey")
				doc.Keys = append(doc.Keys, key, "values.yaml")
			}
		}
	}
	return doc
}

// original returns a rendered object as it reads without the hub's copies.
func original(o *flux.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.Object.Object)}
	spec, _ := u.Object["spec"].(map[string]any)
	_, entries := fluxspec.Documents(o.Kind, spec)
	for i := range entries {
		entry, _ := entries[i].(map[string]any)
		at := slices.IndexFunc(o.Copies, func(c document.Copy) bool { return c.Kind == entry["kind"] && c.As == entry["name"] })
		if at < 0 {
			continue
		}
		if entry["name"] = o.Copies[at].Name; entry["literal"] == false {
			delete(entry, "literal")
		}
	}
	return u
}
