// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// next stands for the next revision of a set, and former for one that its clusters have, where nothing is known.
const next, former = "next", "former"

// Plan says how the next revision of a set would reach its clusters.
func Plan(in *Input) (*PlanDocument, error) {
	clusters, err := in.clusters()
	if err != nil {
		return nil, err
	}
	return in.plan(clusters)
}

// PlanOfFiles is Plan for a set that nothing is known of but files: its clusters count as healthy, and have an older revision.
func PlanOfFiles(in *Input) (*PlanDocument, error) {
	clusters, err := in.clusters()
	if err != nil {
		return nil, err
	}
	for i := range clusters {
		clusters[i] = rollout.Cluster{Key: clusters[i].Key, Labels: clusters[i].Labels, Revision: former, Ready: true, Healthy: true}
	}
	return in.plan(clusters)
}

func (in *Input) plan(clusters []rollout.Cluster) (*PlanDocument, error) {
	engine, err := in.engine(clusters)
	if err != nil {
		return nil, err
	}
	// Who starts first does not depend on when that is.
	engine.Revision, engine.Pause = next, nil
	engine.Orders = rollout.Read(map[string]string{hubv1.ExpediteAnnotation: rollout.Expedition(next, "")})
	engine.Same = func(*rollout.Cluster, string) bool { return false }
	first := map[types.NamespacedName]bool{}
	decision := rollout.Decide(engine)
	for _, s := range decision.Starts {
		first[s.Cluster] = s.Revision == next
	}
	views := rollout.Survey(engine, next)

	d := &PlanDocument{Set: in.key(), Strategy: in.planHeader(engine.Strategy), Clusters: []Start{}, Notes: slices.Clone(in.Notes)}
	if is := in.state(); is.Phase != "" && !complete(&is) {
		d.Notes = append(d.Notes, fmt.Sprintf("this is about the next revision; the rollout of %s is %s: %s", is.Revision, is.Phase,
			command(in.Set, "status", "")))
	}
	if len(clusters) == 0 {
		return d, nil
	}
	if !engine.Strategy.AtOnce() {
		d.Waves = plannedWaves(views)
	}
	d.Clusters = starts(views, first, engine.Strategy.AtOnce())
	return d, nil
}

// Page returns a plan as people read it.
func (d *PlanDocument) Page() *page.Page {
	p := &page.Page{}
	p.Fields(d.Strategy)
	p.Notes(d.Notes)
	if len(d.Clusters) == 0 {
		p.Text("\nThe set selects no cluster.\n")
		return p
	}
	var waves, starts [][]string
	for _, w := range d.Waves {
		var then []string
		if w.SoakSeconds > 0 {
			then = append(then, "soaks "+excerpt.Duration(time.Duration(w.SoakSeconds)*time.Second))
		}
		if w.Manual {
			then = append(then, "waits for approval")
		}
		waves = append(waves, []string{w.Name, strconv.Itoa(w.Clusters), strconv.Itoa(w.AtOnce), strconv.Itoa(w.MayFail),
			strings.Join(then, ", ")})
	}
	for _, s := range d.Clusters {
		starts = append(starts, []string{s.Cluster, page.Dash(s.Wave), page.Dash(s.Starts)})
	}
	p.Table("", []string{"WAVE", "CLUSTERS", "AT ONCE", "MAY FAIL", "THEN"}, waves)
	p.Table("", []string{"CLUSTER", "WAVE", "STARTS"}, starts)
	return p
}

func (in *Input) planHeader(s *rollout.Strategy) []page.Field {
	fields := []page.Field{{Name: "AddonSet", Text: in.key()}}
	add := func(name, text string) { fields = append(fields, page.Field{Name: name, Text: excerpt.Line(text)}) }
	const atOnce = "every cluster gets a new revision at once"
	switch {
	case s.Alone():
		add("Strategy", "the only cluster gets a new revision at once; with a second one it goes in waves")
	case s.AtOnce():
		add("Strategy", atOnce)
	default:
		add("Strategy", "waves, one after the other")
		add("Deadline", fmt.Sprintf("%s for each cluster", excerpt.Duration(s.Deadline())))
		failure := "it stops, and each cluster stays as it is"
		if s.GoesBack() {
			failure = "the clusters that have it get the last completed revision again"
		}
		add("If it fails", failure)
	}
	if n, isOpen, until := s.Windows(in.Now); n > 0 && !s.AtOnce() {
		text := "closed, and none opens any more"
		switch {
		case isOpen:
			text = "open until " + until.UTC().Format(time.RFC3339)
		case !until.IsZero():
			text = "closed, opens at " + until.UTC().Format(time.RFC3339)
		}
		add("Windows", fmt.Sprintf("%d; now %s", n, text))
	}
	if p := in.Set.Spec.Pause; p != nil && (p.Until == nil || in.Now.Before(p.Until.Time)) {
		add("Paused", pauseText(p))
	}
	return fields
}

func plannedWaves(views []rollout.WaveView) (out []PlannedWave) {
	for i := range views {
		w := &views[i]
		n := len(w.Clusters)
		out = append(out, PlannedWave{w.Name, n, min(w.AtOnce, n), min(w.MayFail, n), int(w.Soak.Seconds()), w.Manual})
	}
	return out
}

func starts(views []rollout.WaveView, first map[types.NamespacedName]bool, atOnce bool) (out []Start) {
	begun := slices.IndexFunc(views, func(w rollout.WaveView) bool {
		return slices.ContainsFunc(w.Clusters, func(c rollout.ClusterView) bool { return first[c.Key] })
	})
	for i, w := range views {
		for _, c := range w.Clusters {
			starts := ""
			switch {
			case atOnce:
				starts, w.Name = "first", ""
			case first[c.Key]:
				starts = "first"
			case c.Later:
				starts = "after the others of its wave: " + excerpt.Line(c.Why)
			case c.State == "Skipped":
				starts = "skipped: " + excerpt.Line(c.Why)
			case i <= begun:
				starts = "when another one is done"
			case i > 0:
				starts = "after wave " + views[i-1].Name
			}
			out = append(out, Start{c.Key.String(), w.Name, starts})
		}
	}
	return out
}

func pauseText(p *hubv1.RolloutPause) string {
	text := "until spec.pause is removed"
	if p.Until != nil {
		text = "until " + p.Until.UTC().Format(time.RFC3339)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
