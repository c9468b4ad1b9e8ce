// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/coverage"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// roll decides which clusters of a set get a revision now, and notes the state of the rollout in the set's status, in
// memory. What the decision wants is done after the status has been written.
func (r *Reconciler) roll(ctx context.Context, set *hubv1.AddonSet, f *coverage.Fleet, newest *revised) (rollout.Decision, error) {
	strategy, err := rollout.New(set.Spec.Rollout)
	if err != nil {
		return rollout.Decision{}, err // compile has checked it
	}
	strategy = strategy.For(len(f.Clusters), set.Status.Rollout)
	revisions, err := r.revisions(ctx, r.Client, set)
	if err != nil {
		return rollout.Decision{}, err
	}
	clusters := r.registry.foresee(client.ObjectKeyFromObject(set), f.Clusters)
	in := rollout.Input{
		Set: client.ObjectKeyFromObject(set).String(), Strategy: strategy, Pause: set.Spec.Pause, Orders: rollout.Read(set.Annotations),
		Revision: set.Status.Revision, State: rolled(set), Clusters: clusters, Now: r.Clock.Now(),
		Exists: func(name string) bool { return name == set.Status.Revision || ofContent(name, revisions) != nil },
	}
	if in.Since = r.Tenure.Since(r.Clock.Now()); !in.Since.IsZero() {
		in.Known = in.Since.Add(tenure.Looks)
	}
	in.Same = rollout.Unchanged(func(name string) []byte {
		if revision := ofContent(name, revisions); revision != nil {
			return revision.Data.Raw
		}
		if name != set.Status.Revision {
			return nil
		}
		return newest.raw // it has just been made, and is not in the cache yet
	})
	out := rollout.Decide(in)
	for _, name := range slices.Compact([]string{out.State.Revision, out.Newcomers}) {
		if err := r.renew(ctx, set, name, revisions); err != nil {
			return rollout.Decision{}, err
		}
	}
	set.Status.Rollout = &out.State
	r.summarizeFloating(set, strategy.Chosen(), newest)
	if f.Admit(out.Everyone != "", f.Coming(set.Status.Revision, out.Starts), &out); out.State.WaitingFor != "" {
		f.Rollout = "; the rollout waits for " + out.State.WaitingFor
	}
	return out, nil
}

// renew makes sure that a revision exists that clusters are to get. It is missing if a hub of another epoch made the content that they go
// back to, or that newcomers get.
func (r *Reconciler) renew(ctx context.Context, set *hubv1.AddonSet, name string, revisions []appsv1.ControllerRevision) error {
	there := ofContent(name, revisions)
	if name == set.Status.Revision || there == nil || there.Name == name {
		return nil
	}
	return r.makeRevision(ctx, set, name, there.Data.Raw)
}

// ofContent returns the revision of a name, or one of the same content; nil if there is none.
func ofContent(name string, revisions []appsv1.ControllerRevision) (found *appsv1.ControllerRevision) {
	for i := range revisions {
		if r := &revisions[i]; r.Name == name || found == nil && identity.SameContent(r.Name, name) {
			found = r
		}
	}
	return found
}

// summarizeFloating notes what the waves of a set do not hold back.
func (r *Reconciler) summarizeFloating(set *hubv1.AddonSet, chosen bool, newest *revised) {
	if !chosen {
		status.Clear(set, hubv1.RolloutEnforcedCondition)
		return
	}
	enforced, reason := metav1.ConditionTrue, hubv1.SucceededReason
	message := "whatever the set delivers changes with its revision, so it goes through the waves"
	if len(newest.loose) > 0 {
		enforced, reason = metav1.ConditionFalse, hubv1.SourcesFloatReason
		message = "these may change without a new revision, on all clusters at once: " + status.List(newest.loose, 5)
	}
	if len(newest.news) > 0 {
		until := "for the end of this rollout"
		if newest.stopped {
			until = "while the set is paused, or its newest revision undone"
		}
		message += "; upstream has news, which waits " + until + ": " + status.List(newest.news, 3)
	}
	status.Set(set, hubv1.RolloutEnforcedCondition, enforced, reason, message, r.Clock.Now())
}

// until returns after how long to decide again; 0 if only when something happens.
func (r *Reconciler) until(next *rollout.Decision) time.Duration {
	if next.Next.IsZero() {
		return 0
	}
	return max(next.Next.Sub(r.Clock.Now()), 10*time.Millisecond)
}

// granted takes the excuse from the clusters to which the removal guard grants now what they ask for. Each removal asks first, so
// to ask is no excuse: the cluster works on its revision.
func granted(clusters []rollout.Cluster, asked *removals, v *guard.Verdict) {
	now := map[types.NamespacedName]bool{}
	for _, removal := range v.Go {
		if q, ok := asked.requests[removal.Digest]; ok {
			now[q.delivery.Spec.RegistrationRef.Key()] = true
		}
	}
	for i := range clusters {
		if c := &clusters[i]; c.Asks && now[c.Key] {
			c.Excused, c.Asks = "", false
		}
	}
}

// begin has the matcher do what was decided, after the status of the set has been written.
func (r *Reconciler) begin(ctx context.Context, set *hubv1.AddonSet, out *rollout.Decision) {
	for _, key := range r.registry.decide(client.ObjectKeyFromObject(set), out) {
		r.starts.Ring(ctx, &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	}
}

// foresee returns the clusters of a set with what the matcher has been told to do and the cache does not show yet: a
// cluster that is about to start takes its slot. What the cache shows is forgotten, and what a delivery was to get that is gone.
func (r *registry) foresee(set types.NamespacedName, clusters []rollout.Cluster) []rollout.Cluster {
	r.sets.Update(set, func(c compiled, known bool) (compiled, bool) {
		left := map[types.NamespacedName]rollout.Start{}
		for i := range clusters {
			is := &clusters[i]
			start, ok := c.starts[is.Key]
			if !ok || done(&start, is.Revision, is.Start) || start.Delivery != is.Delivery {
				continue // and so it is not kept
			}
			left[is.Key] = start
			is.Revision, is.Start, is.Ready, is.Failed = start.Revision, start.Start, false, ""
		}
		c.starts = left // the old map may be being read
		return c, known
	})
	return clusters
}

// done returns whether a cluster has what a start gives it.
func done(s *rollout.Start, revision string, is *hubv1.DeliveryStart) bool {
	if revision != s.Revision || (s.Start == nil) != (is == nil) {
		return false
	}
	return s.Start == nil || is.Time.Equal(&s.Start.Time) && is.Healthy == s.Start.Healthy
}

// decide stores what was decided about a set, and returns the clusters that start.
func (r *registry) decide(set types.NamespacedName, out *rollout.Decision) (keys []types.NamespacedName) {
	r.sets.Update(set, func(c compiled, known bool) (compiled, bool) {
		if !known || c.leaving {
			return c, known
		}
		starts := map[types.NamespacedName]rollout.Start{}
		for key, s := range c.starts {
			if !out.Held && s.Revision == out.State.Revision {
				starts[key] = s
			}
		}
		for _, s := range out.Starts {
			starts[s.Cluster] = s
			keys = append(keys, s.Cluster)
		}
		c.starts = starts
		return c, true
	})
	return keys
}

// tellRollout sends an event when a rollout starts, reaches another wave, stops or is complete.
func (r *Reconciler) tellRollout(ctx context.Context, before, set *hubv1.AddonSet) {
	for _, e := range rollout.Events(before.Status.Rollout, set.Status.Rollout) {
		typ := corev1.EventTypeNormal
		if e.Warning {
			typ = corev1.EventTypeWarning
		}
		if e.Reason == hubv1.RollbackEvent && e.Warning {
			e.Message += r.downgrades(ctx, set)
		}
		r.Recorder.Eventf(set, nil, typ, e.Reason, "Rollout", "%s", e.Message)
	}
}

// downgrades warns of charts that go back to an older version in a rollback; "" if there is none.
func (r *Reconciler) downgrades(ctx context.Context, set *hubv1.AddonSet) string {
	revisions, err := r.revisions(ctx, r.Client, set)
	if err != nil {
		return "" // the warning is not worth a failure
	}
	var from, to []byte
	for i := range revisions {
		switch revisions[i].Name {
		case set.Status.Revision:
			from = revisions[i].Data.Raw
		case set.Status.Rollout.Revision:
			to = revisions[i].Data.Raw
		}
	}
	charts, err := pin.Downgrades(from, to)
	if err != nil || len(charts) == 0 {
		return ""
	}
	return "; Helm takes back neither CRDs nor what a chart has done to its data: " + status.List(charts, 3)
}
