// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/rolloutview"
	"github.com/chandler-hub/chandler/internal/status"
)

// Confirmation says what an order does, before a user gives it.
type Confirmation struct {
	Namespace, Name, URL, Back string
	Wish                       Wish
	Title, Button              string
	Says                       string
	Concerns                   string
	Notes                      []string
	// Problem says why it cannot be given.
	Problem string
	MayNot  bool
	// Revisions can be undone to.
	Revisions   []Revision
	TakesReason bool
}

// NewConfirmation says what the order of a wish does to how many clusters.
func NewConfirmation(in *rolloutview.Input, w Wish, may bool, problem string) *Confirmation {
	set := in.Set
	c := &Confirmation{Namespace: set.Namespace, Name: set.Name, URL: SetURL(set.Namespace, set.Name, "order", w.Verb),
		Back: SetURL(set.Namespace, set.Name), Wish: w, MayNot: !may, TakesReason: w.Verb == "pause" || w.Verb == "expedite",
		Notes: slices.Clone(in.Notes), Problem: excerpt.Line(problem)}
	c.Wish.Seen = Seen(set)
	for _, v := range Verbs {
		if v.Verb == w.Verb {
			c.Button, c.Title = v.Text, v.Text+": "+set.Namespace+"/"+set.Name
		}
	}
	w.Reason = cmp.Or(w.Reason, "-") // the form asks for one
	order, err := Order(in, w)
	if err != nil {
		c.Problem = cmp.Or(c.Problem, excerpt.Line(err.Error()))
		return c
	}
	c.Says, c.Notes = order.Says, append(c.Notes, order.Notes...)
	c.Concerns = concerns(in, w)
	if w.Verb == "undo" {
		// The form names the revision that is shown here. What is the right one by itself may be another one a moment later.
		if target, err := rolloutview.Target(in, w.To); err == nil {
			c.Wish.To = target
		}
		r := &Rollout{}
		r.history(in)
		c.Revisions = slices.DeleteFunc(r.History, func(v Revision) bool { return v.Name == set.Status.Revision })
	}
	return c
}

// concerns says how many clusters an order is about.
func concerns(in *rolloutview.Input, w Wish) string {
	if in.Unknown != "" {
		return "It is " + in.Unknown + "."
	}
	look, err := rolloutview.Look(in)
	if err != nil {
		return "The number of clusters is not known: " + excerpt.Line(err.Error())
	}
	count := func(states ...string) (n int) {
		for i := range look.Waves {
			for j := range look.Waves[i].Clusters {
				if slices.Contains(states, look.Waves[i].Clusters[j].State) {
					n++
				}
			}
		}
		return n
	}
	say := func(n int, one, more string) string {
		return status.Count(n, "cluster") + map[bool]string{true: one, false: more}[n == 1]
	}
	switch w.Verb {
	case "approve":
		return approves(look, cmp.Or(w.Wave, look.State.Wave))
	case "expedite", "resume":
		return say(count("Pending"), " does not have the revision yet.", " do not have the revision yet.")
	case "retry", "redo":
		return say(rolloutview.Without(in, in.Set.Status.Revision), " with another revision gets it.", " with another revision get it.")
	case "undo":
		target, err := rolloutview.Target(in, w.To)
		if err != nil {
			return ""
		}
		return say(rolloutview.Without(in, target), " with another revision gets ", " with another revision get ") + target + "."
	}
	return say(count("Pending"), " does not have the revision yet, and stays as it is",
		" do not have the revision yet, and stay as they are") +
		". " + say(count("Running"), " has begun, and finishes.", " have begun, and finish.")
}

// approves says what begins after the wave that is approved.
func approves(look *rolloutview.View, wave string) string {
	at := slices.IndexFunc(look.Waves, func(w rollout.WaveView) bool { return w.Name == wave })
	if at < 0 || at+1 >= len(look.Waves) {
		return "This is the last wave: no other cluster gets the revision."
	}
	next := &look.Waves[at+1]
	left := 0
	for i := range look.Waves[at+1:] {
		left += len(look.Waves[at+1+i].Clusters)
	}
	text := "Wave " + next.Name + " starts: " + status.Count(len(next.Clusters), "cluster") + ", at most " +
		strconv.Itoa(min(next.AtOnce, len(next.Clusters))) + " at a time."
	if later := left - len(next.Clusters); later > 0 {
		text += " Later waves have " + status.Count(later, "more cluster") + "."
	}
	return text
}
