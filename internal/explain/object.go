// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

func (e *explainer) flux() []metav1.Object {
	out := make([]metav1.Object, 0, len(e.Releases)+len(e.Kustomizations))
	for i := range e.Releases {
		out = append(out, &e.Releases[i])
	}
	for i := range e.Kustomizations {
		out = append(out, &e.Kustomizations[i])
	}
	return out
}

// find returns a Flux object, or nil.
func (e *explainer) find(kind, namespace, name string) metav1.Object {
	for _, o := range e.flux() {
		_, helm := o.(*helmv2.HelmRelease)
		if o.GetNamespace() == namespace && o.GetName() == name && helm == (kind == fluxspec.HelmReleaseKind) {
			return o
		}
	}
	return nil
}

// objectLines describes the Flux object of an add-on.
func (e *explainer) objectLines(s *set, a *hubv1.AddonStatus) []Line {
	if a.Object == "" {
		return nil
	}
	name := sprintf("%s %s/%s", a.Kind, s.Namespace, a.Object)
	o := e.find(a.Kind, s.Namespace, a.Object)
	switch {
	case o == nil && e.FluxUnread:
		return []Line{{"Object", name + ", which could not be read"}}
	case o == nil && a.AppliedGeneration == 0:
		return []Line{{"Object", name + ", not made yet"}}
	case o == nil:
		return []Line{{"Object", name + ", which does not exist"}}
	}
	var conditions []metav1.Condition
	var suspended bool
	var applied string
	var of int64 // the generation that Ready describes
	switch o := o.(type) {
	case *helmv2.HelmRelease:
		conditions, suspended, applied, of = o.Status.Conditions, o.Spec.Suspend, e.helmApplied(o), fluxstate.Of(o).ReadyGeneration
	case *kustomizev1.Kustomization:
		conditions, suspended, applied, of = o.Status.Conditions, o.Spec.Suspend, o.Status.LastAppliedRevision, fluxstate.Of(o).ReadyGeneration
	}
	var remarks []string
	if suspended {
		remarks = append(remarks, "suspended")
	}
	if !o.GetDeletionTimestamp().IsZero() {
		remarks = append(remarks, "being deleted")
	}
	if a.AppliedGeneration > 0 && o.GetGeneration() > a.AppliedGeneration {
		remarks = append(remarks, "changed since the hub has written it")
	}
	lines := []Line{{"Object", strings.Join(append([]string{name}, remarks...), ", ")}}
	ready := "Unknown: Flux has not looked at it yet"
	if c := meta.FindStatusCondition(conditions, hubv1.ReadyCondition); c != nil {
		ready = condition(c)
		if min(c.ObservedGeneration, of) < o.GetGeneration() {
			ready += " (of an older generation)"
		}
	}
	if applied == "" {
		applied = "nothing yet"
	}
	return append(lines, Line{"Ready", ready}, Line{"Applied", excerpt.Line(applied)})
}

// helmApplied returns what Helm did last.
func (e *explainer) helmApplied(o *helmv2.HelmRelease) string {
	latest := o.Status.History.Latest()
	if latest == nil {
		return ""
	}
	text := fmt.Sprintf("chart %s %s, %s as revision %d", latest.ChartName, latest.ChartVersion, latest.Status, latest.Version)
	if at := latest.LastDeployed.Time; !at.IsZero() {
		text += " at " + at.UTC().Format(time.RFC3339)
	}
	return text
}
