// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// Refusal is an override or variable of the cluster's owner that is not allowed or not valid. It is left out, and the
// add-on is delivered without it. So an owner cannot keep an add-on away from a cluster, or at an old version, by writing
// something wrong.
type Refusal struct {
	// Addon that is delivered without it; empty if it is the whole set.
	Addon string
	// Override is its index in Input.Overrides; -1 if it is not an override.
	Override int
	// Variables are the names of the variables of the cluster that are left out, at most maxNamed of them, and More counts the others; none
	// if it is an override.
	Variables []string
	More      int
	// Why says where and what.
	Why compile.Error
}

// maxNamed is how many variables a refusal names: the hub remembers refusals of each add-on of each cluster, and an expression may read all
// variables of a registration.
const maxNamed = 20

// refusedVariables is the refusal of variables, whose names are sorted.
func refusedVariables(addon string, names []string, why compile.Error) Refusal {
	named := min(len(names), maxNamed)
	return Refusal{Addon: addon, Override: -1, Variables: slices.Clone(names[:named]), More: len(names) - named, Why: why}
}

// String says what is refused, why, and what happens instead.
func (r Refusal) String() string {
	text := r.Why.Error()
	switch {
	case r.Override >= 0:
		return text + "; the override is ignored"
	case len(r.Variables) == 0:
		return text
	case strings.Contains(text, "the cluster's variable"):
		return text + "; it is ignored here"
	case len(r.Variables) == 1:
		return fmt.Sprintf("%s; the cluster's variable %q is ignored here", text, r.Variables[0])
	}
	names := variables.Quoted(r.Variables)
	if r.More > 0 {
		names += fmt.Sprintf(" and %d more", r.More)
	}
	return fmt.Sprintf("%s; the cluster's variables %s are ignored here", text, names)
}

// budgets are what the expressions of a set may cost for one cluster. The expressions that the cluster's owner causes
// have a budget of their own. Otherwise they could use up what the set needs without them.
type budgets struct{ own, tries, base variables.Budget }

func newBudgets() budgets {
	return budgets{variables.NewBudget(), variables.NewBudget(), variables.NewBudget()}
}

// pair is two views of the variables, for decisions about the whole set: with and without those of the cluster.
type pair struct {
	r         *renderer
	own, base *variables.Scope
}

func (r *renderer) newPair() *pair {
	return &pair{r, r.newScope(&r.budgets.own, r.cluster, nil), r.newScope(&r.budgets.base, nil, nil)}
}

// decide lets f decide with the variables of the cluster and, if that fails, without them. If both fail, the set is
// to blame, and decide returns the error.
func (p *pair) decide(where compile.Error, f func(*variables.Scope) error) error {
	p.own.Forget()
	err := f(p.own)
	if err == nil {
		return nil
	}
	where.Message, where.Fact = err.Error(), compile.Fact(err)
	if where.Fact != "" { // what the cluster's owner wrote may be right
		return where
	}
	if without := f(p.base); without != nil {
		where.Message = both(where.Message, without.Error())
		return where
	}
	p.r.refuse(refusedVariables("", p.own.Said(), where))
	return nil
}

// both describes the error with what the cluster's owner wrote, and the one without it.
func both(with, without string) string {
	if with == without {
		return with
	}
	return with + "; without what the cluster's owner wrote: " + without
}

func unique(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

func (r *renderer) refuse(refused Refusal) { r.out.Refused = append(r.out.Refused, refused) }

// attempt is one way to render an add-on: which variables it sees, and which overrides apply.
type attempt struct {
	scope     *variables.Scope
	overrides []change
	// without are the variables of the cluster that it does not see, and why.
	without []leftOut

	made
	errs Errors
	// blame names the variables of the cluster that may have caused the errors.
	blame []string
	// refused are the overrides with which it cannot be rendered.
	refused []refusedOverride
}

type refusedOverride struct {
	change
	errs Errors
}

// leftOut are variables of the cluster, and the error that they cause.
type leftOut struct {
	names []string
	errs  Errors
}

func (t *attempt) failed() bool { return len(t.errs) > 0 }

// try makes an attempt.
func (r *renderer) try(a *compile.Addon, s *variables.Scope, without []leftOut, overrides []change) attempt {
	r.scope = s
	s.Forget()
	r.marks = nil
	t := attempt{scope: s, without: without, overrides: overrides}
	t.made, t.errs = r.addon(a, overrides)
	t.blame = s.Blamed()
	return t
}

// deliver renders one add-on as the cluster's owner wants it. If that fails, it renders the add-on without the
// variables and overrides that are to blame. The add-on fails only if it cannot be rendered without anything of the
// owner's either: then the set is to blame.
func (r *renderer) deliver(a *compile.Addon) {
	overrides := r.permitted(a)
	whole := r.try(a, r.own, nil, overrides)
	switch {
	case len(r.out.Missing) > 0: // it is rendered again with them
	case !whole.failed():
		r.commit(a, whole.made)
	case len(r.names())+len(overrides) == 0, whole.errs.Waits():
		r.out.Failed[a.Name] = whole.errs
	default:
		r.deliverWithout(a, whole)
	}
}

func (r *renderer) commit(a *compile.Addon, m made) {
	if m.excluded != "" {
		r.out.Excluded[a.Name] = m.excluded
		return
	}
	r.out.Objects = append(r.out.Objects, m.objects...)
	for _, u := range m.unknown {
		u.Addon = a.Name // of a source, too: the add-on gets it
		r.out.Unknown = append(r.out.Unknown, u)
	}
}

// deliverWithout finds out what causes a failure. It tries without variables first, because an override counts more,
// then without overrides, then without both.
func (r *renderer) deliverWithout(a *compile.Addon, whole attempt) {
	views, found := r.withoutVariables(a, whole)
	for i := 0; i < len(views) && !found && len(whole.overrides) > 0; i++ {
		t := r.try(a, views[i].scope, views[i].without, nil)
		if found = !t.failed(); found {
			views = append(views, r.keep(a, t, whole.overrides))
		}
	}
	if found {
		last := views[len(views)-1]
		for _, l := range last.without {
			r.refuseVariables(a, l)
		}
		for _, o := range last.refused {
			r.refuseOverride(a, o.change, o.errs)
		}
		r.commit(a, last.made)
		return
	}
	base := r.try(a, r.base(), nil, nil)
	switch {
	case len(r.out.Missing) > 0:
	case base.errs.Waits(): // whatever the cluster's owner wrote, it comes
		r.out.Failed[a.Name] = base.errs
	case base.failed():
		r.out.Failed[a.Name] = held(whole.errs, base.errs)
	default:
		r.refuseVariables(a, leftOut{r.names(), whole.errs})
		for _, o := range whole.overrides {
			r.refuseOverride(a, o, whole.errs)
		}
		r.commit(a, base.made)
	}
}

// maxViews bounds how often one add-on is rendered to find the variables that are to blame.
const maxViews = 5

// withoutVariables makes attempts with fewer and fewer of the cluster's variables: first without those to blame, and
// if that fails, without any. It returns all attempts, and whether the last one succeeded.
func (r *renderer) withoutVariables(a *compile.Addon, t attempt) (views []attempt, found bool) {
	views = []attempt{t}
	all := r.names()
	var gone []string
	for len(gone) < len(all) {
		more := others(t.blame, gone)
		if len(more) == 0 || len(views) == maxViews {
			more = others(all, gone)
		}
		gone = unique(append(gone, more...))
		t = r.try(a, r.scopeWithout(gone), append(t.without[:len(t.without):len(t.without)], leftOut{more, t.errs}), t.overrides)
		views = append(views, t)
		if !t.failed() {
			return views, true
		}
	}
	return views, false
}

// others returns the names that are not among those that are gone, which are sorted. A registration may have a hundred thousand.
func others(names, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, found := slices.BinarySearch(gone, name)
		return found
	})
}

// held returns the errors of an add-on that cannot be rendered with or without what the cluster's owner wrote.
func held(with, without Errors) Errors {
	if with.Error() == without.Error() {
		return with
	}
	out := slices.Clone(with)
	for _, e := range without {
		if !slices.Contains(with, e) {
			e.Message = "without what the cluster's owner wrote: " + e.Message
			out = append(out, e)
		}
	}
	return out
}

// keep adds the overrides back, one after the other. It keeps those with which the add-on can be rendered, and
// refuses the others.
func (r *renderer) keep(a *compile.Addon, without attempt, overrides []change) attempt {
	kept := without
	var refused []refusedOverride
	for i, o := range overrides {
		if i >= maxTaken {
			refused = append(refused, refusedOverride{o, Errors{{Addon: a.Name, Message: fmt.Sprintf("one of the %d before it is refused, and no "+
				"more than these are tried", maxTaken)}}})
			continue
		}
		t := r.try(a, without.scope, without.without, append(kept.overrides[:len(kept.overrides):len(kept.overrides)], o))
		if t.failed() {
			refused = append(refused, refusedOverride{o, t.errs})
			continue
		}
		kept = t
	}
	kept.refused = refused
	return kept
}

// maxTaken bounds how often one add-on is rendered to find the override that is to blame.
const maxTaken = 8

func (r *renderer) refuseVariables(a *compile.Addon, l leftOut) {
	if len(l.names) == 0 {
		return
	}
	for _, e := range l.errs {
		r.refuse(refusedVariables(a.Name, l.names, e))
	}
}

func (r *renderer) refuseOverride(a *compile.Addon, o change, errs Errors) {
	for _, e := range errs {
		if !strings.HasPrefix(e.Path, "override") {
			e.Path = strings.TrimSpace("override " + e.Path)
		}
		r.refuse(Refusal{Addon: a.Name, Override: o.index, Why: e})
	}
}

// names returns the names of all variables of the cluster.
func (r *renderer) names() []string {
	var out []string
	for _, l := range r.cluster {
		out = append(out, slices.Collect(maps.Keys(l.Values))...)
	}
	return unique(out)
}

// scopeWithout returns a scope that does not see some of the cluster's variables.
func (r *renderer) scopeWithout(names []string) *variables.Scope {
	key := strings.Join(names, "\x00")
	if s := r.others[key]; s != nil {
		return s
	}
	var layers []variables.Layer
	for _, l := range r.cluster {
		values := maps.Clone(l.Values)
		for _, name := range names {
			delete(values, name)
		}
		layers = append(layers, variables.Layer{Name: l.Name, Values: values})
	}
	r.others[key] = r.newScope(&r.budgets.tries, layers, nil)
	return r.others[key]
}

// base returns the scope without anything that the cluster's owner wrote.
func (r *renderer) base() *variables.Scope {
	const key = "\x00base"
	if r.others[key] == nil {
		r.others[key] = r.newScope(&r.budgets.base, nil, nil)
	}
	return r.others[key]
}
