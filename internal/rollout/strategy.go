// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which clusters of a set get a new revision now, and what they wait for. What is, the spec and the
// time go in; which clusters may start, the state of the rollout, and when to look again come out. It is pure.
//
// A rollout goes through waves, one after the other. Its durable facts are few: the state in the set's status, and of
// each cluster the revision that it has and how it came to it. Everything else is counted anew each time.
package rollout

import (
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Rest is the name of the last wave. It has all clusters that no other wave owns.
const Rest = "rest"

// Deadline is how long a cluster may take by default.
const Deadline = 30 * time.Minute

// Strategy is a checked spec.rollout.
type Strategy struct {
	atOnce bool
	// implied is true if the set has no rollout block. usual is true if the set names no waves, so that the usual ones go for a fleet
	// of some size.
	implied, usual bool
	waves          []wave
	deadline       time.Duration
	rollback       bool
	pins           bool
	windows        []window
}

// wave is a checked wave. A nil amount is the default.
type wave struct {
	name                              string
	selector                          labels.Selector
	size, maxConcurrency, maxFailures *intstr.IntOrString
	soak                              time.Duration
	manual                            bool
}

// few is up to how many clusters get a revision at once if the set names no waves: one cluster has nothing to go before.
const few = 1

// usualWaves are those of a fleet if the set names none: one cluster, a quarter, the rest.
func usualWaves() []hubv1.Wave {
	one, quarter := intstr.FromInt32(1), intstr.FromString("25%")
	return []hubv1.Wave{{Name: "first", Size: &one}, {Name: "quarter", Size: &quarter}}
}

// New checks spec.rollout. Its error names the field. A set without it has the usual waves, and follows upstream.
func New(spec *hubv1.Rollout) (*Strategy, error) {
	implied := spec == nil
	if implied {
		spec = &hubv1.Rollout{Sources: hubv1.FollowSources}
	}
	s := &Strategy{atOnce: spec.Strategy == hubv1.AllAtOnceStrategy, deadline: Deadline, rollback: spec.OnFailure == hubv1.RollbackOnFailure,
		implied: implied}
	s.pins = spec.Sources == hubv1.PinSources || spec.Sources == "" && !s.atOnce
	if s.usual = !s.atOnce && len(spec.Waves) == 0; s.usual {
		spec = spec.DeepCopy()
		spec.Waves = usualWaves()
	}
	if d := spec.Deadline; d != nil {
		if d.Duration <= 0 {
			return nil, fmt.Errorf("spec.rollout.deadline: %s is not longer than nothing", d.Duration)
		}
		s.deadline = d.Duration
	}
	names, all := map[string]bool{Rest: true}, ""
	for i := range spec.Waves {
		w, err := newWave(&spec.Waves[i])
		switch {
		case err != nil:
			return nil, fmt.Errorf("spec.rollout.waves[%d] (%s)%w", i, spec.Waves[i].Name, err)
		case names[w.name]:
			return nil, fmt.Errorf("spec.rollout.waves[%d]: the name %q is taken", i, w.name)
		case all != "":
			return nil, fmt.Errorf("spec.rollout.waves[%d] (%s) can have no cluster: wave %q before it has no size and takes all", i, w.name, all)
		case w.selector.Empty() && w.size == nil:
			all = w.name
		}
		names[w.name] = true
		s.waves = append(s.waves, w)
	}
	if all == "" {
		s.waves = append(s.waves, wave{name: Rest, selector: labels.Everything()})
	}
	for i, w := range spec.Windows {
		parsed, err := newWindow(w)
		if err != nil {
			return nil, fmt.Errorf("spec.rollout.windows[%d].%w", i, err)
		}
		s.windows = append(s.windows, parsed)
	}
	return s, nil
}

// AtOnce returns whether all clusters get a new revision at once.
func (s *Strategy) AtOnce() bool { return s.atOnce }

// Alone returns whether the only cluster gets a new revision without a wave, because the set does not say how it goes.
func (s *Strategy) Alone() bool { return s.atOnce && s.usual }

// For returns the strategy for a fleet of some clusters: the usual waves are for two or more. A rollout that has begun in waves goes on in
// them, whatever clusters leave; state may be nil.
func (s *Strategy) For(clusters int, state *hubv1.RolloutStatus) *Strategy {
	if !s.usual || clusters > few || UnderWay(state) && state.Wave != "" && state.Wave != Rest {
		return s
	}
	out := *s
	out.atOnce, out.waves = s.implied, s.waves[len(s.waves)-1:]
	return &out
}

// Chosen returns whether an author has chosen waves for the set, so that it says what they do not hold back.
func (s *Strategy) Chosen() bool { return !s.implied && !s.atOnce }

// Pins returns whether upstream news becomes a revision of the set.
func (s *Strategy) Pins() bool { return s.pins }

// UnderWay returns whether a rollout is on its way, or waits on its way, so that a new revision would begin it anew. It is not before a
// cluster takes part.
func UnderWay(state *hubv1.RolloutStatus) bool {
	if state == nil || len(state.Waves) > 0 &&
		!slices.ContainsFunc(state.Waves, func(w hubv1.WaveStatus) bool { return w.Total > w.Skipped }) {
		return false
	}
	switch state.Phase {
	case hubv1.RolloutProgressing, hubv1.RolloutSoaking, hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForWindow, hubv1.RolloutPaused,
		hubv1.RolloutRollingBack:
		return true
	}
	return false
}

// newWave checks a wave. Its error begins with the field.
func newWave(in *hubv1.Wave) (wave, error) {
	w := wave{name: in.Name, selector: labels.Everything(), size: in.Size, maxConcurrency: in.MaxConcurrency, maxFailures: in.MaxFailures,
		manual: in.Approval == hubv1.ManualApproval}
	if in.ClusterSelector != nil {
		var err error
		if w.selector, err = metav1.LabelSelectorAsSelector(in.ClusterSelector); err != nil {
			return w, fmt.Errorf(".clusterSelector: %w", err)
		}
	}
	for _, a := range []struct {
		field string
		is    *intstr.IntOrString
		least int
	}{{"size", w.size, 1}, {"maxConcurrency", w.maxConcurrency, 1}, {"maxFailures", w.maxFailures, 0}} {
		if err := check(a.is, a.least); err != nil {
			return w, fmt.Errorf(".%s: %w", a.field, err)
		}
	}
	if in.Soak != nil {
		if w.soak = in.Soak.Duration; w.soak < 0 {
			return w, fmt.Errorf(".soak: %s is negative", w.soak)
		}
	}
	return w, nil
}

// check returns an error if an amount is neither a number from least on, nor a percentage from least to 100.
func check(amount *intstr.IntOrString, least int) error {
	if amount == nil {
		return nil
	}
	percent := amount.Type == intstr.String
	n, err := intstr.GetScaledValueFromIntOrPercent(amount, 100, true)
	switch {
	case err != nil:
		return fmt.Errorf("%q is neither a number nor a percentage such as 25%%", amount.String())
	case n < least:
		return fmt.Errorf("%s is less than %d", amount.String(), least)
	case percent && n > 100:
		return fmt.Errorf("%s is more than 100%%", amount.String())
	}
	return nil
}

// of returns an amount as a number of clusters, or otherwise if there is none.
func of(amount *intstr.IntOrString, total, otherwise int, up bool) int {
	if amount == nil {
		return otherwise
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(amount, total, up) // newWave has checked it
	return n
}

// concurrency returns how many clusters of a wave may work on a revision at once, if a percentage is of so many.
func (w *wave) concurrency(all int) int {
	return max(1, of(w.maxConcurrency, all, math.MaxInt32, true))
}

// failures returns how many clusters of a wave may fail, if a percentage is of so many.
func (w *wave) failures(all int) int { return of(w.maxFailures, all, 0, false) }
