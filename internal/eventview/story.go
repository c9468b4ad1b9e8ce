// SPDX-License-Identifier: Apache-2.0

package eventview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
)

// Story is what is known of one add-on on one cluster: what `chandler events CLUSTER ADDON` tells.
type Story struct {
	Addon        string
	Registration *hubv1.ClusterRegistration
	// Deliveries are those that have the add-on.
	Deliveries []hubv1.AddonDelivery
	// Flux are its Flux objects, and the sources of these.
	Flux []*unstructured.Unstructured
}

// Entry is one thing that has happened.
type Entry struct {
	At     time.Time
	Object string
	What   string
	Text   string
	Bad    bool
}

// StoryColumns are those of a story.
var StoryColumns = []page.Column{{Name: "Time"}, {Name: "Object"}, {Name: "What"}, {Name: "Message"}}

// Row returns the line of an entry. Its time is written out: a line that stands there for an hour must not say that it is new.
func (e *Entry) Row() page.Row {
	row := page.Row{State: 2, Cells: []string{e.At.UTC().Format(time.RFC3339), e.Object, e.What, excerpt.Line(e.Text)}}
	if e.Bad {
		row.Tone = page.Unsettled
	}
	return row
}

// SortEntries puts entries in the order in which they came, the newest last.
func SortEntries(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Object, b.Object), cmp.Compare(a.What, b.What))
	})
}

// Subject is an object whose events belong to the story.
type Subject struct{ Kind, Namespace, Name string }

// Subjects returns what the events of the story are about.
func (s *Story) Subjects() []Subject {
	reg := s.Registration
	out := []Subject{{"ClusterRegistration", reg.Namespace, reg.Name}}
	if o := reg.Spec.OriginRef; o != nil {
		out = append(out, Subject{o.Kind, reg.Namespace, o.Name})
	}
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		out = append(out, Subject{"AddonDelivery", d.Namespace, d.Name}, Subject{"AddonSet", d.Namespace, d.Spec.AddonSetRef.Name})
		for j := range d.Status.Addons {
			if a := &d.Status.Addons[j]; a.Name == s.Addon && a.Object != "" {
				out = append(out, Subject{a.Kind, d.Namespace, a.Object})
			}
		}
	}
	for _, u := range s.Flux {
		if of := (Subject{u.GetKind(), u.GetNamespace(), u.GetName()}); !slices.Contains(out, of) {
			out = append(out, of)
		}
	}
	return out
}

// Told returns what an event tells; nothing if it is not about this add-on. The hub names in an event of a delivery which of its Flux
// objects it is about, and otherwise writes the add-on's name first.
func (s *Story) Told(e *corev1.Event) []Entry {
	of := e.InvolvedObject
	if !slices.Contains(s.Subjects(), Subject{of.Kind, of.Namespace, of.Name}) {
		return nil
	}
	if r := e.Related; r != nil && (r.Kind == "HelmRelease" || r.Kind == "Kustomization") &&
		!slices.Contains(s.Subjects(), Subject{r.Kind, r.Namespace, r.Name}) {
		return nil
	}
	if rest, begins := strings.CutPrefix(e.Message, `add-on "`); begins && !strings.HasPrefix(rest, s.Addon+`"`) {
		return nil
	}
	count, what := e.Count, e.Reason
	if e.Series != nil {
		count = e.Series.Count
	}
	if count > 1 {
		what += fmt.Sprintf(" (x%d)", count)
	}
	return []Entry{{At: At(e), Object: called(of.Kind, of.Namespace, of.Name), What: what, Text: e.Message,
		Bad: e.Type == corev1.EventTypeWarning}}
}

func called(kind, namespace, name string) string {
	return fmt.Sprintf("%s %s/%s", kind, namespace, name)
}

// Entries returns what the objects themselves say of the past: when their conditions became what they are, since when the add-on is in its
// state, and what Helm and kustomize have applied.
func (s *Story) Entries() []Entry {
	reg := s.Registration
	out := transitions(called("ClusterRegistration", reg.Namespace, reg.Name), reg.Status.Conditions)
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		name := called("AddonDelivery", d.Namespace, d.Name)
		out = append(out, transitions(name, d.Status.Conditions)...)
		for j := range d.Status.Addons {
			if a := &d.Status.Addons[j]; a.Name == s.Addon && a.Since != nil {
				out = append(out, state(name, a))
			}
		}
	}
	for _, u := range s.Flux {
		name := called(u.GetKind(), u.GetNamespace(), u.GetName())
		out = append(out, transitions(name, conditions(u))...)
		out = append(out, history(name, u)...)
	}
	SortEntries(out)
	return out
}

// state says since when an add-on is in its state.
func state(object string, a *hubv1.AddonStatus) Entry {
	what := string(a.State)
	if a.Reason != "" {
		what += " (" + a.Reason + ")"
	}
	text := fmt.Sprintf("add-on %q", a.Name)
	if a.Version != "" {
		text += ", version " + a.Version
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return Entry{At: a.Since.Time, Object: object, What: what, Text: text, Bad: a.State == hubv1.AddonFailed || a.State == hubv1.AddonNotOwned}
}

// transitions says when conditions became what they are. Conditions that say the same are one line.
func transitions(object string, of []metav1.Condition) []Entry {
	var out []Entry
	for i := range of {
		c := &of[i]
		one := Entry{At: c.LastTransitionTime.Time, Object: object, What: c.Type + "=" + string(c.Status), Text: c.Reason, Bad: bad(c)}
		if c.Message != "" {
			one.Text += ": " + c.Message
		}
		same := slices.IndexFunc(out, func(e Entry) bool { return e.At.Equal(one.At) && e.Text == one.Text })
		if same < 0 {
			out = append(out, one)
			continue
		}
		out[same].What += " " + one.What
		out[same].Bad = out[same].Bad || one.Bad
	}
	return out
}

// bad returns whether a condition is one that people look for.
func bad(c *metav1.Condition) bool {
	if c.Type == "Stalled" || strings.HasSuffix(c.Type, "Failed") {
		return c.Status == metav1.ConditionTrue
	}
	return c.Status == metav1.ConditionFalse && (c.Type == hubv1.ReadyCondition || c.Type == hubv1.ReachableCondition || c.Type == "Released")
}

func conditions(u *unstructured.Unstructured) []metav1.Condition {
	var out []metav1.Condition
	raw, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, each := range raw {
		var c metav1.Condition
		if m, ok := each.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// history says what Flux has applied, as far as it remembers that.
func history(object string, u *unstructured.Unstructured) []Entry {
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	var out []Entry
	switch u.GetKind() {
	case "HelmRelease":
		var of helmv2.HelmReleaseStatus
		if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &of) != nil {
			return nil
		}
		for _, h := range of.History {
			if h == nil {
				continue
			}
			out = append(out, Entry{At: h.LastDeployed.Time, Object: object, What: "revision " + fmt.Sprint(h.Version), Bad: h.Status == "failed",
				Text: fmt.Sprintf("Helm release %s/%s: chart %s %s, %s", h.Namespace, h.Name, h.ChartName, h.ChartVersion, h.Status)})
		}
	case "Kustomization":
		var of kustomizev1.KustomizationStatus
		if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &of) != nil {
			return nil
		}
		for i := range of.History {
			h := &of.History[i]
			out = append(out, Entry{At: h.FirstReconciled.Time, Object: object, What: "applied",
				Bad:  strings.HasSuffix(h.LastReconciledStatus, "Failed"),
				Text: strings.TrimPrefix(fmt.Sprintf("%s, %s", h.Metadata["revision"], h.LastReconciledStatus), ", ")})
		}
	}
	return out
}
