// SPDX-License-Identifier: Apache-2.0

// Package fleet reads the fleet of a live hub in the form in which it is read from files.
package fleet

import (
	"context"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/clusterreader"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/snapshot"
	"github.com/chandler-hub/chandler/internal/team"
)

// Fleet is everything that a hub looks at.
type Fleet struct {
	Objects []preview.Object
	// Documents are the ConfigMaps and Secrets that sets refer to and that were read so far.
	Documents map[snapshot.Ref]document.Document
	// Notes say what could not be read.
	Notes []string

	reader *live.Reader
	ctx    context.Context //nolint:containedctx // one fleet is read by one command
}

// file is what messages name in place of a file.
const file = "the hub"

// Read connects to a hub, and reads its sets, Teams and clusters. Of Secrets it reads metadata alone.
func Read(ctx context.Context, c *hub.Connection) (*Fleet, error) {
	if err := c.Ask(ctx); err != nil {
		return nil, err
	}
	f := &Fleet{Documents: map[snapshot.Ref]document.Document{}, reader: &c.Reader, ctx: ctx}
	for _, step := range []func() error{f.sets, f.teams, f.registrations, f.origins, f.namespaces} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Fleet) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// list lists a kind in all namespaces.
func (f *Fleet) list(what string, list client.ObjectList, needed bool, opts ...client.ListOption) error {
	return f.listed(what, needed, f.reader.Client.List(f.ctx, list, opts...))
}

// listed says why a kind could not be listed. What a fleet cannot do without is an error, and a note otherwise.
func (f *Fleet) listed(what string, needed bool, err error) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err) && needed:
		return live.NoHub(what)
	case meta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err) && !needed:
		f.note("you may not list the %s: what expressions make of them may be otherwise on the hub", what)
		return nil
	}
	return fmt.Errorf("list the %s of all namespaces: %w", what, err)
}

// sets leaves out those that the hub makes for Teams: they follow from the Teams.
func (f *Fleet) sets() error {
	list := &hubv1.AddonSetList{}
	err := f.list("AddonSets", list, true)
	for i := range list.Items {
		s := &list.Items[i]
		if name := s.Labels[hubv1.TeamLabel]; name != "" && s.Name == team.SetName(name) {
			continue
		}
		f.Objects = append(f.Objects, preview.Object{File: file, Kind: preview.SetKind, Namespace: s.Namespace, Name: s.Name, Set: s})
	}
	return err
}

func (f *Fleet) teams() error {
	list := &hubv1.TeamList{}
	err := f.list("Teams", list, true)
	for i := range list.Items {
		t := &list.Items[i]
		f.Objects = append(f.Objects, preview.Object{File: file, Kind: preview.TeamKind, Namespace: t.Namespace, Name: t.Name, Team: t})
	}
	return err
}

func (f *Fleet) registrations() error {
	list := &hubv1.ClusterRegistrationList{}
	err := f.list("ClusterRegistrations", list, true)
	for i := range list.Items {
		r := &list.Items[i]
		f.Objects = append(f.Objects, preview.Object{File: file, Kind: preview.RegistrationKind, Namespace: r.Namespace, Name: r.Name,
			Registration: r})
	}
	return err
}

// origins reads what the registrations come from, of each kind in the version that the API server prefers.
func (f *Fleet) origins() error {
	named := map[schema.GroupKind]map[types.NamespacedName]bool{}
	for i := range f.Objects {
		reg := f.Objects[i].Registration
		if reg == nil || reg.Spec.OriginRef == nil {
			continue
		}
		gk := schema.GroupKind{Group: reg.Spec.OriginRef.APIGroup, Kind: reg.Spec.OriginRef.Kind}
		if named[gk] == nil {
			named[gk] = map[types.NamespacedName]bool{}
		}
		named[gk][types.NamespacedName{Namespace: reg.Namespace, Name: reg.Spec.OriginRef.Name}] = true
	}
	for _, kind := range origin.Kinds {
		if len(named[kind.GroupKind]) == 0 {
			continue
		}
		if err := f.originsOf(kind, named[kind.GroupKind]); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) originsOf(kind origin.Kind, named map[types.NamespacedName]bool) error {
	what, opts := kind.Kind+"s", []client.ListOption(nil)
	if kind == origin.Secret {
		what = "metadata of Secrets"
		if !f.reader.Hub.Origins.HasRules(kind) { // a rule registers those that have no label
			opts = append(opts, client.HasLabels{hubv1.RegisterLabel})
		}
	}
	found, err := f.reader.Origins(f.ctx, kind, opts...)
	for _, u := range found {
		if named[client.ObjectKeyFromObject(u)] {
			f.Objects = append(f.Objects, preview.Object{File: file, Kind: kind.GroupKind, Namespace: u.GetNamespace(), Name: u.GetName(),
				Origin: u})
		}
	}
	return f.listed(what, false, err)
}

// namespaces reads those that say whether Secrets may register clusters there.
func (f *Fleet) namespaces() error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err := f.list("Namespaces", list, false, client.HasLabels{hubv1.RegisterSecretsLabel})
	for i := range list.Items {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		u.SetName(list.Items[i].Name)
		u.SetLabels(list.Items[i].Labels)
		f.Objects = append(f.Objects, preview.Object{File: file, Kind: schema.GroupKind{Kind: "Namespace"}, Name: u.GetName(), Origin: u})
	}
	return err
}

// Document reads a ConfigMap or Secret that a set of a namespace refers to, once. What cannot be read is noted, and counts as not there.
// For a Secret it keeps only the names of the keys, and whether it contains CustomResourceDefinitions. What lies beside a cluster and is
// not shared with the set's namespace is not kept: the files of `chandler export` are handed on.
func (f *Fleet) Document(of string, ref document.Ref) document.Document {
	namespace, ref := ref.In(of)
	at := snapshot.Ref{Namespace: namespace, Ref: ref}
	if doc, ok := f.Documents[at]; ok {
		return doc
	}
	doc, err := clusterreader.Document(f.ctx, f.reader.Client, namespace, ref)
	if err != nil {
		f.note("%s", err)
	}
	if ref.Kind == "Secret" && doc.Found {
		doc = preview.SecretDocument(&doc) // the resource version says nothing to a person
	}
	if namespace != of && !slices.Contains(doc.SharedWith, of) {
		return document.Document{}
	}
	f.Documents[at] = doc
	return doc
}

// Source reads the spec of a Flux source. What cannot be read is noted, and counts as not known.
func (f *Fleet) Source(kind, namespace, name string) map[string]any {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(kind))
	if err := f.reader.Client.Get(f.ctx, client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		if !apierrors.IsNotFound(err) {
			f.note("read %s %s/%s: %s", kind, namespace, name, err)
		}
		return nil
	}
	spec, _ := u.Object["spec"].(map[string]any)
	return spec
}
