// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// A set reads ConfigMaps and Secrets of its own namespace. With from: Cluster it reads one of the namespace of the
// cluster's registration, where Cluster API, Kamaji and others write what belongs to a cluster. Flux cannot read it
// there, so the hub keeps a copy beside the set.
//
// Who may write in that namespace decides the values: the author of the set wanted it so. Which namespaces may have an
// object is decided by its owner, by ShareAnnotation: the hub may read every Secret, and the author of a set may not.

// beside reads an object beside the cluster. as is the name by which Flux finds it in the set's namespace. An object
// that is not there counts as one that is not shared: the author of a set is not told of what others have.
func (r *renderer) beside(path string, ref document.Ref) (doc document.Document, as string, known bool, err error) {
	if what := validation.IsDNS1123Subdomain(ref.Name); len(what) > 0 { // a client refuses to ask for such a name
		return document.Document{}, "", false, compile.Error{Path: path,
			Message: fmt.Sprintf("the name is %q, which no object can be called: %s", ref.Name, what[0])}
	}
	at := r.t.Registration.Namespace
	if at == r.t.Namespace {
		doc, known, err = r.referTo(path, ref)
		return doc, ref.Name, known, err
	}
	ref.Namespace, as = at, identity.Copy(r.t.HubID, r.t.Registration, r.t.Delivery, ref.Kind, ref.Name)
	doc, known, err = r.referTo(path, ref)
	if known && !slices.Contains(doc.SharedWith, r.t.Namespace) {
		doc = document.Document{}
	}
	return doc, as, known, err
}

// maxReferences is how many documents a set may refer to on one cluster: the hub notes for each of them who is to be woken when it changes.
const maxReferences = 1000

// referTo reads a document, unless the set refers to too many on this cluster.
func (r *renderer) referTo(path string, ref document.Ref) (doc document.Document, known bool, err error) {
	if len(r.referred) >= maxReferences && !r.referred[ref] {
		return document.Document{}, false, compile.Error{Path: path, Message: fmt.Sprintf("the set refers to more than %d ConfigMaps "+
			"and Secrets on this cluster; split it, or put more into each", maxReferences)}
	}
	doc, known = r.document(ref)
	return doc, known, nil
}

// absent says what is wrong with a reference to nothing.
func (r *renderer) absent(path, kind, name string, beside bool) error {
	text := fmt.Sprintf("%s %q is not in namespace %q; make it, or write optional: true", kind, name, r.t.Namespace)
	if beside && r.t.Registration.Namespace != r.t.Namespace {
		text = fmt.Sprintf("no %s %q in namespace %q, where the cluster is registered, is shared with namespace %q; if there is one, "+
			"its owner shares it by annotation %s: %s, and otherwise write optional: true", kind, name, r.t.Registration.Namespace,
			r.t.Namespace, hubv1.ShareAnnotation, r.t.Namespace)
	}
	return compile.Error{Path: path, Absent: true, Message: text}
}

// needsLiteral says why something is refused, as far as the remedy without an upgrade.
const needsLiteral = "this needs Flux 2.9 or newer: an older one lets a comma in a text set other values of the chart. Upgrade Flux, " +
	"CRDs first, or write "

// copies makes the entries of valuesFrom and substituteFrom with from: Cluster refer to the hub's copies. It returns
// the body that Flux gets.
func (r *renderer) copies(a *compile.Addon, body map[string]any) (map[string]any, []document.Copy, error) {
	if a.Kind == fluxspec.ManifestsKind {
		return body, nil, nil // manifestsFrom does it
	}
	path, entries := fluxspec.Documents(a.Kind, body)
	var changed []any
	var out []document.Copy
	for i := range entries {
		entry, said := fluxspec.WithoutFrom(entries[i])
		if !said {
			continue
		}
		ref, at := maps.Clone(entry.(map[string]any)), fmt.Sprintf("%s.%s[%d]", compile.Field(a.Kind), path, i)
		if _, says := ref["literal"]; ref["targetPath"] != nil && !says {
			if !fluxspec.KnowsLiteral(r.p.Schemas) {
				return nil, nil, compile.Error{Path: at + ".targetPath", Message: needsLiteral + "a key with whole values, without targetPath"}
			}
			ref["literal"] = true // otherwise a comma in the value sets other values of the chart
		}
		c, err := r.copyOf(at, a.Kind, ref)
		if err != nil {
			return nil, nil, err
		}
		if c != nil {
			out = append(out, *c)
		}
		if changed == nil {
			changed = slices.Clone(entries)
		}
		changed[i] = ref
	}
	if changed == nil {
		return body, nil, nil
	}
	return fluxspec.SetDocuments(a.Kind, body, changed), out, nil
}

// copyOf returns the copy for an entry, and writes the copy's name into the entry. It returns nil if there is nothing to
// copy: the object is optional, not known yet, or in the set's namespace.
func (r *renderer) copyOf(path, form string, entry map[string]any) (*document.Copy, error) {
	kind, _ := entry["kind"].(string)
	name, _ := entry["name"].(string)
	optional, _ := entry["optional"].(bool)
	ref := document.Ref{Kind: kind, Name: name}
	doc, as, known, err := r.beside(path, ref)
	if err != nil || !known {
		return nil, err
	}
	entry["name"] = as
	if !doc.Found {
		if optional {
			return nil, nil
		}
		return nil, r.absent(path, kind, name, true)
	}
	keys := doc.Keys // Flux substitutes all of them
	if form == fluxspec.HelmReleaseKind {
		said, _ := entry["valuesKey"].(string)
		key := meta.ValuesReference{ValuesKey: said}.GetValuesKey()
		if !slices.Contains(doc.Keys, key) { // for Flux that is an error though the entry is optional
			return nil, compile.Error{Path: path, Message: fmt.Sprintf("%s %q beside the cluster has no key %q; %s", kind, name, key,
				hasKeys(doc.Keys, key))}
		}
		keys = []string{key}
	}
	if as == name {
		return nil, nil
	}
	ref.Namespace = r.t.Registration.Namespace
	return &document.Copy{Ref: ref, As: as, Keys: keys}, nil
}

// fromCluster reads a ConfigMap of variables beside the cluster. Its variables are the cluster's, and so is all that rests
// on them.
func (r *renderer) fromCluster(path, name string, optional bool) error {
	doc, _, known, err := r.beside(path, document.Ref{Kind: configMapKind, Name: name})
	switch {
	case err != nil || !known:
		return err
	case doc.Found:
		r.besides = append(r.besides, layerOf(fmt.Sprintf("ConfigMap %q beside the cluster", name), &doc))
	case !optional:
		return r.absent(path, configMapKind, name, true)
	}
	return nil
}

// configMapKind is the kind of the documents that hold variables.
const configMapKind = "ConfigMap"
