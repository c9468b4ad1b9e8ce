// SPDX-License-Identifier: Apache-2.0

// Package outdated says of each add-on what it follows upstream, what the newest revision of its set holds of that, and what upstream has
// now. It is pure: what the hub and Flux have read comes as an argument.
package outdated

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render/floating"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// The states of an add-on, those that people look for first.
const (
	// Outdated: upstream has something that no revision holds.
	Outdated = "Outdated"
	// Unknown: it is not known what upstream has.
	Unknown = "Unknown"
	// Floats: no revision holds it, so Flux brings upstream news to all clusters at once.
	Floats = "Floats"
	// UpToDate: the newest revision holds what upstream has.
	UpToDate = "UpToDate"
	// Fixed: the set names one version, commit or digest. The hub does not look for newer ones.
	Fixed = "Fixed"
)

var states = []string{Outdated, Unknown, Floats, UpToDate, Fixed}

// Item is something that an add-on follows upstream.
type Item struct {
	Set      string       `json:"set" about:"namespace/name of the AddonSet"`
	Addon    string       `json:"addon,omitempty" about:"missing if it is about the set as a whole"`
	State    string       `json:"state" about:"Outdated, Unknown, Floats, UpToDate or Fixed"`
	Follows  string       `json:"follows,omitempty" about:"what it follows, or is fixed at"`
	Pinned   string       `json:"pinned,omitempty" about:"what the newest revision holds: version, commit, digest, or hash of data"`
	Upstream string       `json:"upstream,omitempty" about:"what upstream has, as far as Flux has read it"`
	Since    *metav1.Time `json:"since,omitempty" about:"since when Flux has what upstream has; only if Outdated"`
	Wave     string       `json:"wave,omitempty" about:"first wave that would get it; missing if all clusters get it at once"`
	Source   string       `json:"source,omitempty" about:"kind and namespace/name of the object that Flux reads upstream by"`
	Message  string       `json:"message,omitempty" about:"what it waits for, or why upstream is unknown"`
}

// Current returns whether nothing is to come: such an item is of interest only to who wants all.
func (i *Item) Current() bool { return i.State == UpToDate || i.State == Fixed }

// Input is what is known of a set.
type Input struct {
	Set *hubv1.AddonSet
	// Invalid says why the set does not compile; nil if it does.
	Invalid error
	// Program and Found are of the present spec: what it says, and what it follows.
	Program *compile.Program
	Found   floating.Floats
	Now     time.Time
}

// Of returns what the add-ons of a set follow, in the order of add-ons.
func Of(in *Input) ([]Item, error) {
	s := &set{Input: in, name: in.Set.Namespace + "/" + in.Set.Name}
	if in.Invalid != nil {
		return []Item{{Set: s.name, State: Unknown, Message: "it does not compile: " + in.Invalid.Error()}}, nil
	}
	strategy, err := rollout.New(in.Set.Spec.Rollout)
	if err != nil {
		return nil, fmt.Errorf("AddonSet %s: %w", s.name, err)
	}
	s.strategy = strategy
	s.configMaps()
	for i := range in.Found.Objects {
		s.source(&in.Found.Objects[i])
	}
	for _, l := range in.Found.Loose {
		s.add(Item{Addon: l.Addon, State: Floats, Follows: strings.TrimPrefix(l.Text, "addons["+l.Addon+"].")})
	}
	for _, f := range in.Found.Fixed {
		s.add(Item{Addon: f.Addon, State: Fixed, Follows: f.What})
	}
	slices.SortStableFunc(s.items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Addon, b.Addon), slices.Index(states, a.State)-slices.Index(states, b.State))
	})
	return s.items, nil
}

// set collects the items of a set.
type set struct {
	*Input
	name     string
	strategy *rollout.Strategy
	items    []Item
}

func (s *set) add(one Item) {
	one.Set = s.name
	s.items = append(s.items, one)
}

// configMaps adds the ConfigMaps of variablesFrom.
func (s *set) configMaps() {
	for _, v := range s.Program.VariablesFrom {
		if v.Cluster { // the cluster's own variables
			continue
		}
		at := slices.IndexFunc(s.Set.Status.Sources, func(f hubv1.FollowedSource) bool { return f.Kind == "ConfigMap" && f.Name == v.Name })
		if !s.strategy.Pins() || at < 0 { // an expression, or too large
			s.add(Item{State: Floats, Follows: "variablesFrom: ConfigMap " + v.Name})
			continue
		}
		s.add(s.followed(Item{Follows: "variablesFrom: ConfigMap " + v.Name}, &s.Set.Status.Sources[at], true))
	}
}

// source adds a chart or a source of Flux, once for each add-on that has it.
func (s *set) source(f *floating.Float) {
	one := Item{State: Floats, Follows: f.What}
	if s.strategy.Pins() {
		at := slices.IndexFunc(s.Set.Status.Sources, func(f2 hubv1.FollowedSource) bool {
			return compile.SourceKey(f2.Kind, f2.Namespace, f2.Name) == f.Key()
		})
		if at >= 0 {
			one = s.followed(one, &s.Set.Status.Sources[at], f.Needed)
			if one.Pinned == "" && !f.Got {
				return // no cluster has it
			}
		} else if one.State, one.Message = Unknown, "the hub has not looked at it yet"; !f.Got {
			return
		}
	}
	for _, addon := range f.Addons {
		one.Addon = addon
		s.add(one)
	}
}

// followed returns what the hub says of something that a set pins. needed says that upstream news makes a revision.
func (s *set) followed(one Item, f *hubv1.FollowedSource, needed bool) Item {
	one.Pinned, one.Upstream, one.Message = f.Pinned, f.Upstream, f.Message
	one.Source = f.Kind + " " + f.Namespace + "/" + f.Name
	switch {
	case f.Upstream == "":
		one.State, one.Message = Unknown, cmp.Or(f.Message, "Flux is reading it")
	case f.Upstream == f.Pinned:
		one.State = UpToDate
	case f.Pinned == "" && !needed:
		one.State, one.Message = Floats, "the next revision holds it"
	default:
		one.State, one.Wave = Outdated, s.firstWave()
		if one.Message = s.waits(); !needed {
			one.Message = "no cluster needs it yet: the next revision holds it"
		}
	}
	return one
}

// firstWave returns the wave that gets the next revision first; "" if all clusters get it at once.
func (s *set) firstWave() string {
	state, clusters := s.Set.Status.Rollout, 0
	if c := s.Set.Status.Clusters; c != nil {
		clusters = int(c.Matched)
	}
	strategy := s.strategy.For(clusters, state)
	if strategy.AtOnce() {
		return ""
	}
	if state != nil {
		for i := range state.Waves {
			if w := &state.Waves[i]; w.Total > 0 {
				return w.Name
			}
		}
	}
	return strategy.Waves()[0].Name
}

// waits returns what upstream news waits for.
func (s *set) waits() string {
	state := s.Set.Status.Rollout
	orders := rollout.Read(s.Set.Annotations)
	switch paused, until := rollout.Paused(s.Set.Spec.Pause, s.Now); {
	case paused && until.IsZero():
		return "the set is paused"
	case paused:
		return "the set is paused until " + until.UTC().Format(time.RFC3339)
	}
	if to := orders.Undone(s.Set.Status.Revision); to != "" {
		return fmt.Sprintf("an undo keeps revision %s: chandler rollout redo %s", to, s.name)
	}
	if !s.strategy.AtOnce() && rollout.UnderWay(state) {
		text := fmt.Sprintf("waits for the rollout of %s to end: %s", state.Revision, state.Phase)
		if state.Wave != "" {
			text += ", wave " + state.Wave
		}
		return text
	}
	for i := range s.Set.Status.Sources {
		if f := &s.Set.Status.Sources[i]; f.Upstream == "" && f.Pinned == "" {
			return "waits for Flux to read " + cmp.Or(f.What, f.Kind+" "+f.Name)
		}
	}
	return "the hub makes a revision of it"
}
