// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/valid"
)

// compiled is a set that is ready to be rendered, or the part of it that compiles.
type compiled struct {
	set      *hubv1.AddonSet
	selector *match.Selector  // nil if it does not compile
	program  *compile.Program // nil if it does not compile
	reach    match.Reach
}

func (c *compiled) String() string { return c.set.Namespace + "/" + c.set.Name }

// Render returns what the hub would make of a fleet.
func Render(f *Fleet, o Options) *Report {
	r := &renderer{fleet: f, options: o, out: &Report{}, shared: map[key]bool{}, wanted: sources{}}
	r.errors.values, r.warnings.values, r.notes.values = r.shows, r.shows, r.shows
	for _, text := range f.warnings {
		r.warn("%s", text)
	}
	r.teams()
	r.compile()
	r.unused()
	r.dangling()
	chosen := r.choose()
	for _, m := range chosen {
		r.cluster(m)
	}
	r.warnOfSources()
	r.out.Errors, r.out.Warnings, r.out.Notes = r.errors.lines(), r.warnings.lines(), r.notes.lines()
	if o.Strict {
		r.out.strictly()
	}
	return r.out
}

type renderer struct {
	fleet   *Fleet
	options Options
	out     *Report
	// all are the sets of the files, and those that the hub makes for Teams.
	all    []*hubv1.AddonSet
	sets   []*compiled
	shared map[key]bool
	// wanted are the sources that add-ons refer to.
	wanted sources
	// shown is what messages may show of each cluster; nil until somebody asks.
	shown map[string][]string
	// errors, warnings and notes become those of the report.
	errors, warnings, notes ledger
}

// shows returns what a message about a cluster may show of it: the values of its labels, annotations and variables.
func (r *renderer) shows(cluster string) []string {
	if r.shown == nil {
		r.shown = map[string][]string{}
		for _, m := range r.fleet.members {
			r.shown[m.String()] = m.shows()
		}
	}
	return r.shown[cluster]
}

func (r *renderer) fail(format string, args ...any) { r.errors.add("", fmt.Sprintf(format, args...)) }

func (r *renderer) warn(format string, args ...any) { r.warnings.add("", fmt.Sprintf(format, args...)) }

// compile compiles every set. A set with wrong references to other sets is not rendered either.
func (r *renderer) compile() {
	byNamespace := map[string]map[string]*hubv1.AddonSetSpec{}
	for _, s := range r.all {
		if byNamespace[s.Namespace] == nil {
			byNamespace[s.Namespace] = map[string]*hubv1.AddonSetSpec{}
		}
		byNamespace[s.Namespace][s.Name] = &s.Spec
	}
	for _, s := range r.all {
		r.warnOfOldForm(s)
		c := &compiled{set: s, reach: r.reach(s.Namespace)}
		r.sets = append(r.sets, c)
		author := c.reach.Author(s.Name)
		author.Schemas = r.options.Schemas
		result := valid.Check(s, c.reach, author, byNamespace[s.Namespace], compile.Compile)
		if !r.fleet.live() {
			var absent compile.Errors
			absent, result.Graph = compile.Split(result.Graph)
			r.warnOfAbsent(c, absent)
		}
		about := "AddonSet " + c.String()
		for _, err := range result.Errors() {
			r.refuse(about, err)
		}
		c.selector, result.Selection = result.Selector, nil // also a set whose selector is wrong has a program
		if result.Err() == nil {
			c.program = result.Program
			c.program.Pins = r.fleet.pins[c.String()]
		}
	}
}

// refuse reports each of the errors that an error joins. about names what they are about.
func (r *renderer) refuse(about string, err error) { r.refuseOn("", about, err) }

// refuseOn is refuse for one cluster. about begins with what follows its name.
func (r *renderer) refuseOn(cluster, about string, err error) {
	switch err := err.(type) { //nolint:errorlint // made by compile and render, never wrapped
	case nil:
	case compile.Errors:
		for _, e := range err {
			r.refuseOn(cluster, about, e)
		}
	case compile.Error:
		if !err.Absent || !r.options.Incomplete {
			r.errors.add(cluster, fmt.Sprintf("%s: %s", about, err))
		}
	default:
		r.errors.add(cluster, fmt.Sprintf("%s: %s", about, err))
	}
}

// unused warns of objects that have no effect.
func (r *renderer) unused() {
	if r.options.Incomplete {
		return
	}
	if len(r.fleet.sets) == 0 {
		r.warn("there is no AddonSet in the files")
	}
	if len(r.fleet.members) == 0 {
		r.warn("there is no cluster in the files: write a ClusterRegistration, or label an origin %s: \"true\"", hubv1.RegisterLabel)
		return
	}
	for _, c := range r.sets {
		if c.selector == nil || slices.ContainsFunc(r.fleet.members, func(m *member) bool { return c.selector.Matches(m.registration) }) {
			continue
		}
		r.warn("AddonSet %s selects no cluster (%s): %s", c, c.selector, r.whyNot(c))
	}
}

// maxWhy is how many clusters a message names.
const maxWhy = 3

func (r *renderer) whyNot(c *compiled) string {
	var why []string
	for _, m := range r.fleet.members {
		why = append(why, fmt.Sprintf("%s: %s", m, c.selector.Why(m.registration)))
	}
	if n := len(why); n > maxWhy {
		why = append(why[:maxWhy], fmt.Sprintf("and %d more", n-maxWhy))
	}
	return strings.Join(why, "; ")
}

// choose returns the clusters to render.
func (r *renderer) choose() []*member {
	want := r.options.Cluster
	if want == "" {
		return r.fleet.members
	}
	var chosen []*member
	var known []string
	for _, m := range r.fleet.members {
		known = append(known, m.String())
		if want == m.registration.Name || want == m.String() {
			chosen = append(chosen, m)
		}
	}
	switch {
	case len(known) == 0:
		r.fail("there is no cluster in the files, and so none that is called %q", want)
	case len(chosen) == 0:
		r.fail("there is no cluster %q in the files; there are %s", want, strings.Join(known, ", "))
	}
	return chosen
}
