// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/eventview"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/page"
)

// Story is what is told of one cluster.
type Story struct {
	Namespace, Name string
	// Stand is how the cluster stands.
	Stand  *Row
	Header []Fact
	Labels []Label
	// MoreLabels is how many are left out.
	MoreLabels int
	Rows       []AddonRow
	Overrides  []explain.Override
	Orphans    []Orphan
	Events     []Event
	Notes      []string
}

// Fact is a line of a header.
type Fact struct {
	Name, Text string
	// Time is when it began, if that is known.
	Time *Time
	// Command is true if the text is one, for a terminal, and Code if it is a name of the hub's.
	Command, Code bool
}

// hubNames are the lines of a header whose texts are names of the hub's.
var hubNames = []string{"Revision", "Completed", "Object"}

// fact makes a fact of a line that a command prints.
func fact(line page.Field) Fact {
	f := Fact{Name: line.Name, Text: line.Text, Command: line.Command, Code: slices.Contains(hubNames, line.Name)}
	if f.Command {
		f.Name = inTerminal
	}
	return f
}

// inTerminal is what a page calls a command.
const inTerminal = "In a terminal"

// Label is a label of a cluster, and the clusters that have it too.
type Label struct{ Key, Value, URL string }

// maxShown is how many labels of a cluster its story shows.
const maxShown = 100

// AddonRow is an add-on of one set on the cluster; without Addon it is about the set.
type AddonRow struct {
	Addon, URL, Set, SetURL string
	Class                   Class
	State, Version, Why     string
	Since                   *Time
}

// Orphan is an add-on that was orphaned, and may still be there.
type Orphan struct {
	Addon, Set, Message string
	Since               *Time
}

// NewStory makes the story of a cluster of what explain says.
func NewStory(in *explain.Input, events []corev1.Event) *Story {
	reg := in.Registration
	report := explain.Cluster(in)
	s := &Story{Namespace: reg.Namespace, Name: reg.Name, Overrides: report.Overrides, Notes: report.Notes,
		Rows: addonRows(reg, report.Rows, in.Now), Events: Events(events, in.Now)}
	slices.SortStableFunc(s.Rows, func(a, b AddonRow) int { return cmp.Compare(a.Class, b.Class) })
	for _, line := range report.Header {
		if line.Name != "Cluster" {
			s.Header = append(s.Header, fact(page.Field{Name: line.Name, Text: line.Text}))
		}
	}
	s.Header = append(s.Header, Fact{Name: "Registered", Time: TimeOf(&reg.CreationTimestamp.Time, in.Now)},
		Fact{Name: inTerminal, Text: "chandler explain " + reg.Name + " -n " + reg.Namespace, Command: true})
	for k, v := range reg.Labels {
		s.Labels = append(s.Labels, Label{k, v, Query{path: "/", Labels: k + "=" + v}.URL()})
	}
	slices.SortFunc(s.Labels, func(a, b Label) int { return cmp.Compare(a.Key, b.Key) })
	shown := min(maxShown, len(s.Labels))
	s.Labels, s.MoreLabels = s.Labels[:shown], len(s.Labels)-shown
	for i := range reg.Status.Orphans {
		o := &reg.Status.Orphans[i]
		s.Orphans = append(s.Orphans, Orphan{o.Addon, o.AddonSet, excerpt.Line(o.Message), TimeOf(&o.Since.Time, in.Now)})
	}
	return s
}

func addonRows(reg *hubv1.ClusterRegistration, rows []explain.Row, now time.Time) []AddonRow {
	out := make([]AddonRow, len(rows))
	for i, r := range rows {
		out[i] = AddonRow{Addon: r.Addon, Set: r.Set, Class: ClassOf(r.State), State: string(r.State), Version: r.Version, Why: r.Why,
			Since: TimeOf(r.Since, now)}
		if r.Addon != "" {
			out[i].URL = ClusterAddonURL(reg.Namespace, reg.Name, r.Addon)
		}
		if ns, name, ok := strings.Cut(r.Set, "/"); ok {
			out[i].SetURL = SetURL(ns, name)
		}
	}
	return out
}

// ClusterAddon is what is told of one add-on on one cluster.
type ClusterAddon struct {
	Namespace, Name, Addon string
	URL                    string
	Everywhere             string
	Sentence               string
	Header                 []Fact
	Dependencies, Others   []AddonRow
	Overrides              []explain.Override
	Errors                 []string
	Fields                 []explain.Field
	Variables              []explain.Variable
	Notes                  []string
}

// maxField is how much of a value is shown.
const maxField = 400

// NewClusterAddon tells it as explain does.
func NewClusterAddon(in *explain.Input, addon string) (*ClusterAddon, error) {
	report, err := explain.Addon(in, addon)
	if err != nil {
		return nil, err
	}
	reg := in.Registration
	out := &ClusterAddon{Namespace: reg.Namespace, Name: reg.Name, Addon: addon, URL: ClusterURL(reg.Namespace, reg.Name),
		Everywhere: AddonURL(addon), Sentence: report.Sentence, Overrides: report.Overrides, Errors: report.Errors, Notes: report.Notes,
		Dependencies: addonRows(reg, report.Dependencies, in.Now), Others: addonRows(reg, report.Others, in.Now)}
	for _, line := range report.Header {
		out.Header = append(out.Header, fact(page.Field{Name: line.Name, Text: line.Text}))
	}
	for _, f := range report.Fields {
		f.Value = excerpt.Cut(excerpt.Visible(f.Value), maxField)
		out.Fields = append(out.Fields, f)
	}
	for _, v := range report.Variables {
		v.Value = excerpt.Cut(excerpt.Visible(v.Value), maxField)
		out.Variables = append(out.Variables, v)
	}
	return out, nil
}

// Event is something that the hub has told.
type Event struct {
	Time    *Time
	Warning bool
	Kind    string
	Object  string
	Reason  string
	Message string
	Count   int32
}

// maxEvents is how many events a story has.
const maxEvents = 30

// Events are the last ones, the newest first.
func Events(in []corev1.Event, now time.Time) []Event {
	in = slices.Clone(in)
	eventview.Sort(in)
	slices.Reverse(in)
	var out []Event
	for i := range in[:min(maxEvents, len(in))] {
		e := &in[i]
		count := eventview.Count(e)
		at := eventview.At(e)
		out = append(out, Event{Time: TimeOf(&at, now), Warning: e.Type == corev1.EventTypeWarning, Kind: e.InvolvedObject.Kind,
			Object: e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name, Reason: excerpt.Line(e.Reason),
			Message: excerpt.Cut(excerpt.Line(e.Message), 2*maxWhy), Count: count})
	}
	return out
}
