// SPDX-License-Identifier: Apache-2.0

// Package importer reads what people have, from the files of their repositories, so that it can be folded into AddonSets. It
// is pure: it gets the files, and fetches nothing.
package importer

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/importer/foreign"
	"github.com/chandler-hub/chandler/internal/importer/layout"
	"github.com/chandler-hub/chandler/internal/preview"
)

// Reader collects what is read.
type Reader struct {
	in folding.Input
	// notes are full sentences, by what they are about.
	notes map[string]string
	// templates are documents that only become objects when a variable in their names is replaced, by file.
	templates map[string][]string
	// configMaps hold the data of ConfigMaps, by namespace and name.
	configMaps map[string]map[string]string
	sources    []*unstructured.Unstructured
	foreign    []*foreign.Set
	// namespace is that of sets for objects without one.
	namespace string
}

// New returns a reader of nothing yet. namespace is that of sets for objects without one.
func New(namespace string) *Reader {
	return &Reader{namespace: namespace, notes: map[string]string{}, templates: map[string][]string{},
		configMaps: map[string]map[string]string{}}
}

// Input returns what was read.
func (r *Reader) Input() folding.Input { return r.in }

// Foreign returns the sets that were written for objects of other tools.
func (r *Reader) Foreign() []*foreign.Set { return r.foreign }

// Fleet takes a file of Rancher Fleet; false if it is none.
func (r *Reader) Fleet(file string, raw []byte) bool {
	if !foreign.IsFleetFile(file) {
		return false
	}
	set, err := foreign.Fleet(file, raw, r.namespace)
	r.write(file, set, err)
	return true
}

func (r *Reader) write(about string, set *foreign.Set, err error) {
	if err != nil {
		r.note(about, "%v", err)
		return
	}
	r.foreign = append(r.foreign, set)
}

// Sources returns the sources that objects of folders of clusters need.
func (r *Reader) Sources() []*unstructured.Unstructured { return r.sources }

// Notes returns what could not be looked into, and what was converted, in full sentences.
func (r *Reader) Notes() []string {
	for _, file := range slices.Sorted(maps.Keys(r.templates)) {
		for _, what := range r.templates[file] {
			r.note(file+what, "%s, %s: a template, since its name or namespace holds ${, and nothing here fills it: it is left out. Import the "+
				"Kustomization that applies it too, or use --from-cluster", file, what)
		}
	}
	var out []string
	for _, about := range slices.Sorted(maps.Keys(r.notes)) {
		out = append(out, r.notes[about])
	}
	return out
}

func (r *Reader) note(about, format string, args ...any) {
	r.notes[about] = strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
}

const (
	helmRelease   = "helm.toolkit.fluxcd.io/HelmRelease"
	kustomization = "kustomize.toolkit.fluxcd.io/Kustomization"
	cluster       = "cluster.x-k8s.io/Cluster"
	tenant        = "kamaji.clastix.io/TenantControlPlane"
	// resourceSet is the kind from which Flux Operator makes objects, of inputs that it may fetch.
	resourceSet = "fluxcd.controlplane.io/ResourceSet"
)

var (
	registration = hubv1.GroupVersion.Group + "/ClusterRegistration"
	addonSet     = hubv1.GroupVersion.Group + "/AddonSet"
	// taken are the kinds that Take takes.
	taken = []string{helmRelease, kustomization, "/Secret", "/ConfigMap", cluster, tenant, registration, addonSet}
)

func kindOf(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	return gvk.Group + "/" + gvk.Kind
}

// Take puts an object of a file where it belongs. Of a Secret it keeps the metadata.
func (r *Reader) Take(file string, d preview.Located) error {
	u := d.Unstructured
	if foreign.Known(u) {
		set, err := foreign.Write(u, r.namespace)
		r.write(fmt.Sprintf("%s, line %d", file, d.Line), set, err)
		return nil
	}
	if u.GetNamespace() == "" {
		u.SetNamespace("default") // as kubectl would
	}
	if kindOf(u) == resourceSet {
		r.note(file+" "+u.GetNamespace()+"/"+u.GetName(), "%s, line %d: ResourceSet %s/%s: the Flux objects that it makes are on the management "+
			"cluster only: import them from there, with --from-cluster", file, d.Line, u.GetNamespace(), u.GetName())
	}
	if !slices.Contains(taken, kindOf(u)) {
		return nil
	}
	if strings.Contains(u.GetName()+u.GetNamespace(), "${") {
		r.templates[file] = append(r.templates[file], fmt.Sprintf("line %d: %s %s", d.Line, u.GetKind(), u.GetName()))
		return nil
	}
	// No API server has such an object, and its name would be printed in commands.
	for field, problems := range map[string][]string{
		"name": content.IsDNS1123Subdomain(u.GetName()), "namespace": content.IsDNS1123Label(u.GetNamespace()),
	} {
		if len(problems) > 0 {
			return fmt.Errorf("%s, line %d: %s: metadata.%s is none that an object can have: %s", file, d.Line, u.GetKind(), field, problems[0])
		}
	}
	switch kindOf(u) {
	case registration:
		reg := hubv1.ClusterRegistration{}
		if err := preview.Strict(u, &reg); err != nil {
			return fmt.Errorf("%s, line %d: ClusterRegistration %s/%s: %w", file, d.Line, u.GetNamespace(), u.GetName(), err)
		}
		r.in.Registrations = append(r.in.Registrations, reg)
	case addonSet:
		set := hubv1.AddonSet{}
		if err := preview.Strict(u, &set); err != nil {
			return fmt.Errorf("%s, line %d: AddonSet %s/%s: %w", file, d.Line, u.GetNamespace(), u.GetName(), err)
		}
		r.in.Sets = append(r.in.Sets, set)
	default:
		r.add(folding.Object{File: file, Line: d.Line, Unstructured: u})
	}
	return nil
}

// add adds a Flux object, or what a cluster may come from.
func (r *Reader) add(o folding.Object) {
	switch kindOf(o.Unstructured) {
	case helmRelease, kustomization:
		r.in.Objects = append(r.in.Objects, o)
	case "/ConfigMap":
		data, _, err := unstructured.NestedStringMap(o.Unstructured.Object, "data")
		if err == nil {
			r.configMaps[o.GetNamespace()+"/"+o.GetName()] = data
		}
	case "/Secret":
		kept := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": o.Unstructured.Object["metadata"]}}
		annotations := kept.GetAnnotations()
		delete(annotations, corev1.LastAppliedConfigAnnotation) // holds the data
		kept.SetAnnotations(annotations)
		r.origin(kept)
	case cluster, tenant:
		r.origin(o.Unstructured)
	}
}

// origin adds what a cluster may come from, in place of the same object as it was read before.
func (r *Reader) origin(u *unstructured.Unstructured) {
	r.in.Origins = slices.DeleteFunc(r.in.Origins, func(o *unstructured.Unstructured) bool {
		return kindOf(o) == kindOf(u) && o.GetNamespace() == u.GetNamespace() && o.GetName() == u.GetName()
	})
	r.in.Origins = append(r.in.Origins, u)
}

// Clusters reads the folder with a folder for each cluster that runs Flux itself.
func (r *Reader) Clusters(tree *layout.Tree, folder, namespace string) error {
	r.in.NotHere = true
	fleet, err := tree.Clusters(path.Clean(folder), namespace)
	if err != nil {
		return err
	}
	for _, note := range fleet.Notes {
		r.note(note, "%s", note)
	}
	for _, object := range fleet.Objects {
		r.in.Objects = append(r.in.Objects, folding.Object{File: object.Folder, Line: 1, Built: true, Unstructured: object.Unstructured})
	}
	r.sources = append(r.sources, fleet.Sources...)
	return nil
}

// forAnother returns whether a Flux object is for another cluster.
func forAnother(u *unstructured.Unstructured) bool {
	kc, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "kubeConfig")
	group := u.GroupVersionKind().Group
	return kc != nil && (group == helmv2.GroupVersion.Group || group == kustomizev1.GroupVersion.Group)
}
