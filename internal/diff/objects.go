// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/status"
)

// Making makes the objects that Flux objects of one fleet put on their clusters.
type Making interface {
	// Input finds out what a Flux object is made of.
	Input(*inflate.Object) (*inflate.Input, error)
	// Objects makes its objects. No caller changes the result.
	Objects(*inflate.Input) (*inflate.Result, error)
}

// Makers are those of both fleets.
type Makers struct{ Old, New Making }

// Inside is what a change does to the objects of a cluster.
type Inside struct {
	// By are the layers that make the change.
	By      []string       `json:"by,omitempty"`
	Objects []ObjectChange `json:"objects"`
	// Unchanged counts the objects that stay as they are. Same is true if all do: what changes is when and how Flux applies them.
	Unchanged int  `json:"unchanged"`
	Same      bool `json:"same,omitempty"`
	// Notes say what is assumed.
	Notes []string `json:"notes,omitempty"`

	// chance is true if something comes out otherwise each time, and asks if a chart or its values are not as before, and what comes out rests
	// on the cluster.
	chance, asks bool
}

// ObjectChange is what happens to one object of a cluster.
type ObjectChange struct {
	Kind       ObjectKind `json:"kind"`
	APIVersion string     `json:"apiVersion"`
	Object     string     `json:"object"`
	Namespace  string     `json:"namespace,omitempty"`
	Name       string     `json:"name"`
	// Reason says why, where that is not plain.
	Reason string `json:"reason,omitempty"`
	// Fields are those that are not as before, and More counts the ones beyond them.
	Fields []Field `json:"fields,omitempty"`
	More   int     `json:"moreFields,omitempty"`
}

// ObjectKind is what happens to an object.
type ObjectKind string

// The kinds, in the order in which they are told.
const (
	ObjectRemoved ObjectKind = "Removed"
	ObjectRemade  ObjectKind = "Recreated"
	ObjectCreated ObjectKind = "Created"
	ObjectChanged ObjectKind = "Changed"
	ObjectKept    ObjectKind = "Kept"
)

var objectKinds = []ObjectKind{ObjectRemoved, ObjectRemade, ObjectCreated, ObjectChanged, ObjectKept}

// mostFields is how many fields of one object are told.
const mostFields = 100

// side is what one Flux object makes; empty if there is none.
type side struct {
	item   *preview.Item
	input  *inflate.Input
	result *inflate.Result
}

// insides computes what changes do to objects. It keeps what it has computed: most clusters of a fleet have the same.
type insides struct {
	makers *Makers
	kept   map[string]*Inside
	order  []string
}

// keptInsides is how many results are kept.
const keptInsides = 1000

// object returns a Flux object with all that belongs to it.
func object(p *preview.Pair, item *preview.Item) *inflate.Object {
	out := &inflate.Object{Flux: item.Manifest, Version: versionOf(p.Before, p.After)}
	for i := range item.Shared {
		out.Shared = append(out.Shared, item.Shared[i].Object)
	}
	return out
}

// of returns what a change does to the objects. One of old and next may be nil. Same is true if nothing of what they are made of changes,
// also where it is not known what that comes to.
func (n *insides) of(p *preview.Pair, kind Kind, old, next *preview.Item) (inside *Inside, same bool, troubles []trouble) {
	sides := [2]side{{item: old}, {item: next}}
	for i, makes := range []Making{n.makers.Old, n.makers.New} {
		s := &sides[i]
		if s.item == nil {
			continue
		}
		var err error
		if s.input, err = makes.Input(object(p, s.item)); err != nil {
			troubles = append(troubles, troubled(i, s.item, err))
		}
	}
	a, b := sides[0].input, sides[1].input
	same = (kind == Changed || kind == Content) && a != nil && b != nil && a.Key == b.Key
	if len(troubles) > 0 {
		return nil, same, troubles
	}
	if same {
		return &Inside{Objects: []ObjectChange{}, Same: true}, true, nil
	}
	key := string(kind) + "\x00"
	for i := range sides {
		if s := &sides[i]; s.item != nil {
			key += s.input.Key + "\x00" + s.item.Release.Namespace + "\x00" +
				inflate.CRDPolicy(s.item.Manifest, old != nil) + fmt.Sprint(prunes(s.item)) + "\x00"
		}
	}
	if one, ok := n.kept[key]; ok {
		return one, false, nil
	}
	for i, makes := range []Making{n.makers.Old, n.makers.New} {
		s := &sides[i]
		if s.item == nil {
			continue
		}
		var err error
		if s.result, err = makes.Objects(s.input); err != nil {
			troubles = append(troubles, troubled(i, s.item, err))
		}
	}
	if len(troubles) > 0 {
		return nil, false, troubles
	}
	inside = compareObjects(kind, &sides[0], &sides[1])
	n.keep(key, inside)
	return inside, false, nil
}

func (n *insides) keep(key string, inside *Inside) {
	if len(n.order) >= keptInsides {
		delete(n.kept, n.order[0])
		n.order = n.order[1:]
	}
	n.kept[key] = inside
	n.order = append(n.order, key)
}

// keeps returns a change for a Flux object that stays as it is, for inside to look at what it refers to; nil if it is not needed.
func (c *computing) keeps(p *preview.Pair, s *steps, n *preview.Item) *Change {
	old := p.Old.Find(n.Key)
	if step := s.arriving[n.Key]; c.insides == nil || old == nil || step.Verb != plan.Keep {
		return nil
	}
	out := changeOf(Content, n)
	out.old, out.next = old, n
	out.Reason = "the " + n.Key.Kind + " stays as it is, and what it refers to does not: its source, or a ConfigMap"
	return &out
}

// inside adds to changes what they do to the objects of the cluster. Those that do nothing are left out.
func (c *computing) inside(p *preview.Pair, changes []Change, name string, labels map[string]string) []Change {
	var out []Change
	for i := range changes {
		one, touches := changes[i], changes[i].touches()
		old, next := one.old, one.next
		one.old, one.next = nil, nil
		if c.insides == nil || !touches {
			out = append(out, one)
			continue
		}
		if one.Kind == Adopted {
			note := preview.Note{Set: one.Set, Addon: one.Addon, Reason: "what the objects of the adopted one are now is not known"}
			c.problems.add("New", note.String(), name, labels)
		}
		found, same, troubles := c.insides.of(p, one.Kind, old, next)
		if one.Kind == Content && same {
			c.secrets(next, name, labels)
		}
		if len(troubles) > 0 {
			c.unmade(&one, same, troubles, name, labels)
		}
		switch {
		case one.Kind == Content && (same || found == nil):
			continue
		case one.Kind == Content && len(found.Objects) == 0:
			c.untouched(&one, found, name, labels)
			continue
		case found != nil:
			inside := *found
			inside.By = one.layers()
			if ignored := one.ignored(found); ignored != "" {
				inside.Notes = append(slices.Clone(inside.Notes), ignored)
			}
			one.Inside = &inside
		}
		out = append(out, one)
	}
	return out
}

// untouched says of an add-on whose source or ConfigMap is another one that none of its objects changes, or why that is not known.
func (c *computing) untouched(one *Change, found *Inside, name string, labels map[string]string) {
	note := preview.Note{Set: one.Set, Addon: one.Addon, Reason: "what it refers to is not as before, and changes none of its objects"}
	if found.chance || found.asks {
		note.Reason = strings.Join(found.Notes, "; ")
		c.problems.add("New", note.String(), name, labels)
		return
	}
	c.noted.add("", note.String(), name, labels)
}

// touches returns whether a change does something to the objects of its cluster now.
func (c *Change) touches() bool {
	switch c.Kind {
	case Orphaned, Waits, NotWon:
		return false
	}
	return c.old != nil || c.next != nil
}

// layers are those of the fields that decide what objects there are.
func (c *Change) layers() []string {
	var out []string
	for i := range c.Fields {
		f := &c.Fields[i]
		head, _, _ := strings.Cut(f.Path, ".")
		if f.Layer != "" && !inflate.IsAside(head) {
			out = append(out, f.Layer)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ignored says that values have no effect: they alone decide what objects there are, and no object changes. A misspelt value looks so.
func (c *Change) ignored(in *Inside) string {
	if c.Kind != Changed || in.Same || in.asks || in.chance || len(in.Objects) > 0 {
		return ""
	}
	var names []string
	for i := range c.Fields {
		head, _, _ := strings.Cut(c.Fields[i].Path, ".")
		switch {
		case head == "values":
			names = append(names, c.Fields[i].Path)
		case !inflate.IsAside(head):
			return "" // as another version of the chart
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s nothing in the chart: is it the name that the chart's values have?", status.List(names, mostIgnored),
		verb(len(names), "change"))
}

// mostIgnored is how many values a note names.
const mostIgnored = 5

// identity is an object of a cluster, of whatever version.
type identity struct{ group, kind, namespace, name string }

func (s *side) identify(u *unstructured.Unstructured) identity {
	namespace := u.GetNamespace()
	if s.item.Key.Kind == fluxspec.HelmReleaseKind && namespace == s.item.Release.Namespace {
		namespace = "" // where Helm puts what does not say it
	}
	return identity{u.GroupVersionKind().Group, u.GetKind(), namespace, u.GetName()}
}

// comparedObjects is a comparison that is being made.
type comparedObjects struct {
	kind Kind
	out  *Inside
}

func compareObjects(kind Kind, old, next *side) *Inside {
	c := &comparedObjects{kind: kind, out: &Inside{Objects: []ObjectChange{}}}
	was, is := c.steady(old), c.steady(next)
	for _, id := range sortedIdentities(is) {
		c.arrives(was[id], is[id])
		delete(was, id)
	}
	for _, id := range sortedIdentities(was) {
		c.leaves(old, was[id])
	}
	c.definitions(old, next)
	c.asks(old, next)
	slices.SortStableFunc(c.out.Objects, func(a, b ObjectChange) int {
		return cmp.Compare(slices.Index(objectKinds, a.Kind), slices.Index(objectKinds, b.Kind))
	})
	slices.Sort(c.out.Notes)
	c.out.Notes = slices.Compact(c.out.Notes)
	return c.out
}

// asks says that objects which come out the same here may not do so on their cluster.
func (c *comparedObjects) asks(old, next *side) {
	a, b := old.result, next.result
	if a == nil || b == nil || !a.Asks && !b.Asks || a.MadeOf == b.MadeOf || len(c.out.Objects) > 0 {
		return
	}
	c.out.asks = true
	c.note("the chart or its values are not as before, and its objects are the same as far as they can be made without the cluster")
}

func changeOfObject(kind ObjectKind, u *unstructured.Unstructured) ObjectChange {
	return ObjectChange{Kind: kind, APIVersion: u.GetAPIVersion(), Object: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// What Helm and Flux read on an object.
const (
	hookAnnotation   = "helm.sh/hook"
	policyAnnotation = "helm.sh/resource-policy"
	pruneAnnotation  = "kustomize.toolkit.fluxcd.io/prune"
)

func (c *comparedObjects) arrives(old, next *unstructured.Unstructured) {
	if old == nil {
		one := changeOfObject(ObjectCreated, next)
		if hook := next.GetAnnotations()[hookAnnotation]; hook != "" {
			one.Reason = "a hook of Helm: " + hook
		}
		c.out.Objects = append(c.out.Objects, one)
		return
	}
	one := changeOfObject(ObjectChanged, next)
	one.Fields, one.More = ObjectFields(old.Object, next.Object, mostFields)
	switch {
	case c.kind == Reinstalled:
		one.Kind = ObjectRemade
	case len(one.Fields) == 0:
		c.out.Unchanged++
		return
	}
	if hook := next.GetAnnotations()[hookAnnotation]; hook != "" {
		one.Reason = "a hook of Helm: " + hook
	}
	c.out.Objects = append(c.out.Objects, one)
}

func (c *comparedObjects) leaves(of *side, old *unstructured.Unstructured) {
	one := changeOfObject(ObjectRemoved, old)
	helm := of.item.Key.Kind == fluxspec.HelmReleaseKind
	a := old.GetAnnotations()
	switch {
	case a[hookAnnotation] != "":
		return // Helm does not delete the objects of hooks with the release
	case helm && a[policyAnnotation] == "keep":
		one.Kind, one.Reason = ObjectKept, policyAnnotation+": keep"
	case !helm && (a[pruneAnnotation] == "disabled" || old.GetLabels()[pruneAnnotation] == "disabled"):
		one.Kind, one.Reason = ObjectKept, pruneAnnotation+": disabled"
	case !prunes(of.item):
		one.Kind, one.Reason = ObjectKept, "spec.prune is not true"
	}
	c.out.Objects = append(c.out.Objects, one)
}

// prunes returns whether Flux deletes what an object does not apply any more.
func prunes(item *preview.Item) bool {
	prune, said, _ := unstructured.NestedBool(item.Manifest.Object, "spec", "prune")
	return item.Key.Kind == fluxspec.HelmReleaseKind || said && prune
}

// definitions says what becomes of the CustomResourceDefinitions in the folder crds/ of a chart, which Helm keeps apart.
func (c *comparedObjects) definitions(old, next *side) {
	var was, is []*unstructured.Unstructured
	if old.result != nil {
		was = old.result.CRDs
	}
	if next.result != nil {
		is = next.result.CRDs
	}
	by := map[string]*unstructured.Unstructured{}
	for _, u := range was {
		by[u.GetName()] = u
	}
	policy := inflate.CRDSkip
	if next.item != nil {
		policy = inflate.CRDPolicy(next.item.Manifest, old.item != nil && c.kind != Reinstalled)
	}
	left := 0
	for _, u := range is {
		before := by[u.GetName()]
		delete(by, u.GetName())
		switch {
		case before == nil && policy == inflate.CRDSkip:
			left++
		case before == nil:
			one := changeOfObject(ObjectCreated, u)
			one.Reason = "from crds/ of the chart, where it is not there yet"
			c.out.Objects = append(c.out.Objects, one)
		default:
			fields, more := ObjectFields(before.Object, u.Object, mostFields)
			switch {
			case len(fields) == 0:
				c.out.Unchanged++
			case policy == inflate.CRDReplace:
				one := changeOfObject(ObjectChanged, u)
				one.Fields, one.More = fields, more
				c.out.Objects = append(c.out.Objects, one)
			default:
				left++
			}
		}
	}
	if left > 0 {
		c.note("crds/ of the chart has %d CustomResourceDefinitions that are new or others, and Flux leaves those of the cluster as they are: "+
			"upgrade.crds decides that", left)
	}
	if len(by) > 0 {
		c.note("what crds/ of the chart has had stays on the cluster: %s", strings.Join(sortedNames(by), ", "))
	}
}

func (c *comparedObjects) note(format string, args ...any) {
	c.out.Notes = append(c.out.Notes, fmt.Sprintf(format, args...))
}
