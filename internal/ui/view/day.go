// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/status"
)

const (
	// half is how long a bar of a day is, and halves how many there are.
	half, halves = 30 * time.Minute, 48
	// barHeight is that of the highest bar.
	barHeight = 20
	// maxEntries is how many lines a day has.
	maxEntries = 6
)

// Day is what happened in the last day, as far as the hub's objects still tell: a failure that was mended leaves no trace in them.
type Day struct {
	Lanes []Lane
	// Entries are the same in words, the newest first.
	Entries []Entry
	// More is how many entries are left out.
	More int
}

// Lane is one kind of happenings, with a bar for each half of an hour.
type Lane struct {
	Name string
	N    int
	Bars []DayBar
}

// DayBar is how much happened in half an hour.
type DayBar struct {
	Class               Class
	X, Y, Width, Height int
	Title               string
}

// Entry says what happened.
type Entry struct {
	Time      *Time
	Class     Class
	Text, URL string
}

// The lanes.
const (
	revisionLane = iota
	readyLane
	failureLane
	awayLane
	removalLane
)

var lanes = []string{revisionLane: "Revisions", readyLane: "Became Ready", failureLane: "Failed", awayLane: "Unreachable",
	removalLane: "Removals"}

// happening is something that happened to n clusters. Those of one kind, with one text for many, are one entry.
type happening struct {
	lane      int
	class     Class
	at        time.Time
	n         int
	one, many string
	url       string
	// span is how long after that time it may have been; 0 if the time is exact.
	span time.Duration
}

// day collects what happened.
type day struct {
	from, now time.Time
	all       []happening
}

func newDay(now time.Time) *day {
	return &day{from: now.Truncate(half).Add(half - halves*half), now: now}
}

func (d *day) add(h happening, at *metav1.Time) {
	if at == nil || at.Time.Before(d.from) || at.After(d.now) {
		return
	}
	h.at, h.n = at.Time, max(1, h.n)
	d.all = append(d.all, h)
}

// cluster collects what happened to a cluster, as far as it is about the set and the add-on that are asked for.
func (d *day) cluster(c *cluster, f *filter) {
	name, concerns := c.key.String(), f.Set == "" && f.Addon == ""
	for _, delivery := range c.deliveries {
		set := delivery.SetKey()
		if f.Set != "" && f.Set != set.String() {
			continue
		}
		concerns = true
		url := SetURL(set.Namespace, set.Name)
		if delivery.Status.ReadyRevision != "" && f.Addon == "" {
			d.add(happening{lane: readyLane, class: Ready, one: set.Name + " became Ready on " + name,
				many: set.Name + " became Ready on %s clusters", url: url}, delivery.Status.ReadyTime)
		}
		d.add(happening{lane: removalLane, class: Off, one: set.Name + " is leaving " + name,
			many: set.Name + " is leaving %s clusters", url: url}, delivery.DeletionTimestamp)
	}
	for i := range c.cells {
		cell := &c.cells[i]
		if cell.State == hubv1.AddonFailed && f.takesCell(cell) {
			d.add(happening{lane: failureLane, class: Failed, one: cell.Name + " failed on " + name, many: cell.Name + " failed on %s clusters",
				url: Query{path: "/", Addon: cell.Name, State: Failed.String()}.URL()}, cell.Since)
		}
	}
	if c.reg == nil || !concerns {
		return
	}
	if away := status.Find(c.reg, hubv1.ReachableCondition); away != nil && away.Status == metav1.ConditionFalse {
		d.add(happening{lane: awayLane, class: Trouble, one: name + " stopped answering", many: "%s clusters stopped answering",
			url: Query{path: "/", State: Trouble.String()}.URL()}, &away.LastTransitionTime)
	}
}

// set collects what happened to a set as a whole.
func (d *day) set(s *hubv1.AddonSet) {
	url := SetURL(s.Namespace, s.Name)
	if r := s.Status.Rollout; r != nil {
		d.add(happening{class: Busy, one: s.Name + ": the rollout of " + r.Revision + " began", url: url}, r.Started)
		if r.Phase == hubv1.RolloutDone {
			d.add(happening{class: Ready, one: s.Name + ": the rollout of " + r.CompletedRevision + " completed", url: url}, r.CompletedTime)
		}
	}
	if h := s.Status.HeldRemovals; h != nil {
		d.add(happening{lane: removalLane, class: Trouble, n: int(h.Count), one: s.Name + ": the removal from 1 cluster needs approval",
			many: s.Name + ": removals from %s clusters need approval", url: SetURL(s.Namespace, s.Name, "removals")}, h.Since)
	}
	if r := s.Status.Removals; r != nil {
		span := guard.Bucket(guard.WindowOf(&s.Spec, 0))
		for i := range r.Counts {
			d.add(happening{lane: removalLane, class: Off, n: int(r.Counts[i].Count), one: s.Name + ": 1 removal began",
				many: s.Name + ": %s removals began", url: url, span: span}, &r.Counts[i].Time)
		}
	}
}

// day tells what happened to some clusters, and to the sets that are asked for.
func (x *Index) day(f *filter, rows []*cluster, now time.Time) *day {
	d := newDay(now)
	for _, c := range rows {
		d.cluster(c, f)
	}
	for _, s := range x.Sets {
		has := func(a hubv1.Addon) bool { return f.Addon == "" || a.Name == f.Addon }
		if (f.Set == "" || f.Set == s.Namespace+"/"+s.Name) && slices.ContainsFunc(s.Spec.Addons, has) {
			d.set(s)
		}
	}
	return d
}

// SetDay tells what happened to a set, which has these revisions.
func (x *Index) SetDay(set types.NamespacedName, revisions []appsv1.ControllerRevision, now time.Time) *Day {
	f, _ := Query{Set: set.String()}.filter()
	d := x.day(f, x.clusters, now)
	for i := range revisions {
		r := &revisions[i]
		d.add(happening{class: Busy, one: fmt.Sprintf("revision %d is %s", r.Revision, r.Name), url: "#history"}, &r.CreationTimestamp)
	}
	return d.tell()
}

// tell draws and words it.
func (d *day) tell() *Day {
	out := &Day{}
	for i, name := range lanes {
		if lane := d.lane(i, name); lane.N > 0 || i != readyLane && i != awayLane {
			out.Lanes = append(out.Lanes, lane)
		}
	}
	entries := map[string]*happening{}
	var order []*happening
	for _, h := range d.all {
		key := h.url + " " + cmp.Or(h.many, h.one) // sets of two namespaces may have one name
		if known := entries[key]; known != nil {
			if known.n += h.n; h.at.After(known.at) {
				known.at = h.at
			}
			continue
		}
		entries[key] = &h
		order = append(order, &h)
	}
	slices.SortFunc(order, func(a, b *happening) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.one, b.one)) })
	for _, h := range order[:min(maxEntries, len(order))] {
		text := h.one
		if h.n > 1 {
			text = fmt.Sprintf(h.many, excerpt.Thousands(h.n))
		}
		at := TimeOf(&h.at, d.now)
		if h.span > 0 {
			at = about(h.at, h.span, d.now)
		}
		out.Entries = append(out.Entries, Entry{at, h.class, text, h.url})
	}
	out.More = len(order) - len(out.Entries)
	return out
}

// lane draws a lane: a bar for each half of an hour, of which each class is a part.
func (d *day) lane(lane int, name string) Lane {
	out := Lane{Name: name}
	var counts [halves][Off + 1]int
	var sums [halves]int
	for i := range d.all {
		h := &d.all[i]
		if h.lane != lane {
			continue
		}
		at := min(halves-1, int(h.at.Sub(d.from)/half))
		counts[at][h.class] += h.n
		sums[at] += h.n
		out.N += h.n
	}
	most := slices.Max(sums[:])
	for at, sum := range sums {
		from := d.from.Add(time.Duration(at) * half)
		y := barHeight
		for class, n := range counts[at] {
			if n == 0 {
				continue
			}
			height := max(3, n*barHeight/most)
			y = max(0, y-height)
			out.Bars = append(out.Bars, DayBar{Class: Class(class), X: at * 20, Y: y, Width: 17, Height: height,
				Title: fmt.Sprintf("%s, %s to %s UTC: %s", name, from.UTC().Format("15:04"), from.Add(half).UTC().Format("15:04"),
					excerpt.Thousands(sum))})
		}
	}
	return out
}
