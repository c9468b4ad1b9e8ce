// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/status"
)

// AddonReport describes one add-on on a cluster.
type AddonReport struct {
	Cluster string `json:"cluster" about:"namespace/name of the ClusterRegistration"`
	Name    string `json:"addon"`
	// Sentence names the state of the add-on, and the reason.
	Sentence     string `json:"sentence" about:"its state and the reason, in one line"`
	Header       []Line `json:"header" about:"what the head of the text says"`
	Dependencies []Row  `json:"dependencies,omitempty"`
	// Others are the other sets and deliveries that have, or had, an add-on of this name.
	Others    []Row      `json:"others,omitempty" about:"other sets that have, or had, an add-on of this name"`
	Overrides []Override `json:"overrides,omitempty" about:"overrides of the cluster"`
	// Errors say why it cannot be rendered.
	Errors    []string   `json:"errors,omitempty" about:"why it cannot be rendered"`
	Fields    []Field    `json:"fields,omitempty" about:"fields of the Flux object"`
	Variables []Variable `json:"variables,omitempty" about:"variables that its expressions read"`
	Notes     []string   `json:"notes,omitempty" about:"what could not be read"`
	Now       time.Time  `json:"-"`
}

// Addon explains one add-on. It returns an error if no set in reach has an add-on of that name.
func Addon(in *Input, name string) (*AddonReport, error) {
	e := newExplainer(in)
	claims := e.claims(name)
	if len(claims) == 0 {
		return nil, e.unknown(name)
	}
	main := claims[0]
	r := &AddonReport{Cluster: clusterOf(in), Name: name, Sentence: e.sentence(main), Header: e.details(main), Notes: e.notes(), Now: in.Now}
	for _, c := range claims[1:] {
		r.Others = append(r.Others, c.row)
	}
	for _, o := range e.overrides() {
		if o.Addon == name {
			r.Overrides = append(r.Overrides, o)
		}
	}
	if gone(main.row.State) {
		return r, nil
	}
	r.Dependencies = e.dependencies(main.set, name)
	e.body(main.set, name, r)
	return r, nil
}

// claim is a set that has an add-on of the name.
type claim struct {
	set *set
	row Row
}

// claims returns all sets that have an add-on of that name. The one that matters most comes first.
func (e *explainer) claims(name string) []claim {
	var out []claim
	for _, s := range e.sets {
		switch {
		case s.delivery == nil && !s.selects(e.Registration):
			if slices.Contains(s.addons(), name) {
				out = append(out, claim{s, e.absent(s, name)})
			}
		case slices.Contains(s.known(), name):
			out = append(out, claim{s, e.row(s, name)})
		}
	}
	slices.SortStableFunc(out, func(a, b claim) int { return cmp.Compare(rank(a.row.State), rank(b.row.State)) })
	return out
}

// rank orders states: add-ons that are on the cluster, or are coming, before those that are not.
func rank(s hubv1.AddonState) int {
	order := []hubv1.AddonState{hubv1.AddonNotOwned, Pending, hubv1.AddonExcluded, hubv1.AddonRemoving, hubv1.AddonOrphaned,
		hubv1.AddonLostTo, NotCompiled, NotSelected}
	return slices.Index(order, s)
}

// gone returns whether the add-on is not to be on the cluster: then its fields say nothing.
func gone(s hubv1.AddonState) bool {
	return slices.Contains([]hubv1.AddonState{hubv1.AddonExcluded, hubv1.AddonRemoving, hubv1.AddonOrphaned, hubv1.AddonLostTo,
		NotCompiled, NotSelected}, s)
}

// unknown returns an error that lists the add-ons that exist.
func (e *explainer) unknown(name string) error {
	var names []string
	for _, s := range e.sets {
		names = append(names, s.addons()...)
		names = append(names, s.known()...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return fmt.Errorf("there is no add-on %q for cluster %s: no AddonSet is in reach; make one in a platform namespace (%s), "+
			"or in namespace %s",
			name, e.cluster(), strings.Join(e.PlatformNamespaces, ", "), e.Registration.Namespace)
	}
	return fmt.Errorf("there is no add-on %q in the AddonSets in reach of cluster %s; there are %s", name, e.cluster(), status.List(names, 40))
}

// sentences maps each state to what it means for a cluster.
var sentences = map[hubv1.AddonState]string{
	hubv1.AddonProgressing:          "is on its way to %s",
	hubv1.AddonWaitingForDependency: "is waiting on %s",
	hubv1.AddonWaitingForCluster:    "waits for %s to answer",
	hubv1.AddonWaitingForNodes:      "cannot run on %s yet",
	hubv1.AddonFailed:               "has failed on %s",
	hubv1.AddonSuspended:            "stays as it is on %s",
	hubv1.AddonPaused:               "is suspended on %s",
	hubv1.AddonUnreachable:          "is suspended on %s",
	hubv1.AddonHeld:                 "stays as it is on %s",
	hubv1.AddonExcluded:             "is left out on %s",
	hubv1.AddonLostTo:               "is not delivered to %s",
	hubv1.AddonNotOwned:             "is not delivered to %s",
	hubv1.AddonRemoving:             "is being removed from %s",
	hubv1.AddonOrphaned:             "was orphaned on %s, and may still run there",
	Pending:                         "is not delivered to %s yet",
	NotSelected:                     "is not on %s",
	NotCompiled:                     "is not on %s",
}

// sentence says in plain words which state an add-on has, and why.
func (e *explainer) sentence(c claim) string {
	set, why := "AddonSet "+c.row.Set, c.row.Why
	if c.row.State == hubv1.AddonReady {
		if c.set.selects(e.Registration) {
			set += ", which selects " + c.set.selector.String() + ","
		}
		return sprintf("Add-on %s is Ready on cluster %s: %s delivers it.", c.row.Addon, e.cluster(), set)
	}
	what, ok := sentences[c.row.State]
	if !ok {
		what = "is " + string(c.row.State) + " on %s"
	}
	switch c.row.State {
	case NotSelected:
		why = "the set does not select it: " + why
	case NotCompiled:
		why = "the set does not compile: " + why
	}
	text := sprintf("Add-on %s of %s "+what, c.row.Addon, set, "cluster "+e.cluster())
	if why != "" {
		text += ": " + strings.TrimSuffix(why, ".")
	}
	return text + "."
}

// details say more about the add-on, and about its Flux object.
func (e *explainer) details(c claim) []Line {
	lines := []Line{{"Cluster", e.cluster()}, {"AddonSet", c.row.Set}}
	state := string(c.row.State)
	if c.row.Since != nil {
		state += " for " + page.Since(c.row.Since, e.Now)
	}
	lines = append(lines, Line{"State", state})
	if c.set.delivery != nil {
		lines = append(lines, Line{"Revision", c.set.revisionText()})
	}
	if s := c.set.status(c.row.Addon); s != nil {
		lines = append(lines, e.objectLines(c.set, s)...)
		if s.Release != nil {
			lines = append(lines, Line{"Release", sprintf("%s in namespace %s (its records in %s), kept from what it took over",
				s.Release.Name, s.Release.Namespace, s.Release.StorageNamespace)})
		}
	}
	if a := c.set.addon(c.row.Addon); a != nil {
		if from := c.set.takesOver(a); len(from) > 0 {
			lines = append(lines, Line{"Takes over", excerpt.Line(strings.Join(from, "; "))})
		}
	}
	return lines
}

func (s *set) revisionText() string {
	text := s.delivery.Spec.RevisionName
	if s.object != nil && s.object.Status.Revision != "" && s.object.Status.Revision != text {
		text += "; the set's newest is " + s.object.Status.Revision
	}
	if s.invalid != nil {
		text += "; the set as it is now does not compile: " + first(s.invalid)
	}
	return excerpt.Line(text)
}

// takesOver lists what an add-on takes over that still exists.
func (s *set) takesOver(a *compile.Addon) []string {
	var out []string
	for _, m := range a.MovedFrom {
		out = append(out, fmt.Sprintf("add-on %s of AddonSet %s/%s (movedFrom)", m.Name, m.Namespace, m.AddonSet))
	}
	if o := s.rendered(a.Name); o != nil && o.Adopt != nil {
		out = append(out, fmt.Sprintf("%s %s/%s (adopt)", o.Adopt.Kind, o.Adopt.Namespace, o.Adopt.Name))
	}
	return out
}

// rendered returns the Flux object of an add-on, and the last one if it has several; nil if it cannot be rendered.
func (s *set) rendered(addon string) *flux.Object {
	if s.result == nil {
		return nil
	}
	for i := range s.result.Objects {
		if o := &s.result.Objects[i]; o.Addon == addon {
			return o
		}
	}
	return nil
}

// dependencies returns the add-ons and sets that an add-on depends on, with their states.
func (e *explainer) dependencies(s *set, addon string) []Row {
	var out []Row
	if s.program == nil {
		return nil
	}
	for _, name := range s.program.DependsOn {
		out = append(out, e.setBefore(s.Namespace, name))
	}
	var refs []hubv1.AddonReference
	if a := s.addon(addon); a != nil {
		refs = a.DependsOn
	}
	if o := s.rendered(addon); o != nil {
		refs = o.DependsOn
	}
	for _, ref := range refs {
		out = append(out, e.addonBefore(s, ref))
	}
	return out
}

// addonBefore returns the state of an add-on that another one depends on. One that is not on the cluster is ignored.
func (e *explainer) addonBefore(s *set, ref hubv1.AddonReference) Row {
	for _, c := range e.claims(ref.Name) {
		if ref.AddonSet != "" && (c.set.Name != ref.AddonSet || c.set.Namespace != s.Namespace) {
			continue
		}
		if !gone(c.row.State) {
			return c.row
		}
		c.row.Why = "it is ignored: " + cmp.Or(c.row.Why, "it is not on the cluster")
		return c.row
	}
	in := s.Name
	if ref.AddonSet != "" {
		in = ref.AddonSet
	}
	return Row{Addon: ref.Name, Set: s.Namespace + "/" + in, State: NotHere, Why: "it is ignored: no AddonSet delivers it to this cluster"}
}

// setBefore returns the state of a set that another set depends on.
func (e *explainer) setBefore(namespace, name string) Row {
	r := Row{Set: namespace + "/" + name, State: NotHere, Why: "it is ignored: the set is not on this cluster"}
	for _, s := range e.sets {
		switch {
		case s.Namespace != namespace || s.Name != name:
		case s.delivery == nil && !s.selects(e.Registration):
			r.Why = "it is ignored: " + e.absent(s, "").Why
		case s.delivery == nil:
			r.State, r.Why = Pending, "the set selects the cluster, and is not on it yet"
		case s.delivery.Status.ReadyRevision == s.delivery.Spec.RevisionName:
			r.State, r.Why = hubv1.AddonReady, ""
		case status.Reason(s.delivery, hubv1.ReadyCondition) == hubv1.AddonsLostReason:
			r.Why = "it is ignored: other sets deliver all its add-ons here"
		default:
			r.State, r.Why = hubv1.AddonProgressing, "its add-ons have not all been Ready on its present revision"
		}
	}
	return r
}
