// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/team"
	"github.com/chandler-hub/chandler/internal/valid"
)

// set is an AddonSet in reach of the cluster, with its delivery.
type set struct {
	types.NamespacedName
	reach match.Reach
	// object is nil if the set is gone and only its delivery is left.
	object *hubv1.AddonSet
	// selector is nil if it does not compile. invalid says what is wrong with the set.
	selector *match.Selector
	invalid  error
	// delivery is nil if there is none.
	delivery *hubv1.AddonDelivery
	// standing says whether the addonset controller made the delivery.
	standing provenance.Verdict
	// leaving is true if the set has withdrawn the delivery. If a user has deleted it, nothing is removed.
	leaving bool
	// told is true if nothing is known of the set here but what its delivery says.
	told bool
	// frozen is true if an older version of the hub made the revision: existing objects stay as they are, and missing
	// ones are made.
	frozen bool
	// program is that of the delivery's revision, or of the set if there is no delivery yet. It is nil if the set
	// does not select the cluster, or if unrenderable is set.
	program *compile.Program
	// result is what the program renders to for this cluster; nil if that fails.
	result       *render.Result
	unrenderable error
}

// judge finds the sets in reach, and what each does on this cluster.
func (e *explainer) judge() {
	specs := map[string]map[string]*hubv1.AddonSetSpec{}
	for i := range e.Sets {
		s := &e.Sets[i]
		if specs[s.Namespace] == nil {
			specs[s.Namespace] = map[string]*hubv1.AddonSetSpec{}
		}
		if s.DeletionTimestamp == nil {
			specs[s.Namespace][s.Name] = &s.Spec
		}
	}
	for i := range e.Sets {
		o := &e.Sets[i]
		if e.blind(o.Namespace) {
			continue
		}
		s := &set{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, object: o, reach: e.reach(o.Namespace)}
		e.deliver(s)
		if s.delivery == nil && !s.reach.To(e.Registration) {
			continue
		}
		s.check(specs[s.Namespace])
		e.sets = append(e.sets, s)
	}
	for i := range e.Deliveries {
		d := &e.Deliveries[i]
		if slices.ContainsFunc(e.sets, func(s *set) bool { return s.NamespacedName == d.SetKey() }) {
			continue
		}
		s := &set{NamespacedName: d.SetKey(), reach: e.reach(d.Namespace)}
		if e.tells(d) {
			s.delivery, s.leaving, s.told = d, d.Withdrawn(), true
		}
		if s.told || e.deliver(s) {
			e.sets = append(e.sets, s)
		}
	}
	for i := range e.Deliveries {
		e.stranger(&e.Deliveries[i])
	}
	slices.SortFunc(e.sets, func(a, b *set) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) })
	for _, s := range e.sets {
		e.load(s)
	}
}

// blind returns whether it is not known how far the sets of a namespace reach, and what they select: who reads this may not read the
// registration, or the Teams.
func (e *explainer) blind(namespace string) bool {
	return e.Unread || e.TeamsUnread && !e.IsPlatform(namespace) && namespace != e.Registration.Namespace
}

// tells returns whether all that is known of a delivery is what it says. Its status is the hub's.
func (e *explainer) tells(d *hubv1.AddonDelivery) bool {
	return e.blind(d.Namespace) && provenance.Named(d)
}

// reach returns how far the sets of a namespace reach.
func (e *explainer) reach(namespace string) match.Reach {
	return team.Reach(namespace, e.Teams, e.IsPlatform)
}

// deliver finds the delivery of a set, and returns whether there is one that the hub serves.
func (e *explainer) deliver(s *set) bool {
	for i := range e.Deliveries {
		d := &e.Deliveries[i]
		if d.SetKey() != s.NamespacedName {
			continue
		}
		if v := provenance.Of(d, s.object, e.Registration, s.reach); v.Known() {
			s.delivery, s.standing, s.leaving = d, v, d.Withdrawn()
			return true
		}
	}
	return false
}

// stranger reports a delivery that the hub did not make.
func (e *explainer) stranger(d *hubv1.AddonDelivery) {
	if e.tells(d) {
		return
	}
	var object *hubv1.AddonSet
	for i := range e.Sets {
		if o := &e.Sets[i]; o.Namespace == d.Namespace && o.Name == d.Spec.AddonSetRef.Name {
			object = o
		}
	}
	if v := provenance.Of(d, object, e.Registration, e.reach(d.Namespace)); !v.Known() {
		e.strangers = append(e.strangers,
			Row{Set: d.SetKey().String(), State: Ignored, Why: sprintf("AddonDelivery %s/%s: %s", d.Namespace, d.Name, v.Message)})
	}
}

// refused returns why the hub makes nothing for the delivery of a set; "" if it serves it.
func (e *explainer) refused(s *set) string {
	switch s.standing.Standing {
	case provenance.Held:
		return s.standing.Message
	case provenance.Unclaimed:
		if !s.selects(e.Registration) {
			return s.standing.Message
		}
	}
	if e.Registration.Status.DuplicateOf != nil {
		return status.Find(e.Registration, hubv1.ReadyCondition).Message
	}
	return ""
}

func (s *set) author() compile.Author { return s.reach.Author(s.Name) }

// check compiles the present spec of the set, as the hub does.
func (s *set) check(specs map[string]*hubv1.AddonSetSpec) {
	result := valid.Check(s.object, s.reach, s.author(), specs, compile.Compile)
	s.selector, s.program, s.invalid = result.Selector, result.Program, result.Err()
}

// selects returns whether the present spec of the set selects the cluster.
func (s *set) selects(reg *hubv1.ClusterRegistration) bool {
	return s.object != nil && s.object.DeletionTimestamp == nil && s.invalid == nil && s.selector.Matches(reg)
}

// load finds the program that applies, and renders it.
func (e *explainer) load(s *set) {
	switch {
	case s.told:
		unread := "Teams of the platform"
		if e.Unread {
			unread = "ClusterRegistration"
		}
		s.unrenderable = fmt.Errorf("who set its fields is not known: you may not read the %s", unread)
	case s.delivery == nil && !s.selects(e.Registration):
		s.program = nil
	case s.leaving:
		s.program = nil
	case s.delivery != nil && e.refused(s) != "":
		s.program, s.unrenderable = nil, errors.New(e.refused(s))
	case s.delivery != nil:
		s.program, s.unrenderable = e.revision(s)
	}
	if s.program != nil {
		s.result, s.unrenderable = e.render(s, s.program, e.Registration.Spec.Overrides, false)
	}
}

// addons returns the names of the set's add-ons, in its order, and after them those that are newer than the delivered
// revision.
func (s *set) addons() []string {
	var names []string
	if s.program != nil {
		for i := range s.program.Addons {
			names = append(names, s.program.Addons[i].Name)
		}
	}
	if s.object != nil {
		for i := range s.object.Spec.Addons {
			if name := s.object.Spec.Addons[i].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// addon returns an add-on of the program, or nil.
func (s *set) addon(name string) *compile.Addon {
	if s.program == nil {
		return nil
	}
	for i := range s.program.Addons {
		if a := &s.program.Addons[i]; a.Name == name {
			return a
		}
	}
	return nil
}

// status returns the delivery's status of an add-on, or nil.
func (s *set) status(name string) *hubv1.AddonStatus {
	if s.delivery == nil {
		return nil
	}
	for i := range s.delivery.Status.Addons {
		if a := &s.delivery.Status.Addons[i]; a.Name == name {
			return a
		}
	}
	return nil
}

// first returns the first of the errors that an error joins, and how many more there are.
func first(err error) string {
	errs, ok := err.(compile.Errors) //nolint:errorlint // made by compile, never wrapped
	if !ok || len(errs) == 1 {
		return excerpt.Line(err.Error())
	}
	more := fmt.Sprintf(" (and %d more errors)", len(errs)-1)
	if len(errs) == 2 {
		more = " (and 1 more error)"
	}
	return excerpt.Line(errs[0].Error() + more)
}
