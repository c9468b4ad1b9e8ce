// SPDX-License-Identifier: Apache-2.0

// Package eventview says what `chandler events` shows: which events are about a cluster or a set, and in which order they came. It is
// pure: package live reads them.
package eventview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/page"
)

// Columns are those of the list.
var Columns = []page.Column{{Name: "Last-Seen"}, {Name: "Type"}, {Name: "Reason"}, {Name: "Object"}, {Name: "Message"}}

// object is what an event is about.
type object struct{ kind, namespace, name string }

// Scope says which events somebody wants to see; by default those of all of the hub's own kinds.
type Scope struct {
	objects map[object]bool
	// Namespaces are where these objects are; none for all.
	Namespaces []string
	// Cluster also has the events of its deliveries that are gone, which may be in any namespace; nil for none.
	Cluster *types.NamespacedName
}

// Hub is the scope of everything that the hub tells.
func Hub() *Scope { return &Scope{} }

func (s *Scope) add(kind, namespace, name string) {
	if s.objects == nil {
		s.objects = map[object]bool{}
	}
	s.objects[object{kind, namespace, name}] = true
	if !slices.Contains(s.Namespaces, namespace) {
		s.Namespaces = append(s.Namespaces, namespace)
	}
}

// Cluster is the scope of a cluster: its registration and its origin, what is delivered there, and the Flux objects of that.
func Cluster(reg *hubv1.ClusterRegistration, deliveries []hubv1.AddonDelivery) *Scope {
	s := &Scope{Cluster: &types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}}
	s.add("ClusterRegistration", reg.Namespace, reg.Name)
	if o := reg.Spec.OriginRef; o != nil {
		s.add(o.Kind, reg.Namespace, o.Name)
	}
	for i := range deliveries {
		d := &deliveries[i]
		s.add("AddonDelivery", d.Namespace, d.Name)
		for j := range d.Status.Addons {
			if a := &d.Status.Addons[j]; a.Object != "" {
				s.add(a.Kind, d.Namespace, a.Object)
			}
		}
	}
	return s
}

// Set is the scope of a set. Delivery adds what it delivers.
func Set(set *hubv1.AddonSet) *Scope {
	s := &Scope{}
	s.add("AddonSet", set.Namespace, set.Name)
	return s
}

// Delivery adds a delivery of a set. Flux's own events of so many clusters would hide what the hub says of them.
func (s *Scope) Delivery(d *hubv1.AddonDelivery) { s.add("AddonDelivery", d.Namespace, d.Name) }

// Has returns whether an event is in the scope.
func (s *Scope) Has(e *corev1.Event) bool {
	of := e.InvolvedObject
	gv, err := schema.ParseGroupVersion(of.APIVersion)
	if s.objects == nil {
		return err == nil && gv.Group == hubv1.GroupVersion.Group
	}
	gone := s.Cluster != nil && of.Kind == "AddonDelivery" && identity.IsDelivery(of.Name, *s.Cluster)
	return gone || s.objects[object{of.Kind, of.Namespace, of.Name}]
}

// At returns when an event came last. What writes events has changed over the years, and so has the field.
func At(e *corev1.Event) time.Time {
	at := e.CreationTimestamp.Time
	for _, other := range []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time} {
		if other.After(at) {
			at = other
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// Sort puts events in the order in which they came, the newest last.
func Sort(events []corev1.Event) {
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(At(&a).Compare(At(&b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Count returns how often an event came.
func Count(e *corev1.Event) int32 {
	count := max(1, e.Count)
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	return count
}

// Row returns the line of an event.
func Row(e *corev1.Event, now time.Time) page.Row {
	at, count := At(e), Count(e)
	seen := page.Since(&at, now)
	if count > 1 {
		seen += fmt.Sprintf(" (x%d)", count)
	}
	row := page.Row{State: 1, Cells: []string{seen, e.Type, e.Reason,
		fmt.Sprintf("%s %s/%s", e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name), excerpt.Line(e.Message)}}
	if e.Type == corev1.EventTypeWarning {
		row.Tone = page.Unsettled
	}
	return row
}
