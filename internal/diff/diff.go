// SPDX-License-Identifier: Apache-2.0

// Package diff says what the hub would do to every cluster if the files of a fleet became others. Clusters with the same changes are one
// group. It asks the hub's own compiler, conflict rules, plan, removal guard and rollout engine. It is pure.
//
// It looks at one cluster at a time, and keeps only the changes of each group, once: fleets have thousands of clusters.
package diff

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/preview"
)

// Input is two fleets, of which the first becomes the second.
type Input struct {
	Before, After *preview.Fleet
	Options       preview.Options
	// From and To say where the two are from.
	From, To string
	// Snapshot is when the fleet was exported; zero if it was not.
	Snapshot time.Time
	// Notes say what was not looked at.
	Notes []string
	// Charts make the objects of the clusters, if these are to be compared too.
	Charts *Makers
}

// Result is everything that the hub would do.
type Result struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Fleet   Fleet   `json:"fleet"`
	Summary Summary `json:"summary"`
	// Groups of clusters with the same changes, the biggest first.
	Groups []Group `json:"groups"`
	// Settings are those of sets and clusters that are not as before, and show in no Flux object: a removal guard, a pause.
	Settings []string `json:"settings"`
	// Guards are the sets whose removal guard would hold something.
	Guards []Guard `json:"guards"`
	// Rollouts are the sets that get a new revision.
	Rollouts []Rollout `json:"rollouts"`
	// Problems are why something could not be compared.
	Problems []Problem `json:"problems"`
	// Warnings are about the new files, and are not about the old ones.
	Warnings []string `json:"warnings"`
	// Notes say what was not looked at.
	Notes []string `json:"notes"`
	// Unseen are Flux objects that stay as they are, and whose objects could not be made.
	Unseen []Unseen `json:"unseen,omitempty"`
	// Tried is what the API servers of a sample of clusters make of it, if they were asked.
	Tried []Tried `json:"tried,omitempty"`

	computing *computing
	// clusters are all of both fleets, and standing is how likely each is to answer.
	clusters []string
	standing map[string]int
}

// Fleet is what is known of the clusters.
type Fleet struct {
	Clusters int `json:"clusters"`
	// Snapshot is when they were exported, and Age how long that is ago, in seconds; empty if they were not.
	Snapshot *time.Time `json:"snapshot,omitempty"`
	Age      int64      `json:"ageSeconds,omitempty"`
}

// Summary counts clusters, and add-ons on clusters by what happens to them.
type Summary struct {
	Changed   int          `json:"changed"`
	Unchanged int          `json:"unchanged"`
	Addons    map[Kind]int `json:"addons"`
}

// Group is clusters with the same changes.
type Group struct {
	// Clusters by namespace/name.
	Clusters []string `json:"clusters"`
	// Where says which clusters these are by a label that no other has, such as region=eu; empty if none does. "all" is all.
	Where string `json:"where,omitempty"`
	// State is Joins for clusters that come, Leaves for those that go, and Stays for all others.
	State   State    `json:"state"`
	Changes []Change `json:"changes"`
}

// State is what becomes of a cluster.
type State string

// The states.
const (
	Stays  State = "Stays"
	Joins  State = "Joins"
	Leaves State = "Leaves"
)

// Kind is what happens to an add-on.
type Kind string

// The kinds, in the order in which a summary names them.
const (
	Removed     Kind = "Removed"
	Reinstalled Kind = "Reinstalled"
	Orphaned    Kind = "Orphaned"
	Winner      Kind = "WinnerChanged"
	Moved       Kind = "Moved"
	Adopted     Kind = "Adopted"
	New         Kind = "New"
	Changed     Kind = "Changed"
	Waits       Kind = "Waits"
	NotWon      Kind = "NotDelivered"
	// Content is a Flux object that stays as it is, and refers to what does not.
	Content Kind = "Content"
)

var kinds = []Kind{Removed, Reinstalled, Orphaned, Winner, Moved, Adopted, New, Changed, Content, Waits, NotWon}

// Change is what happens to one Flux object of a cluster.
type Change struct {
	Kind Kind `json:"kind"`
	// Set is namespace/name of the AddonSet that delivers it from now on, or has delivered it. FromSet is the one before, if that is
	// another one.
	Set     string `json:"set"`
	FromSet string `json:"fromSet,omitempty"`
	Addon   string `json:"addon"`
	// FromAddon is its name before, if that is another one.
	FromAddon string `json:"fromAddon,omitempty"`
	// CRDs is true for the release that delivers only the CustomResourceDefinitions of the add-on.
	CRDs bool `json:"crds,omitempty"`
	// Object is the kind of the Flux object.
	Object string `json:"object"`
	// What says what is delivered, such as chart podinfo 6.7.0.
	What string `json:"what,omitempty"`
	// Reason says why, where that is not plain.
	Reason string  `json:"reason,omitempty"`
	Fields []Field `json:"fields,omitempty"`
	// Inside is what it does to the objects of the cluster, if these are compared.
	Inside *Inside `json:"inside,omitempty"`

	// old and next are the Flux object before and after, until its objects are made.
	old, next *preview.Item
}

// Field is a field of an object that is not as before.
type Field struct {
	Path string `json:"path"`
	// Old and New are JSON; empty where there is no such field, or if it is not shown.
	Old json.RawMessage `json:"old,omitempty"`
	New json.RawMessage `json:"new,omitempty"`
	// Op is Added, Removed or Changed.
	Op string `json:"op"`
	// Layer set the field, and Was set it before, if that is another one.
	Layer string `json:"layer,omitempty"`
	Was   string `json:"was,omitempty"`
	// Hidden is true if it may be secret, or is none that a person can read.
	Hidden bool `json:"hidden,omitempty"`
}

// Problem is why something could not be compared.
type Problem struct {
	// Side is Old, New or Both; or Live for what a dry run could not tell.
	Side     string   `json:"side"`
	Text     string   `json:"text"`
	Clusters []string `json:"clusters,omitempty"`
	Where    string   `json:"where,omitempty"`
}

// Unseen counts Flux objects that stay as they are with everything that is known of what they refer to, and that could not be looked into
// for the same reason.
type Unseen struct {
	Objects int    `json:"objects"`
	Reason  string `json:"reason"`
}

// Compute compares two fleets.
func Compute(in *Input) *Result {
	in.Options.Explain = true
	c := &computing{
		cmp: preview.NewComparison(in.Before, in.After, in.Options), groups: newGroups(), problems: newGroups(), warned: newGroups(),
		noted: newGroups(), set: newGroups(),
		guards: map[string]*losses{}, changed: map[string]map[types.NamespacedName]bool{}, had: map[string]map[types.NamespacedName]bool{},
		floats: map[string]string{}, unseen: map[string]int{},
		out: &Result{From: in.From, To: in.To, Summary: Summary{Addons: map[Kind]int{}}, Groups: []Group{}, Guards: []Guard{},
			Settings: []string{}, Rollouts: []Rollout{}, Problems: []Problem{}, Warnings: []string{}, Notes: []string{}},
	}
	c.out.computing, c.out.standing = c, map[string]int{}
	if !in.Snapshot.IsZero() {
		at := in.Snapshot.UTC()
		c.out.Fleet.Snapshot, c.out.Fleet.Age = &at, int64(in.Options.Now.Sub(at).Seconds())
	}
	c.exported = !in.Snapshot.IsZero()
	if in.Charts != nil {
		c.insides = &insides{makers: in.Charts, kept: map[string]*Inside{}}
	}
	c.sets()
	c.cmp.Each(c.cluster)
	c.result(in.Options.Now)
	c.out.Notes = append(c.out.Notes, in.Notes...)
	return c.out
}

// Equal returns whether nothing would happen, now or later.
func (r *Result) Equal() bool { return len(r.Groups)+len(r.Settings) == 0 }

// Quiet returns whether there is nothing to say but that.
func (r *Result) Quiet() bool {
	return r.Equal() && len(r.Problems)+len(r.Warnings)+len(r.Notes)+len(r.Tried) == 0 && r.Fleet.Snapshot == nil
}

// computing is a result that is being made.
type computing struct {
	cmp *preview.Comparison
	out *Result
	// groups are by the changes, problems by what is wrong, warned by what others have to mend, noted by what else is to know, and set
	// by settings.
	groups, problems, warned, noted, set *groups
	guards                               map[string]*losses
	// changed are the clusters that a set changes something on, and had are those that it has delivered to.
	changed, had map[string]map[types.NamespacedName]bool
	// floats are the ConfigMaps that are not as before, by the set that refers to them.
	floats map[string]string
	pairs  map[string]*preview.SetPair
	// insides are what changes do to objects; nil if these are not compared.
	insides *insides
	// unseen counts Flux objects that stay as they are, by why their objects are not known.
	unseen map[string]int
	// exported is true if the clusters are those of an export, which does not say how the hub logs in to them.
	exported bool
}

func (c *computing) sets() {
	c.pairs = map[string]*preview.SetPair{}
	for _, s := range c.cmp.Sets() {
		c.pairs[s.Name] = &s
		c.settings(&s)
	}
	for _, side := range []struct {
		name   string
		report *preview.Report
	}{{"Old", c.cmp.Old}, {"New", c.cmp.New}} {
		for _, text := range side.report.Errors {
			c.problem(side.name, text)
		}
	}
	for _, text := range c.cmp.New.Warnings {
		if !slices.Contains(c.cmp.Old.Warnings, text) {
			c.out.Warnings = append(c.out.Warnings, text)
		}
	}
}

// problem notes one that is of no cluster.
func (c *computing) problem(side, text string) {
	for i := range c.out.Problems {
		if p := &c.out.Problems[i]; p.Text == text && p.Side != side {
			p.Side = "Both"
			return
		}
	}
	c.out.Problems = append(c.out.Problems, Problem{Side: side, Text: text})
}

// cluster looks at one cluster.
func (c *computing) cluster(p *preview.Pair) {
	state := Stays
	switch {
	case p.Before == nil:
		state = Joins
	case p.After == nil:
		state = Leaves
	}
	labels := map[string]string{}
	for _, reg := range []*hubv1.ClusterRegistration{p.Before, p.After} {
		if reg != nil {
			labels = reg.Labels
		}
	}
	name := p.Name.String()
	c.out.clusters, c.out.standing[name] = append(c.out.clusters, name), standingOf(p)
	all := [...]*groups{c.groups, c.problems, c.warned, c.noted, c.set}
	for _, g := range all {
		g.know(labels)
	}
	c.troubles(p, name, labels)
	c.notes(p)
	c.elsewhere(p, name, labels)
	c.settingsOf(p, name, labels)
	changes := c.changes(p)
	changes = c.inside(p, changes, name, labels)
	if text := standing(p, len(changes) > 0); text != "" {
		c.noted.add("", text, name, labels)
	}
	c.loses(p, changes)
	if len(changes) == 0 {
		c.out.Summary.Unchanged++
		return
	}
	c.out.Summary.Changed++
	for i := range changes {
		c.out.Summary.Addons[changes[i].Kind]++
		if changes[i].Kind == Content || changes[i].onlyMetadata() { // no revision of the set brings it
			continue
		}
		for _, set := range []string{changes[i].Set, changes[i].FromSet} {
			if set != "" {
				mark(c.changed, set, p.Name)
			}
		}
	}
	c.groups.add(string(state), changes, name, labels)
}

func mark(in map[string]map[types.NamespacedName]bool, set string, name types.NamespacedName) {
	if in[set] == nil {
		in[set] = map[types.NamespacedName]bool{}
	}
	in[set][name] = true
}

// troubles notes what could not be rendered, and what the cluster's owner wrote in vain.
func (c *computing) troubles(p *preview.Pair, name string, labels map[string]string) {
	sides := func(old, next []string, note func(side, text string)) {
		for _, text := range next {
			if slices.Contains(old, text) {
				note("Both", text)
			} else {
				note("New", text)
			}
		}
		for _, text := range old {
			if !slices.Contains(next, text) {
				note("Old", text)
			}
		}
	}
	sides(texts(p.Old.Failed), texts(p.New.Failed), func(side, text string) {
		c.problems.add(side, text, name, labels)
	})
	sides(p.Old.Refused, p.New.Refused, func(side, text string) {
		switch side {
		case "New":
			c.problems.add(side, text, name, labels)
		case "Both":
			c.warned.add(side, text, name, labels)
		}
	})
}

func texts(notes []preview.Note) []string {
	out := make([]string, len(notes))
	for i, n := range notes {
		out[i] = n.String()
	}
	return out
}

// notes remembers what the rollouts need to know.
func (c *computing) notes(p *preview.Pair) {
	for _, s := range p.Old.Sets {
		mark(c.had, s, p.Name)
	}
	for set, refs := range p.New.Refs {
		pair := c.pairs[set]
		if pair == nil || pair.New == nil || c.floats[set] != "" {
			continue
		}
		for _, ref := range refs {
			if ref.Kind == "ConfigMap" && c.cmp.Changed(pair.New.Namespace, ref) {
				c.floats[set] = ref.Name
			}
		}
	}
}

// result puts everything together.
func (c *computing) result(now time.Time) {
	c.out.Fleet.Clusters = c.groups.total
	for _, g := range c.groups.sorted() {
		c.out.Groups = append(c.out.Groups, Group{Clusters: g.clusters, Where: c.groups.where(g), State: State(g.kind), Changes: g.changes})
	}
	for _, g := range c.problems.sorted() {
		c.out.Problems = append(c.out.Problems, Problem{Side: g.kind, Text: g.text, Clusters: g.clusters, Where: c.problems.where(g)})
	}
	for _, g := range c.warned.sorted() {
		c.out.Warnings = append(c.out.Warnings, c.warned.name(g)+": "+g.text)
	}
	for _, g := range c.set.sorted() {
		c.out.Settings = append(c.out.Settings, c.set.name(g)+": "+g.text)
	}
	for _, g := range c.noted.sorted() {
		c.out.Notes = append(c.out.Notes, c.noted.name(g)+": "+g.text)
	}
	for _, reason := range slices.Sorted(maps.Keys(c.unseen)) {
		c.out.Unseen = append(c.out.Unseen, Unseen{c.unseen[reason], reason})
	}
	c.guard(now)
	c.rollouts(now)
	slices.SortStableFunc(c.out.Problems, func(a, b Problem) int { return cmp.Compare(len(a.Clusters), len(b.Clusters)) })
}
