// SPDX-License-Identifier: Apache-2.0

package doctorreader

import (
	"cmp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/doctor"
)

// mostDeliveries is how many deliveries are looked at.
const mostDeliveries = 10_000

// fleet goes through clusters, sets, Teams and deliveries, page by page.
func (e *examiner) fleet() error {
	f, now := &e.facts.Fleet, e.facts.Now
	skip := []doctor.Check{doctor.CheckCredentials, doctor.CheckOverrides}
	if !e.read(doctor.CheckClusters, "ClusterRegistrations", e.pages(&hubv1.ClusterRegistrationList{}, func(l client.ObjectList) bool {
		for _, r := range l.(*hubv1.ClusterRegistrationList).Items {
			f.Registration(&r, now)
		}
		return true
	})) {
		for _, check := range skip {
			e.facts.Skip(check, "ClusterRegistrations: see check "+string(doctor.CheckClusters), "")
		}
	}
	e.namespaces = map[string]bool{}
	e.read(doctor.CheckSets, "AddonSets", e.pages(&hubv1.AddonSetList{}, func(l client.ObjectList) bool {
		for _, s := range l.(*hubv1.AddonSetList).Items {
			e.namespaces[s.Namespace] = true
			f.Set(&s, e.facts.Epoch, now)
		}
		return true
	}))
	e.read(doctor.CheckFlux, "Teams, and so whether --no-remote-bases matters", e.pages(&hubv1.TeamList{}, func(l client.ObjectList) bool {
		f.Teams += meta.LenList(l)
		return true
	}))
	e.read(doctor.CheckSets, "AddonDeliveries", e.pages(&hubv1.AddonDeliveryList{}, func(l client.ObjectList) bool {
		for _, d := range l.(*hubv1.AddonDeliveryList).Items {
			f.Delivery(&d)
		}
		f.Cut = f.Deliveries >= mostDeliveries && l.GetContinue() != ""
		return !f.Cut
	}))
	e.left()
	return nil
}

// left goes through the hub's Flux objects, if all deliveries are known.
func (e *examiner) left() {
	f := &e.facts.Fleet
	for _, of := range []schema.GroupVersionKind{
		helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind), kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
		if f.Cut || !e.read(doctor.CheckSets, of.Kind+"s, and so what has no delivery", e.pages(list, func(l client.ObjectList) bool {
			for _, o := range l.(*metav1.PartialObjectMetadataList).Items {
				f.FluxObject(of.Kind, &o)
			}
			return true
		}, client.HasLabels{hubv1.ClusterKeyLabel})) {
			return
		}
	}
}

// sources goes through the sources of Flux in namespaces with sets.
func (e *examiner) sources() error {
	for kind, list := range map[string]client.ObjectList{
		sourcev1.GitRepositoryKind: &sourcev1.GitRepositoryList{}, sourcev1.OCIRepositoryKind: &sourcev1.OCIRepositoryList{},
		sourcev1.HelmRepositoryKind: &sourcev1.HelmRepositoryList{}, sourcev1.HelmChartKind: &sourcev1.HelmChartList{},
		sourcev1.BucketKind: &sourcev1.BucketList{},
	} {
		e.read(doctor.CheckSources, kind+"s", e.pages(list, func(l client.ObjectList) bool {
			return meta.EachListItem(l, func(o runtime.Object) error {
				e.source(kind, o)
				return nil
			}) == nil
		}))
	}
	e.facts.Sources = e.inUse()
	slices.SortFunc(e.facts.Sources, func(a, b doctor.Source) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// source takes one source.
func (e *examiner) source(kind string, o runtime.Object) {
	s, ok := o.(interface {
		client.Object
		GetConditions() []metav1.Condition
	})
	if !ok || !e.namespaces[s.GetNamespace()] || suspended(o) {
		return
	}
	e.facts.SourcesRead++
	switch c := meta.FindStatusCondition(s.GetConditions(), hubv1.ReadyCondition); {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		e.facts.SourcesReady++
	case c.Status == metav1.ConditionFalse:
		name := kind + " " + s.GetNamespace() + "/" + s.GetName()
		e.failing = append(e.failing, failing{s, doctor.Source{Name: name, Reason: c.Reason, Message: c.Message}})
	}
}

// failing is a source that fails.
type failing struct {
	client.Object
	doctor.Source
}

// inUse keeps those of the sources that fail to which something refers. The hub keeps its charts and sources for a while after
// the last one that used them: such a failure is mended. Others judge what they have made themselves.
func (e *examiner) inUse() []doctor.Source {
	used := uses{}
	ours := func(f failing) bool {
		labels := f.GetLabels()
		return labels[hubv1.ChartLabel] != "" || labels[hubv1.SourceLabel] != ""
	}
	if slices.ContainsFunc(e.failing, ours) {
		whole := true
		for kind, list := range map[string]client.ObjectList{
			"HelmReleases": &helmv2.HelmReleaseList{}, "Kustomizations": &kustomizev1.KustomizationList{}, "HelmCharts": &sourcev1.HelmChartList{},
		} {
			whole = e.read(doctor.CheckSources, kind+", and so which sources are in use", e.pages(list, func(l client.ObjectList) bool {
				return meta.EachListItem(l, func(o runtime.Object) error {
					used.add(o)
					return nil
				}) == nil
			})) && whole
		}
		if !whole {
			used = nil
		}
	}
	var out []doctor.Source
	for _, f := range e.failing {
		if used == nil || !ours(f) || used[f.Name] != nil {
			f.Users = used.of(f.Name)
			out = append(out, f.Source)
		}
	}
	return out
}

// uses are what has each source or chart: add-ons, and charts.
type uses map[string]map[string]bool

// add takes one object.
func (u uses) add(o runtime.Object) {
	source := sourceOf(o)
	if u[source] == nil {
		u[source] = map[string]bool{}
	}
	switch o := o.(type) {
	case *sourcev1.HelmChart:
		u[source][sourcev1.HelmChartKind+" "+o.Namespace+"/"+o.Name] = true
	case client.Object:
		if labels := o.GetLabels(); labels[hubv1.AddonLabel] != "" {
			u[source]["add-on "+labels[hubv1.AddonLabel]+" of set "+o.GetNamespace()+"/"+labels[hubv1.AddonSetLabel]] = true
		}
	}
}

// of returns the add-ons that have a source, by way of a chart too.
func (u uses) of(source string) (out []string) {
	for by := range u[source] {
		if !strings.HasPrefix(by, sourcev1.HelmChartKind+" ") {
			out = append(out, by)
			continue
		}
		for of := range u[by] {
			out = append(out, of)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sourceOf names the source or chart of an object, as doctor.Source does.
func sourceOf(o runtime.Object) string {
	name := func(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }
	switch o := o.(type) {
	case *helmv2.HelmRelease:
		if ref := o.Spec.ChartRef; ref != nil {
			return name(ref.Kind, cmp.Or(ref.Namespace, o.Namespace), ref.Name)
		}
	case *kustomizev1.Kustomization:
		return name(o.Spec.SourceRef.Kind, cmp.Or(o.Spec.SourceRef.Namespace, o.Namespace), o.Spec.SourceRef.Name)
	case *sourcev1.HelmChart:
		return name(o.Spec.SourceRef.Kind, o.Namespace, o.Spec.SourceRef.Name)
	}
	return ""
}

func suspended(o runtime.Object) bool {
	switch s := o.(type) {
	case *sourcev1.GitRepository:
		return s.Spec.Suspend
	case *sourcev1.OCIRepository:
		return s.Spec.Suspend
	case *sourcev1.HelmRepository:
		return s.Spec.Suspend
	case *sourcev1.HelmChart:
		return s.Spec.Suspend
	case *sourcev1.Bucket:
		return s.Spec.Suspend
	}
	return false
}
