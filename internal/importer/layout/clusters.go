// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/kustomize"
)

// Fleet is what the folders of clusters hold that run Flux themselves, as if one management cluster delivered it.
type Fleet struct {
	// Objects are their HelmReleases and Kustomizations, by folder, in one namespace of the management cluster. Each has
	// the kubeconfig in the Secret that is called like its cluster.
	Objects []Object
	// Sources are the Flux sources that these refer to, in the same namespace.
	Sources []*unstructured.Unstructured
	// Notes say what else they need, and what is left out.
	Notes []string
}

// Object is an object, and the folder of its cluster.
type Object struct {
	Folder string
	*unstructured.Unstructured
}

// fleet collects a Fleet.
type fleet struct {
	tree      *Tree
	namespace string
	out       *Fleet
	// sources are those of each cluster, by kind, namespace and name; hub is what they are called on the management cluster,
	// by the cluster too.
	sources map[string]map[string]*unstructured.Unstructured
	hub     map[string]map[string]string
}

// Clusters reads a folder with one folder for each cluster. A folder without files of its own is a group of clusters; one
// that is called base is none. namespace is that on the management cluster.
func (t *Tree) Clusters(root, namespace string) (*Fleet, error) {
	f := &fleet{tree: t, namespace: namespace, out: &Fleet{}, sources: map[string]map[string]*unstructured.Unstructured{},
		hub: map[string]map[string]string{}}
	folders := f.folders(strings.Trim(path.Clean("/"+root), "/"))
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s has no folder with the files of a cluster", root)
	}
	built := map[string][]*unstructured.Unstructured{}
	owner := map[string]string{}
	for _, folder := range folders {
		cluster := path.Base(folder)
		if other := owner[cluster]; other != "" {
			return nil, fmt.Errorf("%s and %s are folders of clusters of one name: rename one", other, folder)
		}
		owner[cluster] = folder
		whole, err := t.Build(&kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{Path: folder}}, nil)
		if err != nil {
			f.note("folder %s is left out: %s", folder, err)
			continue
		}
		built[cluster] = whole.Objects
		f.sources[cluster] = map[string]*unstructured.Unstructured{}
		for _, u := range whole.Objects {
			if u.GroupVersionKind().Group == sourcev1.GroupVersion.Group {
				f.sources[cluster][id(u.GetKind(), u.GetNamespace(), u.GetName())] = u
			}
		}
	}
	f.nameSources()
	for _, cluster := range slices.Sorted(maps.Keys(built)) {
		f.cluster(cluster, owner[cluster], built[cluster])
	}
	slices.Sort(f.out.Notes)
	f.out.Notes = slices.Compact(f.out.Notes)
	return f.out, nil
}

func (f *fleet) note(format string, args ...any) {
	f.out.Notes = append(f.out.Notes, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

func id(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// folders returns the folders of clusters below one.
func (f *fleet) folders(root string) []string {
	own, below := map[string]bool{}, map[string]bool{}
	for name := range f.tree.files {
		rest, ok := strings.CutPrefix(name, root+"/")
		if !ok {
			continue
		}
		first, more, inside := strings.Cut(rest, "/")
		if !inside || first == "base" {
			continue
		}
		below[first] = true
		own[first] = own[first] || !strings.Contains(more, "/")
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if at := path.Join(root, name); own[name] {
			out = append(out, at)
		} else {
			out = append(out, f.folders(at)...)
		}
	}
	return out
}

// nameSources makes the sources of all clusters objects of the management cluster. One that is the same everywhere keeps
// its name; of one that differs, as by its branch, there is one for each content.
func (f *fleet) nameSources() {
	type content struct {
		spec any
		name string
	}
	known := map[string][]content{} // by kind, namespace and name
	taken := map[string]bool{}
	for _, cluster := range slices.Sorted(maps.Keys(f.sources)) {
		f.hub[cluster] = map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(f.sources[cluster])) {
			u := f.sources[cluster][key]
			i := slices.IndexFunc(known[key], func(c content) bool { return equality.Semantic.DeepEqual(c.spec, u.Object["spec"]) })
			if i >= 0 {
				f.hub[cluster][key] = known[key][i].name
				continue
			}
			name := u.GetName()
			branch, _, _ := unstructured.NestedString(u.Object, "spec", "ref", "branch")
			for n, candidates := 2, []string{branch, cluster}; taken[u.GetKind()+name]; n++ {
				suffix := fmt.Sprint(n)
				if len(candidates) > 0 {
					suffix, candidates = strings.ReplaceAll(candidates[0], "/", "-"), candidates[1:]
				}
				name = u.GetName() + "-" + cmp.Or(suffix, cluster)
			}
			taken[u.GetKind()+name] = true
			known[key] = append(known[key], content{u.Object["spec"], name})
			f.hub[cluster][key] = name
		}
	}
}

// cluster adds the objects of one cluster.
func (f *fleet) cluster(cluster, folder string, objects []*unstructured.Unstructured) {
	names := map[string]string{} // of objects on the management cluster, by what they are on theirs
	taken := map[string]bool{}
	var kept []*unstructured.Unstructured
	for _, u := range objects {
		group := u.GroupVersionKind().Group
		if group != helmv2.GroupVersion.Group && group != kustomizev1.GroupVersion.Group || f.itself(u, folder) {
			continue
		}
		name := cluster + "-" + u.GetName()
		if taken[u.GetKind()+name] {
			name = cluster + "-" + u.GetNamespace() + "-" + u.GetName()
		}
		taken[u.GetKind()+name] = true
		names[id(u.GetKind(), u.GetNamespace(), u.GetName())] = name
		kept = append(kept, u)
	}
	for _, u := range kept {
		if why := f.move(u, cluster, names); why != nil {
			f.note("%s of %s is left out: %s", id(u.GetKind(), u.GetNamespace(), u.GetName()), folder, why)
			continue
		}
		f.out.Objects = append(f.out.Objects, Object{folder, u})
	}
}

// itself returns whether an object applies the folder of the cluster, or one above: what bootstraps Flux there.
func (f *fleet) itself(u *unstructured.Unstructured, folder string) bool {
	at, _, _ := unstructured.NestedString(u.Object, "spec", "path")
	if u.GetKind() != fluxspec.KustomizationKind {
		return false
	}
	at = strings.Trim(path.Clean("/"+at), "/")
	return at == "" || at == folder || strings.HasPrefix(folder, at+"/")
}

// move makes an object of a cluster one of the management cluster that means the same.
func (f *fleet) move(u *unstructured.Unstructured, cluster string, names map[string]string) error {
	spec, _ := u.Object["spec"].(map[string]any)
	if spec == nil {
		return errors.New("it has no spec")
	}
	for _, field := range [][]string{{"valuesFrom"}, {"serviceAccountName"}, {"decryption"}, {"postBuild", "substituteFrom"}, {"kubeConfig"}} {
		if v, there, _ := unstructured.NestedFieldNoCopy(spec, field...); there && v != nil {
			return fmt.Errorf("spec.%s is of its cluster, and Flux would look for it on the management cluster: write the add-on by hand",
				strings.Join(field, "."))
		}
	}
	if err := f.holdsFlux(u, spec); err != nil {
		return err
	}
	if u.GetKind() == fluxspec.HelmReleaseKind {
		r := &helmv2.HelmRelease{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
			return err
		}
		spec["releaseName"], spec["targetNamespace"], spec["storageNamespace"] = r.GetReleaseName(), r.GetReleaseNamespace(),
			r.GetStorageNamespace()
	}
	for _, ref := range fluxspec.AllReferences(u.GetKind(), spec) {
		f.refer(ref.Ref, cluster, u.GetNamespace())
	}
	list, _, _ := unstructured.NestedSlice(spec, "dependsOn")
	for i := range list {
		d, _ := list[i].(map[string]any)
		name, _ := d["name"].(string)
		namespace, _ := d["namespace"].(string)
		to := names[id(u.GetKind(), cmp.Or(namespace, u.GetNamespace()), name)]
		if to == "" {
			return fmt.Errorf("spec.dependsOn names %q, which is not in the folder", name)
		}
		d["name"] = to
		delete(d, "namespace")
	}
	if len(list) > 0 {
		spec["dependsOn"] = list
	}
	spec["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": cluster}}
	u.SetName(names[id(u.GetKind(), u.GetNamespace(), u.GetName())])
	u.SetNamespace(f.namespace)
	u.SetLabels(nil)
	return nil
}

// refer makes a reference one to the source on the management cluster.
func (f *fleet) refer(ref map[string]any, cluster, namespace string) {
	kind, _ := ref["kind"].(string)
	name, _ := ref["name"].(string)
	if ns, _ := ref["namespace"].(string); ns != "" {
		namespace = ns
	}
	delete(ref, "namespace")
	key := id(kind, namespace, name)
	source := f.sources[cluster][key]
	if source == nil {
		f.note("%s %s/%s is not in the files: it has to be on the management cluster", kind, f.namespace, name)
		return
	}
	ref["name"] = f.hub[cluster][key]
	if slices.ContainsFunc(f.out.Sources, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && u.GetName() == ref["name"]
	}) {
		return
	}
	u := source.DeepCopy()
	u.Object = map[string]any{"apiVersion": u.GetAPIVersion(), "kind": kind, "spec": u.Object["spec"]}
	u.SetName(f.hub[cluster][key])
	u.SetNamespace(f.namespace)
	f.out.Sources = append(f.out.Sources, u)
	if secret, _, _ := unstructured.NestedString(u.Object, "spec", "secretRef", "name"); secret != "" {
		f.note("%s %s/%s needs Secret %q in the same namespace of the management cluster", kind, f.namespace, u.GetName(), secret)
	}
}

// holdsFlux refuses a Kustomization whose folder holds Flux objects: a cluster without Flux has no such kinds.
func (f *fleet) holdsFlux(u *unstructured.Unstructured, spec map[string]any) error {
	k := &kustomizev1.Kustomization{}
	if u.GetKind() != fluxspec.KustomizationKind || spec["path"] == nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, k) != nil {
		return nil
	}
	k = &kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{Path: k.Spec.Path}}
	built, err := f.tree.Build(k, nil)
	if errors.Is(err, kustomize.ErrNoFolder) {
		f.note("folder %s is not in the files: if it holds Flux objects, its cluster needs Flux of its own", Folder(k))
		return nil
	}
	if err != nil {
		return fmt.Errorf("its folder %s: %w", Folder(k), err)
	}
	for _, o := range built.Objects {
		if strings.HasSuffix(o.GroupVersionKind().Group, ".toolkit.fluxcd.io") {
			return fmt.Errorf("its folder %s holds Flux objects, such as %s: a cluster without Flux cannot have them. Write these as add-ons, or "+
				"deliver Flux to the cluster as an add-on", Folder(k), id(o.GetKind(), o.GetNamespace(), o.GetName()))
		}
	}
	return nil
}
