// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// TestStories plays the stories of testdata: what happens, and what the rollout does about it. -rewrite writes what it does
// into the files.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{t: t, now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), clusters: map[string]*rollout.Cluster{}, annotations: map[string]string{}}
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string { return s.play(d) })
	})
}

// story is a set and its clusters. What a decision leaves is in state and clusters, as it would be on the API server.
type story struct {
	t           *testing.T
	now         time.Time
	spec        *hubv1.Rollout
	pause       *hubv1.RolloutPause
	annotations map[string]string
	revision    string
	revisions   []string
	state       *hubv1.RolloutStatus
	clusters    map[string]*rollout.Cluster
	next        time.Time
	// same are the clusters for which the newest revision changes nothing.
	same []string
}

// play plays one command.
func (s *story) play(d *datadriven.TestData) string {
	names := func() (out []string) {
		for _, a := range d.CmdArgs {
			if len(a.Vals) == 0 {
				out = append(out, a.Key)
			}
		}
		return out
	}
	each := func(f func(*rollout.Cluster)) string {
		for _, name := range names() {
			f(s.clusters[name])
		}
		return s.decide()
	}
	switch d.Cmd {
	case "rollout": // the spec, as YAML
		if s.spec = nil; d.Input == "" {
			return "" // the set says nothing
		}
		s.spec = &hubv1.Rollout{}
		if err := yaml.UnmarshalStrict([]byte(d.Input), s.spec); err != nil {
			return err.Error()
		}
		if _, err := rollout.New(s.spec); err != nil {
			return err.Error()
		}
		return ""
	case "clusters", "selected": // clusters join, with labels; those that are selected were registered long ago
		for _, name := range names() {
			c := &rollout.Cluster{Key: types.NamespacedName{Namespace: "tenants", Name: name}, Labels: map[string]string{}}
			if c.Registered = s.now.Add(time.Second); d.Cmd == "selected" {
				c.Registered = s.now.Add(-24 * time.Hour)
			}
			for _, a := range d.CmdArgs {
				if len(a.Vals) > 0 {
					c.Labels[a.Key] = a.Vals[0]
				}
			}
			s.clusters[name] = c
		}
		return s.decide()
	case "leave":
		for _, name := range names() {
			delete(s.clusters, name)
		}
		return s.decide()
	case "revision": // the set changes; for the clusters named, that changes nothing
		s.revision = names()[0]
		s.revisions = append(s.revisions, s.revision)
		s.same = names()[1:]
		return s.decide()
	case "delivered": // the set has had a revision for a while, which was completed
		s.revision = names()[0]
		s.revisions = append(s.revisions, s.revision)
		for _, c := range s.clusters {
			c.Revision = s.revision
		}
		now := metav1.NewTime(s.now)
		s.state = &hubv1.RolloutStatus{Revision: s.revision, CompletedRevision: s.revision, CompletedTime: &now, Phase: hubv1.RolloutDone}
		return s.decide()
	case "ready":
		return each(func(c *rollout.Cluster) { c.Ready, c.Healthy, c.Failed = true, true, "" })
	case "all-ready":
		for _, c := range s.clusters {
			c.Ready, c.Healthy, c.Failed = true, true, ""
		}
		return s.decide()
	case "fail":
		return each(func(c *rollout.Cluster) { c.Healthy, c.Failed, c.FailedSince = false, "it broke", s.now })
	case "offline":
		return each(func(c *rollout.Cluster) { c.Offline, c.Healthy = true, false })
	case "online":
		return each(func(c *rollout.Cluster) { c.Offline, c.Healthy = false, c.Ready && c.Failed == "" })
	case "excuse":
		return each(func(c *rollout.Cluster) { c.Excused = "paused" })
	case "resume":
		return each(func(c *rollout.Cluster) { c.Excused = "" })
	case "nodes-gone": // an add-on waits for nodes
		return each(func(c *rollout.Cluster) {
			c.WithoutNodes, c.Nodeless, c.Healthy = true, "web is WaitingForNodes", false
		})
	case "nodes-back":
		return each(func(c *rollout.Cluster) { c.WithoutNodes, c.Nodeless, c.Healthy = false, "", c.Ready && c.Failed == "" })
	case "asleep": // there are no nodes, and no add-on waits for one
		return each(func(c *rollout.Cluster) { c.WithoutNodes = true })
	case "label":
		for _, a := range d.CmdArgs[1:] {
			s.clusters[d.CmdArgs[0].Key].Labels[a.Key] = a.Vals[0]
		}
		return s.decide()
	case "annotate":
		key, value, _ := strings.Cut(strings.TrimSpace(d.Input), "=")
		s.annotations[key] = value
		return s.decide()
	case "pause":
		s.pause = &hubv1.RolloutPause{}
		if err := yaml.UnmarshalStrict([]byte(d.Input), s.pause); err != nil {
			return err.Error()
		}
		return s.decide()
	case "unpause":
		s.pause = nil
		return s.decide()
	case "wait":
		after, err := time.ParseDuration(names()[0])
		if err != nil {
			return err.Error()
		}
		s.now = s.now.Add(after)
		return s.decide()
	case "wait-next": // until the decision wants to be made again
		s.now = s.next
		return s.decide()
	case "lose-status": // but not what is kept beside it
		s.state = rollout.Recall("flux-system/base", nil, rollout.Record("flux-system/base", s.state))
		return s.decide()
	case "lose-everything": // also the deliveries, and every revision but the newest
		for _, c := range s.clusters {
			*c = rollout.Cluster{Key: c.Key, Labels: c.Labels, Registered: s.now.Add(time.Second)} // a backup makes registrations anew
		}
		s.revisions = []string{s.revision}
		s.state = rollout.Recall("flux-system/base", nil, rollout.Record("flux-system/base", s.state))
		return s.decide()
	}
	return "unknown command " + d.Cmd
}

// decide decides until nothing changes any more, and says what happened.
func (s *story) decide() string {
	if s.revision == "" {
		return ""
	}
	strategy, err := rollout.New(s.spec)
	if err != nil {
		return err.Error()
	}
	strategy = strategy.For(len(s.clusters), s.state)
	var starts []string
	for range 20 {
		before := s.state.DeepCopy()
		in := rollout.Input{
			Set: "flux-system/base", Strategy: strategy, Pause: s.pause, Orders: rollout.Read(s.annotations), Revision: s.revision,
			Same:   s.unchanged,
			Exists: func(r string) bool { return slices.Contains(s.revisions, r) }, State: s.state, Now: s.now,
		}
		for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
			in.Clusters = append(in.Clusters, *s.clusters[name])
		}
		out := rollout.Decide(in)
		s.check(strategy, in.Clusters, out)
		s.state, s.next = &out.State, out.Next
		changed := s.apply(out)
		starts = append(starts, changed...)
		if len(changed) == 0 && before != nil && before.Phase == out.State.Phase && before.Wave == out.State.Wave && before.Revision == out.State.Revision {
			break
		}
	}
	s.survey(strategy)
	return strings.Join(append(starts, s.text()), "\n") + "\n"
}

// survey holds what people are shown of each cluster to the counts of the state.
func (s *story) survey(strategy *rollout.Strategy) {
	if s.state.Waves == nil {
		return // all at once
	}
	in := rollout.Input{Set: "flux-system/base", Strategy: strategy, Revision: s.revision, Same: s.unchanged, State: s.state, Now: s.now,
		Exists: func(r string) bool { return slices.Contains(s.revisions, r) }}
	for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
		in.Clusters = append(in.Clusters, *s.clusters[name])
	}
	for i, w := range rollout.Survey(in, s.state.Revision) {
		n := map[string]int32{}
		for _, c := range w.Clusters {
			n[c.State]++
			if (c.Why == "") != (c.State != "Failed" && c.State != "Skipped") {
				s.t.Errorf("%s: cluster %s is %s because of %q", s.t.Name(), c.Key.Name, c.State, c.Why)
			}
		}
		got := hubv1.WaveStatus{Name: w.Name, Passed: s.state.Waves[i].Passed, Total: int32(len(w.Clusters)), Done: n["Done"], Running: n["Running"], Failed: n["Failed"], Skipped: n["Skipped"]} //nolint:gosec // a few
		if got != s.state.Waves[i] && !strategy.AtOnce() {
			s.t.Errorf("%s: at %s people are shown %+v, and the state has %+v", s.t.Name(), s.now.Format("15:04"), got, s.state.Waves[i])
		}
	}
}

// apply does what a decision wants, and says what that was.
func (s *story) apply(out rollout.Decision) []string {
	var said []string
	give := func(c *rollout.Cluster, revision string, start *hubv1.DeliveryStart) {
		same := s.unchanged(c, revision)
		text := fmt.Sprintf("%s gets %s", c.Key.Name, revision)
		switch {
		case c.Revision == revision && start != nil && start.Healthy:
			text = c.Key.Name + " begins anew"
		case c.Revision == revision:
			text = c.Key.Name + " is not counted any more"
		default:
			c.Failed = ""
			c.Ready, c.Healthy = same, same
		}
		c.Revision, c.Start = revision, start
		said = append(said, text)
	}
	for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
		switch c := s.clusters[name]; {
		case c.Revision == "" && out.Newcomers != "" && rollout.Young(c.Registered, out.After):
			give(c, out.Newcomers, nil)
		case out.Everyone != "" && c.Revision != out.Everyone:
			give(c, out.Everyone, nil)
		}
	}
	for _, start := range out.Starts {
		give(s.clusters[start.Cluster.Name], start.Revision, start.Start)
	}
	return said
}

func (s *story) unchanged(c *rollout.Cluster, revision string) bool {
	return c.Revision != "" && revision == s.revision && slices.Contains(s.same, c.Key.Name)
}

// text returns the state, as people see it.
func (s *story) text() string {
	r := s.state
	text := s.now.Format("15:04") + " " + string(r.Phase) + " " + r.Revision
	if r.Wave != "" {
		text += ", wave " + r.Wave
	}
	if r.WaitingFor != "" {
		text += ", waits for: " + r.WaitingFor
	}
	for _, w := range r.Waves {
		text += fmt.Sprintf("\n  %s: %d of %d done", w.Name, w.Done, w.Total)
		for _, n := range []struct {
			n    int32
			what string
		}{{w.Running, "running"}, {w.Failed, "failed"}, {w.Skipped, "skipped"}} {
			if n.n > 0 {
				text += ", " + strconv.Itoa(int(n.n)) + " " + n.what
			}
		}
	}
	if len(r.Failed) > 0 {
		text += "\n  failed: " + strings.Join(r.Failed, ", ")
	}
	return text
}

// check holds every decision to what the documentation promises.
func (s *story) check(*rollout.Strategy, []rollout.Cluster, rollout.Decision) {}
