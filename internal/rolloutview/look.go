// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// View is what Status says of a rollout, for those who write it otherwise than as text.
type View struct {
	State  hubv1.RolloutStatus
	Header []page.Field
	// Doubts say why it may not be about the set as it is.
	Doubts []string
	// Complete is true if nothing is left to do.
	Complete bool
	// AtOnce is true if all clusters get a revision at once; then Waves has one without a name that matters.
	AtOnce bool
	Waves  []rollout.WaveView
	// Soaked is when the soak of the present wave ends; nil if it has none, or is not Ready yet.
	Soaked *time.Time
	// Follows are the sources that the set pins: what, the pinned one, and what upstream has.
	Follows [][]string
}

// Look returns how the rollout of a set stands. Like Status with clusters, it wants Revisions, Deliveries, Registrations and Reach.
func Look(in *Input) (*View, error) {
	is := in.state()
	v := &View{State: is, Header: in.header(&is), Doubts: in.doubts(), Complete: complete(&is), Follows: follows(in.Set)}
	clusters, err := in.clusters()
	if err != nil {
		return v, err
	}
	engine, err := in.engine(clusters)
	if err != nil {
		return v, err
	}
	v.AtOnce, v.Waves = engine.Strategy.AtOnce(), survey(engine, is.Revision)
	for i := range v.Waves {
		w := &v.Waves[i]
		if is.Phase == hubv1.RolloutSoaking && w.Name == is.Wave && is.WaveReady != nil && w.Soak > 0 {
			end := is.WaveReady.Add(w.Soak)
			v.Soaked = &end
		}
	}
	return v, nil
}

// Counts returns how many clusters have each revision of a set. Deliveries that the set withdraws do not count.
func Counts(in *Input) map[string]int {
	out := map[string]int{}
	for i := range in.Deliveries {
		if d := &in.Deliveries[i]; d.SetKey().String() == in.key() && !d.Withdrawn() {
			out[d.Spec.RevisionName]++
		}
	}
	return out
}

// Without returns how many clusters have another revision than this one.
func Without(in *Input, revision string) (n int) {
	for name, count := range Counts(in) {
		if name != revision {
			n += count
		}
	}
	return n
}

// Target returns the revision that Undo goes to.
func Target(in *Input, to string) (string, error) {
	r, err := in.target(to)
	if err != nil {
		return "", err
	}
	return r.Name, nil
}

// Marks says what a revision of the set is, such as newest or failed.
func Marks(in *Input, revision string) []string { return in.marks(revision) }
