// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// check holds a decision of a random day to what is promised. It counts by itself; of the engine it only believes which cluster is in
// which wave.
func (d *day) check(in *rollout.Input, out *rollout.Decision) {
	if !out.Next.IsZero() && out.Next.Before(d.now) {
		d.bad("it wants to be asked in the past: %s", out.Next)
	}
	// One that was completed may fail when it is rolled out once more. There is no better one.
	if slices.Contains(out.State.FailedRevisions, out.Newcomers) && out.Newcomers != out.State.CompletedRevision && d.undone() == "" {
		d.bad("new clusters get %s, which has failed", out.Newcomers)
	}
	waveOf := map[types.NamespacedName]int{}
	for i, w := range rollout.Survey(*in, out.State.Revision) {
		for _, c := range w.Clusters {
			waveOf[c.Key] = i
		}
	}
	started := map[int]bool{}
	for i := range out.Starts {
		s := &out.Starts[i]
		c := in.Clusters[slices.IndexFunc(in.Clusters, func(c rollout.Cluster) bool { return c.Key == s.Cluster })]
		if c.Revision == s.Revision {
			continue // it begins anew, or is not counted any more
		}
		started[waveOf[s.Cluster]] = true
		d.checkStart(&c, s, &out.State, waveOf[s.Cluster])
	}
	for i := range out.State.Waves {
		if d.checkPassed(in, &out.State, i, waveOf); started[i] && d.undone() == "" {
			d.checkLimits(&out.State, i)
		}
	}
}

// undone returns the revision that somebody wants back; "" if nobody does.
func (d *day) undone() string {
	orders := rollout.Read(d.annotations)
	return orders.Undone(d.newest)
}

// checkStart checks a cluster that gets another revision.
func (d *day) checkStart(c *rollout.Cluster, s *rollout.Start, state *hubv1.RolloutStatus, wave int) {
	strategy, _ := rollout.New(d.spec)
	back := s.Revision != d.newest
	_, isOpen, _ := strategy.Windows(d.now)
	switch {
	case d.pause != nil:
		d.bad("%s starts though the set is paused", c.Key.Name)
	case state.Phase == hubv1.RolloutFailed:
		d.bad("%s starts though the revision has failed", c.Key.Name)
	case slices.Contains(state.FailedRevisions, s.Revision) && d.undone() == "":
		d.bad("%s gets %s, which has failed", c.Key.Name, s.Revision)
	case c.Offline || c.Excused != "":
		d.bad("%s starts though it is offline or excused", c.Key.Name)
	case !isOpen && !back:
		d.bad("%s starts while no window is open", c.Key.Name)
	}
	if strings.HasSuffix(d.annotations[hubv1.UndoAnnotation], "/now") {
		return
	}
	for _, w := range state.Waves[:wave] {
		if !w.Passed && !state.Waves[wave].Passed {
			d.bad("%s of wave %s starts before wave %s has passed", c.Key.Name, state.Waves[wave].Name, w.Name)
		}
	}
}

// limit is an amount as a number of clusters. A percentage is at most of all.
func limit(amount *intstr.IntOrString, all int32, otherwise int, up bool) int {
	if amount == nil {
		return otherwise
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(amount, int(all), up)
	return n
}

// checkLimits checks a wave of which a cluster starts.
func (d *day) checkLimits(state *hubv1.RolloutStatus, i int) {
	is, spec := state.Waves[i], hubv1.Wave{}
	if i < len(d.spec.Waves) {
		spec = d.spec.Waves[i]
	}
	if n := max(1, limit(spec.MaxConcurrency, is.Total-is.Skipped, int(is.Total), true)); int(is.Running) > n {
		d.bad("%d clusters of wave %s work on the revision, and %d may", is.Running, is.Name, n)
	}
	if n := limit(spec.MaxFailures, is.Total-is.Skipped, 0, false); int(is.Failed) > n && state.Revision == d.newest {
		d.bad("a cluster of wave %s starts after %d have failed, and %d may", is.Name, is.Failed, n)
	}
}

// checkPassed checks that a wave which somebody has tried the revision in does not pass before it has soaked, and is approved.
func (d *day) checkPassed(in *rollout.Input, state *hubv1.RolloutStatus, i int, waveOf map[types.NamespacedName]int) {
	is, before := state.Waves[i], in.State
	if i >= len(d.spec.Waves) || !is.Passed || before == nil || before.Revision != state.Revision || state.Revision != d.newest ||
		before.Phase == hubv1.RolloutDone || before.Retried != state.Retried ||
		slices.ContainsFunc(before.Waves, func(w hubv1.WaveStatus) bool { return w.Name == is.Name && w.Passed }) {
		return
	}
	tried := slices.ContainsFunc(in.Clusters, func(c rollout.Cluster) bool {
		return waveOf[c.Key] == i && c.Revision == state.Revision && c.Start != nil && c.Start.Healthy
	})
	if spec := &d.spec.Waves[i]; tried {
		if spec.Soak != nil && (before.Wave != is.Name || before.WaveReady == nil || d.now.Before(before.WaveReady.Add(soak))) {
			d.bad("wave %s passes before it has soaked: %+v", is.Name, before)
		}
		if spec.Approval == hubv1.ManualApproval && !strings.Contains(d.annotations[hubv1.ApproveAnnotation], rollout.Approval(d.newest, is.Name)) {
			d.bad("wave %s passes though nobody has approved it", is.Name)
		}
	}
	if is.Running > 0 {
		d.bad("wave %s passes while %d clusters work on the revision", is.Name, is.Running)
	}
}
