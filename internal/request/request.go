// SPDX-License-Identifier: Apache-2.0

// Package request asks Flux to look at an object now, by Flux's own annotation, and says what Flux has made of it. It is pure: the command
// reads and writes the objects.
package request

import (
	"fmt"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Manager is the field manager of what the command writes. Flux's own command line has another one.
const Manager = "chandler-reconcile"

// Object is an object of Flux's.
type Object struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Addon is the add-on that it is, or whose source it is.
	Addon string
}

func (o *Object) String() string {
	return fmt.Sprintf("%s: %s %s/%s", o.Addon, o.Kind.Kind, o.Namespace, o.Name)
}

// kinds of Flux's, in the version that both binaries are built with.
var kinds = map[string]schema.GroupVersionKind{
	"HelmRelease":    {Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	"Kustomization":  {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
	"GitRepository":  {Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
	"OCIRepository":  {Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"},
	"HelmRepository": {Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmRepository"},
	"HelmChart":      {Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmChart"},
	"Bucket":         {Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "Bucket"},
}

// Objects returns the Flux objects of the add-ons of deliveries: of one add-on, or of all if the name is empty.
func Objects(deliveries []hubv1.AddonDelivery, addon string) []Object {
	var out []Object
	for i := range deliveries {
		d := &deliveries[i]
		for j := range d.Status.Addons {
			a := &d.Status.Addons[j]
			if kind, ok := kinds[a.Kind]; ok && a.Object != "" && (addon == "" || a.Name == addon) {
				out = append(out, Object{Kind: kind, Namespace: d.Namespace, Name: a.Object, Addon: a.Name})
			}
		}
	}
	return out
}

// Sources returns where an object has its content from, the farthest first: a repository, and then the chart in it.
func Sources(u *unstructured.Unstructured, addon string) []Object {
	var out []Object
	add := func(kind, namespace, name string) {
		if gvk, ok := kinds[kind]; ok && name != "" {
			if namespace == "" {
				namespace = u.GetNamespace()
			}
			out = append(out, Object{Kind: gvk, Namespace: namespace, Name: name, Addon: addon})
		}
	}
	ref := func(path ...string) {
		m, _, _ := unstructured.NestedStringMap(u.Object, path...)
		add(m["kind"], m["namespace"], m["name"])
	}
	ref("spec", "sourceRef")
	ref("spec", "chartRef")
	ref("spec", "chart", "spec", "sourceRef")
	if chart, _, _ := unstructured.NestedString(u.Object, "status", "helmChart"); chart != "" {
		if namespace, name, ok := strings.Cut(chart, "/"); ok && !hasChart(out, namespace, name) {
			add("HelmChart", namespace, name)
		}
	}
	return out
}

func hasChart(objects []Object, namespace, name string) bool {
	for i := range objects {
		if o := &objects[i]; o.Kind.Kind == "HelmChart" && o.Namespace == namespace && o.Name == name {
			return true
		}
	}
	return false
}

// Patch returns the JSON merge patch that asks at a time. The time is only a mark, which Flux repeats when it has looked.
func Patch(at string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{fluxmeta.ReconcileRequestAnnotation: at}}}
}

// Never says why Flux would not look at an object; "" if it would.
func Never(u *unstructured.Unstructured) string {
	if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended {
		if why := u.GetAnnotations()[hubv1.SuspendedAnnotation]; why != "" {
			return "the hub keeps it suspended: " + excerpt.Line(why)
		}
		return "a user has suspended it"
	}
	if kind, _, _ := unstructured.NestedString(u.Object, "spec", "type"); u.GetKind() == "HelmRepository" && kind == "oci" {
		return "Flux reads a HelmRepository of type oci only with its charts"
	}
	if u.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	return ""
}

// Outcome is what Flux has made of an object.
type Outcome struct {
	// Over says that Flux has looked since it was asked, and is not at work any more.
	Over bool
	// Failed says that it is not Ready then.
	Failed bool
	// Text says how it is.
	Text string
}

// Look returns what Flux has made of an object since it was asked.
func Look(u *unstructured.Unstructured, at string) Outcome {
	handled, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt")
	if handled != at {
		return Outcome{Text: "Flux has not looked yet"}
	}
	raw, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, each := range raw {
		var c metav1.Condition
		m, ok := each.(map[string]any)
		if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) != nil || c.Type != fluxmeta.ReadyCondition {
			continue
		}
		text := excerpt.Line(fmt.Sprintf("%s: %s", c.Reason, excerpt.Of(c.Message, 300)))
		switch c.Status {
		case metav1.ConditionTrue:
			return Outcome{Over: true, Text: "Ready (" + text + ")"}
		case metav1.ConditionFalse:
			return Outcome{Over: true, Failed: true, Text: "not Ready (" + text + ")"}
		}
		return Outcome{Text: "Flux is at work (" + text + ")"}
	}
	return Outcome{Text: "Flux has not said how it is"}
}
