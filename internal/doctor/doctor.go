// SPDX-License-Identifier: Apache-2.0

// Package doctor says what is wrong with a hub, with the Flux beside it and with its fleet, and what to do. It judges facts that
// another package has gathered.
package doctor

import (
	"cmp"
	"slices"

	"github.com/chandler-hub/chandler/internal/status"
)

// Severity is how bad a finding is.
type Severity string

// Severities, the worst first.
const (
	// Error: something does not work, or a user gets what the user must not get.
	Error Severity = "ERROR"
	// Warning: something works and may not for long, or is not as it should be.
	Warning Severity = "WARNING"
	// NotChecked: the caller could not find out.
	NotChecked Severity = "NOT CHECKED"
	// OK: nothing was found.
	OK Severity = "OK"
)

var order = []Severity{Error, Warning, NotChecked, OK}

// Check is a group of rules.
type Check string

// Checks, in the order in which they are shown.
const (
	CheckHub         Check = "Hub"
	CheckClock       Check = "Clock"
	CheckCRDs        Check = "CRDs"
	CheckPolicies    Check = "Policies"
	CheckRights      Check = "Rights"
	CheckFlux        Check = "Flux"
	CheckCapacity    Check = "Capacity"
	CheckSources     Check = "Sources"
	CheckClusters    Check = "Clusters"
	CheckCredentials Check = "Credentials"
	CheckCopies      Check = "Copies"
	CheckSets        Check = "Sets"
	CheckOverrides   Check = "Overrides"
)

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code never changes its meaning: docs/doctor.md lists all.
	Code string `json:"code"`
	What string `json:"what"`
	// Remedy is what to do.
	Remedy string `json:"remedy,omitempty"`
	// Objects are some of those that it is about; Count is how many there are.
	Objects []string `json:"objects,omitempty"`
	Count   int      `json:"count,omitempty"`
}

// maxObjects is how many objects a finding names.
const maxObjects = 5

// Objects counts objects, and keeps the names of the first.
type Objects struct {
	Names []string
	Count int
}

// Add counts one more.
func (o *Objects) Add(name string) {
	if o.Count++; len(o.Names) < maxObjects {
		o.Names = append(o.Names, name)
	}
}

// about returns a finding about some objects.
func (o Objects) about(f Finding) Finding {
	f.Objects, f.Count = o.Names, o.Count
	return f
}

// Group is what one check has found.
type Group struct {
	Check Check    `json:"check"`
	State Severity `json:"state"`
	// Summary says what was looked at.
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings,omitempty"`
}

// Report is what all checks have found.
type Report struct {
	Checks     []Group `json:"checks"`
	Errors     int     `json:"errors"`
	Warnings   int     `json:"warnings"`
	NotChecked int     `json:"notChecked"`
}

// rule finds one kind of fault.
type rule func(*Facts) []Finding

// checks are all rules, and what each check says that it looked at.
var checks = []struct {
	check   Check
	summary func(*Facts) string
	rules   []rule
}{
	{CheckHub, hubSummary, []rule{hubMissing, hubsTwice, hubPods, hubRestarts, hubLeads}},
	{CheckClock, clockSummary, []rule{callerClock, hubClock}},
	{CheckCRDs, crdSummary, []rule{ourCRDs, fluxCRDs}},
	{CheckPolicies, policySummary, []rule{policiesMissing, policiesUnbound, policiesDiffer}},
	{CheckRights, rightsSummary, []rule{rightsMissing, rightsTooMany}},
	{CheckFlux, fluxSummary, []rule{fluxMissing, fluxTwice, fluxPods, fluxVersions, crossNamespace, defaultAccount, remoteBases,
		identityGate, ownNamespace, shardsServed, shardsIdle, shardsShared}},
	{CheckCapacity, capacitySummary, []rule{workers}},
	{CheckSources, sourcesSummary, []rule{sourcesFail}},
	{CheckClusters, clustersSummary, []rule{clustersFail, clustersUnseen, clustersDuplicate}},
	{CheckCredentials, credentialsSummary, []rule{credentialsExpire}},
	{CheckCopies, copiesSummary, []rule{copiesOpen, copiesRead}},
	{CheckSets, setsSummary, []rule{setsMatchNothing, setsStalled, setsHeld, setsFailed, setsBehind, setsLeft}},
	{CheckOverrides, overridesSummary, []rule{overridesOver, overridesRefused, pausesOver}},
}

// Examine judges facts.
func Examine(f *Facts) Report {
	r := Report{}
	for _, c := range checks {
		g := Group{Check: c.check, Summary: c.summary(f)}
		for _, find := range c.rules {
			g.Findings = append(g.Findings, find(f)...)
		}
		for _, u := range f.Unread {
			if u.Check == c.check {
				g.Findings = append(g.Findings, Finding{Severity: NotChecked, Code: "NotChecked", What: "not checked: " + u.What, Remedy: u.Remedy})
			}
		}
		slices.SortStableFunc(g.Findings, func(a, b Finding) int {
			return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
		})
		g.State = OK
		if len(g.Findings) > 0 {
			g.State = g.Findings[0].Severity
		}
		r.count(g.Findings)
		r.Checks = append(r.Checks, g)
	}
	return r
}

func (r *Report) count(findings []Finding) {
	for i := range findings {
		switch findings[i].Severity {
		case Error:
			r.Errors++
		case Warning:
			r.Warnings++
		case NotChecked:
			r.NotChecked++
		case OK:
		}
	}
}

// one is a list of one finding.
func one(f Finding) []Finding { return []Finding{f} }

// some is a finding about some objects; none if there are none.
func some(o Objects, f Finding) []Finding {
	if o.Count == 0 {
		return nil
	}
	return one(o.about(f))
}

// list shortens a list of names in a sentence.
func list(names []string) string { return status.List(names, maxObjects) }
