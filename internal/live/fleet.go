// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/snapshot"
	"github.com/chandler-hub/chandler/internal/team"
)

// Fleet is everything that a hub looks at, in the form in which it is read from files.
type Fleet struct {
	Objects []preview.Object
	// Documents are the ConfigMaps and Secrets that sets refer to and that were read so far.
	Documents map[snapshot.Ref]render.Document
	// Notes say what could not be read.
	Notes []string

	reader *Reader
	ctx    context.Context //nolint:containedctx // one fleet is read by one command
}

// file is what messages name in place of a file.
const file = "the hub"

// Fleet reads the sets, Teams and clusters of a hub. Of Secrets it reads metadata alone.
func (r *Reader) Fleet(ctx context.Context) (*Fleet, error) {
	f := &Fleet{Documents: map[snapshot.Ref]render.Document{}, reader: r, ctx: ctx}
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

// list lists a kind in all namespaces. What a fleet cannot do without is an error, and a note otherwise.
func (f *Fleet) list(what string, list client.ObjectList, needed bool, opts ...client.ListOption) (ok bool, err error) {
	err = f.reader.Client.List(f.ctx, list, opts...)
	switch {
	case err == nil:
		return true, nil
	case meta.IsNoMatchError(err) && needed:
		return false, fmt.Errorf("this API server has no %s, so %w: choose another one by --context or --kubeconfig", what, ErrNoHub)
	case meta.IsNoMatchError(err):
		return false, nil
	case apierrors.IsForbidden(err) && !needed:
		f.note("you may not list the %s: what expressions make of them may be otherwise on the hub", what)
		return false, nil
	}
	return false, fmt.Errorf("list the %s of all namespaces: %w", what, err)
}

// sets leaves out those that the hub makes for Teams: they follow from the Teams.
func (f *Fleet) sets() error {
	list := &hubv1.AddonSetList{}
	_, err := f.list("AddonSets", list, true)
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
	_, err := f.list("Teams", list, true)
	for i := range list.Items {
		t := &list.Items[i]
		f.Objects = append(f.Objects, preview.Object{File: file, Kind: preview.TeamKind, Namespace: t.Namespace, Name: t.Name, Team: t})
	}
	return err
}

func (f *Fleet) registrations() error {
	list := &hubv1.ClusterRegistrationList{}
	_, err := f.list("ClusterRegistrations", list, true)
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
	mapping, err := f.reader.Client.RESTMapper().RESTMapping(kind.GroupKind)
	if meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look for %s: %w", kind.Kind, err)
	}
	gvk := mapping.GroupVersionKind
	gvk.Kind += "List"
	take := func(u *unstructured.Unstructured) {
		if named[client.ObjectKeyFromObject(u)] {
			f.Objects = append(f.Objects, preview.Object{File: file, Kind: kind.GroupKind, Namespace: u.GetNamespace(), Name: u.GetName(),
				Origin: u})
		}
	}
	if kind.GroupKind != origin.Secret.GroupKind {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		_, err := f.list(kind.Kind+"s", list, false)
		for i := range list.Items {
			take(&list.Items[i])
		}
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	var labelled []client.ListOption
	if !f.reader.Hub.Origins.HasRules(kind) { // a rule registers those that have no label
		labelled = append(labelled, client.HasLabels{hubv1.RegisterLabel})
	}
	_, err = f.list("metadata of Secrets", list, false, labelled...)
	for i := range list.Items {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
		if err != nil {
			return fmt.Errorf("read the metadata of a Secret: %w", err)
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetGroupVersionKind(mapping.GroupVersionKind)
		take(u)
	}
	return err
}

// namespaces reads those that say whether Secrets may register clusters there.
func (f *Fleet) namespaces() error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	_, err := f.list("Namespaces", list, false, client.HasLabels{hubv1.RegisterSecretsLabel})
	for i := range list.Items {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		u.SetName(list.Items[i].Name)
		u.SetLabels(list.Items[i].Labels)
		f.Objects = append(f.Objects, preview.Object{File: file, Kind: schema.GroupKind{Kind: "Namespace"}, Name: u.GetName(), Origin: u})
	}
	return err
}

// Document reads a ConfigMap or Secret that a set refers to, once. What cannot be read is noted, and counts as not there. For a Secret
// it keeps only the names of the keys, and whether it contains CustomResourceDefinitions.
func (f *Fleet) Document(namespace string, ref render.Ref) render.Document {
	namespace, ref = ref.In(namespace)
	at := snapshot.Ref{Namespace: namespace, Ref: ref}
	if doc, ok := f.Documents[at]; ok {
		return doc
	}
	g := &gatherer{Reader: f.reader, ctx: f.ctx, documents: map[place]render.Document{}}
	doc, err := g.document(namespace, ref)
	if err != nil {
		f.note("%s", err)
	}
	if ref.Kind == "Secret" && doc.Found {
		doc = preview.SecretDocument(&doc) // the resource version says nothing to a person
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

// Published returns the flags that the hub publishes; nil if it publishes none, or the caller may not read them.
func (r *Reader) Published(ctx context.Context, namespace string) map[string]string {
	published := &corev1.ConfigMap{}
	if r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published) != nil {
		return nil
	}
	return published.Data
}

// Rules returns the rules by which the hub checks kubeconfigs, as it publishes them. If it is not known which they are, it says why, and
// they are those of a hub without flags.
func (r *Reader) Rules(ctx context.Context, namespace string) (rules kubeconfig.Rules, unknown string, err error) {
	where := fmt.Sprintf("ConfigMap %s/%s", namespace, hubconfig.ConfigMapName)
	published := &corev1.ConfigMap{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published)
	switch {
	case apierrors.IsForbidden(err):
		return rules, "you may not read " + where, nil
	case apierrors.IsNotFound(err):
		return rules, "there is no " + where + " (--hub-namespace)", nil
	case err != nil:
		return rules, "", fmt.Errorf("read %s: %w", where, err)
	}
	rules, whole, err := hubconfig.PublishedRules(published.Data)
	if err != nil {
		return rules, "", fmt.Errorf("%s: %w", where, err)
	}
	if !whole {
		unknown = where + " has none, or not all: it is that of another version of the hub"
	}
	return rules, unknown, nil
}

// FindRevisions returns the revisions of these names, which must be of one set, and that set's name.
func (r *Reader) FindRevisions(ctx context.Context, names []string, namespace string) (out []appsv1.ControllerRevision,
	set types.NamespacedName, err error) {
	list := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.HasLabels{hubv1.AddonSetLabel}); err != nil {
		return nil, set, fmt.Errorf("list the ControllerRevisions: %w", err)
	}
	for _, name := range names {
		at := slices.IndexFunc(list.Items, func(one appsv1.ControllerRevision) bool {
			owner := metav1.GetControllerOf(&one)
			return one.Name == name && owner != nil && owner.Kind == preview.SetKind.Kind
		})
		if at < 0 {
			return nil, set, fmt.Errorf("there is no revision %q of an AddonSet: `chandler rollout history SET` lists them", name)
		}
		one := list.Items[at]
		of := types.NamespacedName{Namespace: one.Namespace, Name: metav1.GetControllerOf(&one).Name}
		if len(out) > 0 && of != set {
			return nil, set, fmt.Errorf("revision %q is of AddonSet %s, and %q of %s: write two of one set", names[0], set, name, of)
		}
		set, out = of, append(out, one)
	}
	return out, set, nil
}
