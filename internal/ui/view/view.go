// SPDX-License-Identifier: Apache-2.0

// Package view makes the views of `chandler ui`: what is known of a fleet goes in, and what a page shows comes out. It counts, groups,
// filters and pages, so that a page of 50,000 add-ons holds a screenful of them. It is pure: package ui reads and serves.
package view

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/status"
)

// Fleet is what is known of a hub. Nothing in it is changed.
type Fleet struct {
	Registrations []*hubv1.ClusterRegistration
	Sets          []*hubv1.AddonSet
	Deliveries    []*hubv1.AddonDelivery
	// Notes say what could not be read.
	Notes []string
	// Namespace is the only namespace that was read; "" for all of them.
	Namespace string
	// Unlisted are the kinds that could not be listed.
	Unlisted []string
}

// Unknown says why it is not known how many clusters a set has; "" if it is. A set whose reach ends at its own namespace needs no other.
func (f *Fleet) Unknown(reach match.Reach) string {
	for _, kind := range f.Unlisted {
		if kind == "ClusterRegistrations" || kind == "AddonDeliveries" {
			return "not known how many clusters: the " + kind + " could not be listed"
		}
	}
	if f.Namespace != "" && (f.Namespace != reach.Namespace || reach.Platform || reach.Team != nil) {
		return "not known how many clusters: only namespace " + f.Namespace + " was read"
	}
	return ""
}

// Class is how good or bad a state is. The smaller, the worse.
type Class int

// The classes.
const (
	Failed Class = iota
	Trouble
	Busy
	Paused
	Ready
	Off
)

// Classes are all of them, the worst first.
var Classes = []Class{Failed, Trouble, Busy, Paused, Ready, Off}

var classes = [...]struct{ name, word, sign string }{
	Failed:  {"failed", "failed", "✗"},
	Trouble: {"trouble", "need attention", "!"},
	Busy:    {"busy", "in progress", "…"},
	Paused:  {"paused", "paused", "‖"},
	Ready:   {"ready", "Ready", "✓"},
	Off:     {"off", "without add-ons", "–"},
}

// String is its name in addresses and in style sheets.
func (c Class) String() string { return classes[c].name }

// Word is how people call clusters or add-ons of the class.
func (c Class) Word() string { return classes[c].word }

// Sign stands beside the word, so that colour is never alone.
func (c Class) Sign() string { return classes[c].sign }

// ClassOf returns the class of an add-on's state.
func ClassOf(s hubv1.AddonState) Class {
	switch s {
	case hubv1.AddonFailed:
		return Failed
	case hubv1.AddonProgressing, hubv1.AddonWaitingForDependency, hubv1.AddonWaitingForCluster, hubv1.AddonWaitingForNodes,
		hubv1.AddonRemoving, "Pending", "":
		return Busy
	case hubv1.AddonPaused, hubv1.AddonSuspended:
		return Paused
	case hubv1.AddonReady:
		return Ready
	case hubv1.AddonExcluded, hubv1.AddonLostTo, hubv1.AddonOrphaned, "NotSelected", "NotHere":
		return Off
	}
	return Trouble
}

// Index is a fleet in the order in which pages show it.
type Index struct {
	*Fleet
	clusters []*cluster
	byKey    map[types.NamespacedName]*cluster
	sets     map[types.NamespacedName]*hubv1.AddonSet
	// labels are the label keys of the registrations, those of most of them first.
	labels []string
	// terms are beginnings of label selectors: a key, or a key with a value that many clusters have.
	terms []string
	// addons are the names of all add-ons.
	addons []string
}

// cluster is one cluster with all that is delivered to it.
type cluster struct {
	key types.NamespacedName
	// reg is nil if it does not exist, or may not be read.
	reg        *hubv1.ClusterRegistration
	deliveries []*hubv1.AddonDelivery
	cells      []cell
	class      Class
	word       string
	// why says what is wrong; of is the add-on that it is about, if any, and since when that is so.
	why   string
	of    string
	since *metav1.Time
}

// cell is one add-on of one set on one cluster.
type cell struct {
	*hubv1.AddonStatus
	delivery *hubv1.AddonDelivery
}

// NewIndex puts a fleet in order.
func NewIndex(f *Fleet) *Index {
	x := &Index{Fleet: f, byKey: make(map[types.NamespacedName]*cluster, len(f.Registrations)),
		sets: map[types.NamespacedName]*hubv1.AddonSet{}}
	for _, reg := range f.Registrations {
		x.at(types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}).reg = reg
	}
	x.suggest()
	for _, d := range f.Deliveries {
		c := x.at(d.Spec.RegistrationRef.Key())
		c.deliveries = append(c.deliveries, d)
		for i := range d.Status.Addons {
			c.cells = append(c.cells, cell{&d.Status.Addons[i], d})
		}
	}
	for _, s := range f.Sets {
		x.sets[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = s
	}
	for _, c := range x.clusters {
		slices.SortFunc(c.cells, func(a, b cell) int {
			return cmp.Or(cmp.Compare(ClassOf(a.State), ClassOf(b.State)), cmp.Compare(a.Name, b.Name),
				cmp.Compare(a.delivery.Namespace, b.delivery.Namespace))
		})
		c.judge()
	}
	slices.SortFunc(x.clusters, func(a, b *cluster) int { return cmp.Or(cmp.Compare(a.class, b.class), compareKeys(a.key, b.key)) })
	return x
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (x *Index) at(key types.NamespacedName) *cluster {
	c := x.byKey[key]
	if c == nil {
		c = &cluster{key: key}
		x.byKey[key] = c
		x.clusters = append(x.clusters, c)
	}
	return c
}

// judge says how a cluster stands, by the worst that is known of it.
func (c *cluster) judge() {
	say := func(class Class, word, why string, since *metav1.Time) {
		c.class, c.word, c.why, c.since = class, word, excerpt.Cut(excerpt.Line(why), maxWhole), since
	}
	condition := func(class Class, word, kind string) {
		say(class, word, reasonOf(c.reg, kind), nil)
		if found := status.Find(c.reg, kind); found != nil {
			c.since = &found.LastTransitionTime
		}
	}
	worst := Off
	var of cell
	if len(c.cells) > 0 {
		of = c.cells[0] // sorted
		worst = ClassOf(of.State)
	}
	addon := func(class Class, word string) {
		say(class, word, of.Message, of.Since)
		c.of = of.Name
	}
	switch {
	case worst == Failed:
		addon(Failed, "Failed")
		return
	case c.reg == nil:
		say(Trouble, "NoRegistration", "there is no ClusterRegistration of this name, or you may not see it", nil)
		return
	}
	ready := status.Find(c.reg, hubv1.ReadyCondition)
	switch {
	case c.reg.DeletionTimestamp != nil:
		condition(Busy, "Leaving", hubv1.UnregisteringCondition)
	case status.Find(c.reg, hubv1.StalledCondition) != nil:
		condition(Failed, "Stalled", hubv1.StalledCondition)
	case worst == Trouble && of.State != hubv1.AddonUnreachable:
		addon(Trouble, string(of.State))
	case !status.Online(c.reg) && status.Find(c.reg, hubv1.ReachableCondition) != nil:
		condition(Trouble, "Unreachable", hubv1.ReachableCondition)
	case worst == Trouble, worst == Busy:
		addon(worst, string(cmp.Or(of.State, "Pending")))
	case status.IsTrue(c.reg, hubv1.SuspendedCondition):
		condition(Paused, "Paused", hubv1.SuspendedCondition)
	case worst == Paused:
		addon(Paused, string(of.State))
	case worst == Ready && (ready == nil || ready.Status == "True"):
		say(Ready, "Ready", "", nil)
		if ready != nil {
			c.since = &ready.LastTransitionTime
		}
	case ready == nil:
		say(Busy, "Pending", "the hub has not looked at it yet", nil)
	case ready.Status == "True", ready.Reason == hubv1.NoAddonSetReason:
		say(Off, "NoAddons", ready.Message, &ready.LastTransitionTime)
	default:
		say(Busy, cmp.Or(ready.Reason, "NotReady"), ready.Message, &ready.LastTransitionTime)
	}
}

const (
	// maxWhy is how much of a message a table shows.
	maxWhy = 240
	// maxWhole is how much of a message is shown where it is opened.
	maxWhole = 1000
)

func reasonOf(o status.Object, condition string) string {
	c := status.Find(o, condition)
	if c == nil {
		return ""
	}
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

// Time is a moment for people: how long ago it was, and exactly when.
type Time struct {
	At  time.Time
	Now time.Time
	// About says that only about how long ago it was is known.
	About bool
}

// about returns a moment somewhere in a span that began then: how long ago that was is a multiple of the span.
func about(began time.Time, span time.Duration, now time.Time) *Time {
	past := max(span, now.Sub(began.Add(span/2)).Round(span))
	return &Time{At: now.Add(-past), Now: now, About: true}
}

// TimeOf returns nil for no time.
func TimeOf(at *time.Time, now time.Time) *Time {
	if at == nil || at.IsZero() {
		return nil
	}
	return &Time{At: *at, Now: now}
}
