// SPDX-License-Identifier: Apache-2.0

// Package rolloutview says how the rollout of a set stands, how the next one would go, and which revisions there are; and it
// writes the orders that people give. It asks the hub's own engine. It is pure: package live reads the objects.
package rolloutview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// Input is a set, and as much of what belongs to it as a report needs.
type Input struct {
	Set *hubv1.AddonSet
	// Revisions are those of the set, the oldest first.
	Revisions []appsv1.ControllerRevision
	// Deliveries are those of the set.
	Deliveries []hubv1.AddonDelivery
	// Registrations are those of all clusters.
	Registrations []hubv1.ClusterRegistration
	// Reach is how far the sets of its namespace reach.
	Reach match.Reach
	// Notes say what could not be read.
	Notes []string
	// Unknown says why it is not known how many clusters the set has: not all of them, or not all deliveries, could be read. A page then
	// shows no numbers.
	Unknown string
	Now     time.Time
}

func (in *Input) key() string { return in.Set.Namespace + "/" + in.Set.Name }

// state returns the state of the rollout. A hub that has not seen the set has written none.
func (in *Input) state() hubv1.RolloutStatus {
	if in.Set.Status.Rollout == nil {
		return hubv1.RolloutStatus{}
	}
	out := *in.Set.Status.Rollout
	out.Revision = cmp.Or(out.Revision, in.Set.Status.Revision) // an older hub wrote the phase alone
	return out
}

// command returns a command about a set, as people write it.
func command(set *hubv1.AddonSet, verb, rest string) string {
	text := fmt.Sprintf("chandler rollout %s %s -n %s", verb, set.Name, set.Namespace)
	if rest != "" {
		text += " " + rest
	}
	return text
}

// resume returns the command that ends the pause of a set.
func resume(set *hubv1.AddonSet) string {
	return fmt.Sprintf("chandler resume set %s -n %s", set.Name, set.Namespace)
}

// clusters returns the clusters of the set as the engine sees them, those that have nothing of it yet as well.
func (in *Input) clusters() (clusters []rollout.Cluster, err error) {
	selector, err := match.New(in.Reach, &in.Set.Spec)
	if err != nil {
		return nil, err
	}
	wanted := map[types.NamespacedName]*hubv1.ClusterRegistration{}
	there := map[types.NamespacedName]bool{}
	for i := range in.Registrations {
		reg := &in.Registrations[i]
		key := types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}
		if there[key] = true; !status.Goes(reg) && selector.Matches(reg) {
			wanted[key] = reg
		}
	}
	for i := range in.Deliveries {
		d := &in.Deliveries[i]
		key := d.Spec.RegistrationRef.Key()
		if !provenance.Named(d) || d.SetKey() != (types.NamespacedName{Namespace: in.Set.Namespace, Name: in.Set.Name}) {
			continue // the hub did not make it, or for another set with the same label
		}
		if reg := wanted[key]; !d.Withdrawn() && (reg != nil || !there[key]) {
			clusters = append(clusters, rollout.Observe(d, reg))
		}
		delete(wanted, key)
	}
	for _, reg := range wanted {
		clusters = append(clusters, rollout.ObserveNew(reg))
	}
	slices.SortStableFunc(clusters, func(a, b rollout.Cluster) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return clusters, nil
}

// engine returns what the hub decides from.
func (in *Input) engine(clusters []rollout.Cluster) (rollout.Input, error) {
	strategy, err := rollout.New(in.Set.Spec.Rollout)
	if err != nil {
		return rollout.Input{}, err
	}
	strategy = strategy.For(len(clusters), in.Set.Status.Rollout)
	return rollout.Input{
		Set: in.key(), Strategy: strategy, Pause: in.Set.Spec.Pause, Orders: rollout.Read(in.Set.Annotations),
		Revision: in.Set.Status.Revision, State: in.Set.Status.Rollout, Clusters: clusters, Now: in.Now,
		Exists: func(name string) bool {
			return slices.ContainsFunc(in.Revisions, func(r appsv1.ControllerRevision) bool { return identity.SameContent(r.Name, name) })
		},
		Same: rollout.Unchanged(func(name string) []byte {
			if r := in.find(name); r != nil {
				return r.Data.Raw
			}
			return nil
		}),
	}, nil
}

// lateElsewhere says why a cluster is not Failed that has had the revision for longer than the deadline.
const lateElsewhere = "late by the clock, and not for the hub, which was away meanwhile, or has not looked yet"

// survey returns the waves as the hub counts them. The time in which no hub was at work does not count for a deadline, and nobody else
// knows when that was. After it no cluster is late for a whole deadline; so if the hub does not count the late ones as failed, none is.
func survey(engine rollout.Input, revision string) []rollout.WaveView {
	views := rollout.Survey(engine, revision)
	if engine.State == nil || len(engine.State.Waves) == 0 {
		return views
	}
	engine.Since = engine.Now // nobody is late
	punctual := rollout.Survey(engine, revision)
	failed := failedOf(views)
	if failures(engine.State) > len(failedOf(punctual)) {
		return views
	}
	for i := range punctual {
		for j := range punctual[i].Clusters {
			if c := &punctual[i].Clusters[j]; failed[c.Key] && c.State != "Failed" {
				c.Why = lateElsewhere
			}
		}
	}
	return punctual
}

func failedOf(views []rollout.WaveView) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	for i := range views {
		for j := range views[i].Clusters {
			if c := &views[i].Clusters[j]; c.State == "Failed" {
				out[c.Key] = true
			}
		}
	}
	return out
}

// find returns a revision by its name, or nil.
func (in *Input) find(name string) *appsv1.ControllerRevision {
	for i := range in.Revisions {
		if in.Revisions[i].Name == name {
			return &in.Revisions[i]
		}
	}
	return nil
}

func ago(t, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), page.Since(&t, now))
}

// Own returns the deliveries of the set: the label that they were read by may be cut, and so be that of another set too.
func (in *Input) Own() []hubv1.AddonDelivery {
	var out []hubv1.AddonDelivery
	for _, d := range in.Deliveries {
		if d.Spec.AddonSetRef.Name == in.Set.Name {
			out = append(out, d)
		}
	}
	return out
}
