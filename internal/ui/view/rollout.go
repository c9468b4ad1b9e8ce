// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// Rollout is how new revisions of a set reach its clusters.
type Rollout struct {
	Namespace, Name string
	Class           Class
	State           string
	// Said is what the last order from here has said.
	Said  []string
	Facts []Fact
	// Soaked is when the soak ends.
	Soaked  *Time
	Notes   []string
	Actions []Action
	// MayNot is true if the caller may give no orders.
	MayNot   bool
	Clusters string
	// Unknown says why there are no numbers of clusters.
	Unknown string
	Bar     Bar
	Waves   []Wave
	Failed  []Member
	Members []Member
	Pager   Pager
	Follows [][]string
	History []Revision
	// Held is how many clusters wait with a removal, and where that is approved.
	Held    int
	HeldURL string
	// Day is what happened in the last day.
	Day *Day
}

// Action is an order that can be given now. Main is the one that the rollout waits for.
type Action struct {
	Verb, Text, URL string
	Main            bool
}

// Wave is a wave.
type Wave struct {
	Name, State     string
	Present         bool
	Total           int
	Bar             Bar
	AtOnce, MayFail int
	Soak            string
	Manual          bool
}

// Member is a cluster in a rollout.
type Member struct {
	Cluster, URL, Wave, Revision, Why string
	Class                             Class
	State                             string
}

// Revision is one of the revisions of a set.
type Revision struct {
	Number, Name, Marks string
	Created             *Time
	Clusters            string
}

// ClassOfPhase returns the class of a rollout.
func ClassOfPhase(p hubv1.RolloutPhase) Class {
	switch p {
	case hubv1.RolloutFailed:
		return Failed
	case hubv1.RolloutRollingBack, hubv1.RolloutRolledBack, hubv1.RolloutWaitingForApproval:
		return Trouble
	case hubv1.RolloutPaused, hubv1.RolloutWaitingForWindow:
		return Paused
	case hubv1.RolloutDone:
		return Ready
	case "":
		return Off
	case hubv1.RolloutProgressing, hubv1.RolloutSoaking, hubv1.RolloutWithdrawing:
	}
	return Busy
}

// Verbs are the orders that can be given, with the words on their buttons.
var Verbs = []struct{ Verb, Text string }{
	{"approve", "Approve"}, {"expedite", "Expedite"}, {"retry", "Retry"}, {"undo", "Undo"}, {"redo", "End the undo"},
	{"pause", "Pause"}, {"resume", "Resume"},
}

// awaited are the orders without which a rollout does not go on.
var awaited = map[hubv1.RolloutPhase]string{hubv1.RolloutWaitingForApproval: "approve", hubv1.RolloutPaused: "resume"}

// Wish is what a user wants to order, as a form says it.
type Wish struct {
	Verb, Wave, To, Reason, Until string
	Now                           bool
	// Seen is what he saw when he decided that.
	Seen string
}

// Order writes the order for a wish, as the command line does.
func Order(in *rolloutview.Input, w Wish) (*rolloutview.Order, error) {
	seen := ""
	if in.Set.Status.Rollout != nil {
		seen = in.Set.Status.Rollout.Revision
	}
	switch w.Verb {
	case "approve":
		return rolloutview.Approve(in, w.Wave, seen)
	case "expedite":
		return rolloutview.Expedite(in, w.Reason, seen)
	case "retry":
		return rolloutview.Retry(in, in.Set.Status.Revision)
	case "undo":
		return rolloutview.Undo(in, w.To, w.Now)
	case "redo":
		return rolloutview.Redo(in)
	case "pause":
		return rolloutview.Pause(in, w.Until, w.Reason)
	}
	return rolloutview.Resume(in)
}

// Seen is what a person has seen of a set who gives an order: which edit of it, its revisions, and where its rollout is. It is one line
// without blanks at its ends, as a form sends it.
func Seen(set *hubv1.AddonSet) string {
	out := "generation " + strconv.FormatInt(set.Generation, 10) + ", revision " + page.Dash(set.Status.Revision)
	if r := set.Status.Rollout; r != nil {
		out += ", of which " + page.Dash(r.Revision) + " is rolled out, in wave " + page.Dash(r.Wave) +
			", which is " + page.Dash(string(r.Phase)) + "; complete was " + page.Dash(r.CompletedRevision)
	}
	return excerpt.Line(out)
}

// NewRollout tells how a rollout stands. Notes of the input say what could not be read.
func NewRollout(in *rolloutview.Input, q Query, may bool) *Rollout {
	set := in.Set
	look, err := rolloutview.Look(in)
	r := &Rollout{Namespace: set.Namespace, Name: set.Name, State: string(cmp.Or(look.State.Phase, "None")),
		Class: ClassOfPhase(look.State.Phase),
		Notes: append(slices.Clone(in.Notes), look.Doubts...), MayNot: !may, Follows: look.Follows, Soaked: TimeOf(look.Soaked, in.Now)}
	r.Clusters = Query{path: "/", Set: set.Namespace + "/" + set.Name}.URL()
	if err != nil {
		r.Notes = append(r.Notes, excerpt.Line(err.Error()))
	}
	for _, f := range look.Header {
		if f.Name != "AddonSet" && f.Name != "Phase" {
			r.Facts = append(r.Facts, fact(f))
		}
	}
	if h := set.Status.HeldRemovals; h != nil {
		r.Held, r.HeldURL = int(h.Count), SetURL(set.Namespace, set.Name, "removals")
	}
	for _, v := range Verbs {
		if _, err := Order(in, Wish{Verb: v.Verb, Reason: "-"}); may && err == nil {
			r.Actions = append(r.Actions, Action{v.Verb, v.Text, SetURL(set.Namespace, set.Name, "order", v.Verb),
				v.Verb == awaited[look.State.Phase]})
		}
	}
	r.waves(look)
	if r.Unknown = in.Unknown; r.Unknown == "" {
		r.members(look, q)
	} else {
		r.Bar = Bar{Text: r.Unknown}
		for i := range r.Waves {
			r.Waves[i].Bar = Bar{}
		}
	}
	r.history(in)
	return r
}

var stateClasses = map[string]Class{"Pending": Off, "Running": Busy, "Done": Ready, "Failed": Failed, "Skipped": Paused}

func (r *Rollout) waves(look *rolloutview.View) {
	var all [Off + 1]int
	n := 0
	present := slices.IndexFunc(look.Waves, func(w rollout.WaveView) bool { return w.Name == look.State.Wave })
	if look.Complete {
		present = len(look.Waves)
	}
	for i := range look.Waves {
		v := &look.Waves[i]
		var counts [Off + 1]int
		for j := range v.Clusters {
			counts[stateClasses[v.Clusters[j].State]]++
		}
		for class, k := range counts {
			all[class] += k
		}
		n += len(v.Clusters)
		w := Wave{Name: v.Name, State: "not started", Total: len(v.Clusters), Bar: wording(bar(counts, len(v.Clusters))),
			AtOnce: min(v.AtOnce, len(v.Clusters)), MayFail: min(v.MayFail, len(v.Clusters)), Manual: v.Manual}
		if v.Soak > 0 {
			w.Soak = excerpt.Duration(v.Soak)
		}
		passed := slices.ContainsFunc(look.State.Waves, func(s hubv1.WaveStatus) bool { return s.Name == v.Name && s.Passed })
		switch {
		case passed, i < present:
			w.State = "passed"
		case i == present:
			w.State, w.Present = "current", true
		}
		if !look.AtOnce {
			r.Waves = append(r.Waves, w)
		}
	}
	r.Bar = wording(bar(all, n))
}

// wording says what the classes are in a rollout.
func wording(b Bar) Bar {
	words := map[Class]string{Failed: "failed", Busy: "running", Paused: "skipped", Ready: "done", Off: "pending"}
	texts := make([]string, len(b.Parts))
	for i, p := range b.Parts {
		texts[i] = excerpt.Thousands(p.N) + " " + words[p.Class]
	}
	if len(texts) > 0 {
		b.Text = strings.Join(texts, ", ")
	}
	return b
}

// members are the clusters: those that failed, and then all, wave by wave.
func (r *Rollout) members(look *rolloutview.View, q Query) {
	var all []Member
	for i := range look.Waves {
		w := &look.Waves[i]
		name := w.Name
		if look.AtOnce {
			name = ""
		}
		for j := range w.Clusters {
			c := &w.Clusters[j]
			m := Member{Cluster: c.Key.String(), URL: ClusterURL(c.Key.Namespace, c.Key.Name),
				Wave: page.Dash(name), Revision: page.Dash(c.Revision),
				Why: excerpt.Cut(excerpt.Line(c.Why), 2*maxWhy), Class: stateClasses[c.State], State: c.State}
			if all = append(all, m); m.Class == Failed && len(r.Failed) < perPage {
				r.Failed = append(r.Failed, m)
			}
		}
	}
	from, to, pager := q.page(len(all), perPage)
	r.Members, r.Pager = all[from:to], pager
}

func (r *Rollout) history(in *rolloutview.Input) {
	counts := rolloutview.Counts(in)
	for i := len(in.Revisions) - 1; i >= 0; i-- {
		v := &in.Revisions[i]
		clusters := strconv.Itoa(counts[v.Name])
		if in.Unknown != "" {
			clusters = "-"
		}
		r.History = append(r.History, Revision{Number: strconv.FormatInt(v.Revision, 10), Name: v.Name, Clusters: clusters,
			Marks: strings.Join(rolloutview.Marks(in, v.Name), ", "), Created: TimeOf(&v.CreationTimestamp.Time, in.Now)})
	}
}

// Sets are the rows of the list of sets.
type Sets struct {
	Query Query
	Rows  []SetRow
}

// SetRow is a set in the list of sets.
type SetRow struct {
	SetBar
	State    string
	Revision string
	Started  *Time
}

// SetRows lists the sets, those that wait for a person first.
func (x *Index) SetRows(q Query, now time.Time) *Sets {
	b := &Board{Query: Query{path: "/"}}
	b.sets(x)
	out := &Sets{Query: q}
	for _, bar := range b.allSets {
		ns, name, _ := strings.Cut(bar.Name, "/")
		row := SetRow{SetBar: bar, State: page.Dash(bar.Phase)}
		if bar.Held {
			row.State = "RemovalsHeld"
		}
		if r := x.sets[types.NamespacedName{Namespace: ns, Name: name}].Status.Rollout; r != nil {
			if row.Revision = r.Revision; r.Started != nil {
				row.Started = TimeOf(&r.Started.Time, now)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	sorted(out.Rows, q.Sort, map[string]func(a, b SetRow) int{
		"name":   func(a, b SetRow) int { return cmp.Compare(a.Name, b.Name) },
		"state":  func(a, b SetRow) int { return cmp.Compare(a.Class, b.Class) },
		"failed": func(a, b SetRow) int { return cmp.Compare(b.Failed, a.Failed) },
		"since":  func(a, b SetRow) int { return ptr.Deref(b.Started, Time{}).At.Compare(ptr.Deref(a.Started, Time{}).At) },
	})
	return out
}
