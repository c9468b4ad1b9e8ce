// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// Fleet is all objects of the files, and the clusters that the hub would find in them.
type Fleet struct {
	sets      []*hubv1.AddonSet
	teams     []hubv1.Team
	members   []*member
	documents map[key]document.Document
	// contents changes when what a Secret of the files holds does.
	contents map[key]string
	// originals are what lies beside clusters, by the copies that the hub would make.
	originals map[key]key
	// read reads a document that is not among them; nil if there are no others. pins are what revisions hold, by set.
	read func(namespace string, ref document.Ref) document.Document
	pins map[string]*compile.Pins
	// flux are the Flux objects of the files, whoever made them. Only a dump has those of the hub.
	flux []client.Object
	// sources are the Flux sources of the files, and specs what these say. readSource reads one that is not among them.
	sources    []key
	specs      map[key]map[string]any
	readSource func(kind, namespace, name string) map[string]any
	warnings   []string
}

// member is one cluster.
type member struct {
	registration *hubv1.ClusterRegistration
	origin       *unstructured.Unstructured // nil if it is not in the files
}

func (m *member) String() string { return m.registration.Namespace + "/" + m.registration.Name }

// shows returns the values of the cluster's labels, annotations and variables, as messages show them.
func (m *member) shows() []string {
	out := slices.Concat(slices.Collect(maps.Values(m.registration.Labels)), slices.Collect(maps.Values(m.registration.Annotations)))
	layers, _ := facts.Variables(m.registration, m.origin)
	for _, layer := range layers {
		for _, v := range layer.Values {
			switch v := v.(type) {
			case string, bool, int64, float64:
				out = append(out, fmt.Sprint(v))
			}
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(v string) bool { return v == "" })
}

// registrations returns those of all clusters.
func (f *Fleet) registrations() []hubv1.ClusterRegistration {
	out := make([]hubv1.ClusterRegistration, len(f.members))
	for i, m := range f.members {
		out[i] = *m.registration
	}
	return out
}

// key names an object.
type key struct {
	schema.GroupKind
	namespace, name string
}

func (o *Object) key() key { return key{o.Kind, o.Namespace, o.Name} }

// NewFleet collects the objects of all files, and registers the origins among them as discovery would. It returns a
// fleet even with an error: of two objects with the same name it keeps the first.
func NewFleet(objects []Object, policy origin.Policy) (*Fleet, error) {
	f := &Fleet{documents: map[key]document.Document{}, originals: map[key]key{}, contents: map[key]string{}, specs: map[key]map[string]any{}}
	d := newDiscovery(policy, f.warn)
	seen := map[key]string{}
	var errs []error
	for i := range objects {
		o := &objects[i]
		if o.Flux != nil {
			f.flux = append(f.flux, o.Flux)
			continue
		}
		if o.Source {
			f.sources = append(f.sources, o.key())
			f.specs[o.key()] = o.Spec
			continue
		}
		if file, ok := seen[o.key()]; ok {
			errs = append(errs, fmt.Errorf("%s: %s exists twice: it is in %s already; remove one of them", o.File, o, file))
			continue
		}
		seen[o.key()] = o.File
		f.take(o, d)
	}
	d.run()
	for _, m := range d.registrations {
		f.members = append(f.members, m)
	}
	slices.SortFunc(f.sets, func(a, b *hubv1.AddonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(f.members, func(a, b *member) int {
		x, y := a.registration, b.registration
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return f, errors.Join(append(errs, d.errs...)...)
}

// take puts an object where it belongs.
func (f *Fleet) take(o *Object, d *discovery) {
	switch {
	case o.Set != nil && o.Set.DeletionTimestamp != nil, o.Team != nil && o.Team.DeletionTimestamp != nil,
		o.Registration != nil && o.Registration.DeletionTimestamp != nil:
		f.warn("%s is being deleted, and counts as gone", o)
	case o.Set != nil:
		set := o.Set.DeepCopy()
		set.Namespace = o.Namespace
		f.sets = append(f.sets, set)
	case o.Team != nil:
		t := o.Team.DeepCopy()
		t.Namespace = o.Namespace
		f.teams = append(f.teams, *t)
	case o.Registration != nil:
		reg := o.Registration.DeepCopy()
		reg.Namespace = o.Namespace
		d.registrations[o.key()] = &member{registration: reg}
	}
	if o.Document != nil {
		f.documents[o.key()] = *o.Document
	}
	if o.content != "" {
		f.contents[o.key()] = o.content
	}
	if o.Kind == namespaceKind {
		d.namespaces[o.Name] = o.Origin.GetLabels()
		return
	}
	if o.Origin != nil {
		d.origins[o.key()] = o.Origin
		d.order = append(d.order, o.key())
	}
}

func (f *Fleet) warn(format string, args ...any) {
	f.warnings = append(f.warnings, oneLine(fmt.Sprintf(format, args...)))
}

// live returns whether the fleet has all that a hub has: then what is not in it is nowhere.
func (f *Fleet) live() bool { return f.read != nil }

// document returns a ConfigMap or Secret to which a set of a namespace, or what it delivers, refers.
func (f *Fleet) document(namespace string, ref document.Ref) document.Document {
	namespace, ref = ref.In(namespace)
	k := f.original(ref.Kind, namespace, ref.Name)
	doc, known := f.documents[k]
	if !known && f.read != nil {
		doc = f.read(k.namespace, document.Ref{Kind: k.Kind, Name: k.name})
		f.documents[k] = doc
	}
	return doc
}

// copied notes the copies of what lies beside clusters that the hub would make in a namespace.
func (f *Fleet) copied(namespace string, result *render.Result) {
	for i := range result.Objects {
		for _, c := range result.Objects[i].Copies {
			kind := schema.GroupKind{Kind: c.Kind}
			f.originals[key{kind, namespace, c.As}] = key{kind, c.Namespace, c.Name}
		}
	}
}

// original names a ConfigMap or Secret, and in place of a copy what it is copied from.
func (f *Fleet) original(kind, namespace, name string) key {
	k := key{schema.GroupKind{Kind: kind}, namespace, name}
	if of, is := f.originals[k]; is {
		return of
	}
	return k
}
