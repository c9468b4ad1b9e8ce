// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// maxWhy is how much of a reason is kept for each cluster.
const maxWhy = 200

// Observe returns what a rollout needs to know of a cluster that has a delivery. reg is nil if the registration does not
// exist.
func Observe(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration) Cluster {
	c := Cluster{Key: d.Spec.RegistrationRef.Key(), Delivery: d.UID, Revision: d.Spec.RevisionName, Start: d.Spec.Start}
	if reg == nil {
		c.Excused = "its registration is missing"
		return c
	}
	c.Labels, c.Registered = reg.Labels, reg.CreationTimestamp.Time
	c.Offline, c.Excused = !status.Online(reg) || whose(d, silent) != "", pardon(d, reg)
	c.Nodeless, c.WithoutNodes = whose(d, nodeless), reg.Status.Nodes != nil && *reg.Status.Nodes == 0
	if asks := whose(d, asking); c.Excused == "" && asks != "" {
		c.Excused, c.Asks = asks, true
	}
	// The status may be about an older generation: a removal was granted, or a user deletes the delivery. Of another revision it
	// says neither ReadyRevision, nor a time after the start.
	c.Ready = ready(d)
	c.Failed, c.FailedSince = failure(d)
	// Times are in seconds. A failure in the second of the start, by a status of an older generation, came before the start.
	if start := d.Spec.Start; start != nil && d.Status.ObservedGeneration < d.Generation && c.FailedSince.Equal(start.Time.Time) {
		c.FailedSince = c.FailedSince.Add(-time.Second)
	}
	c.Healthy = c.Ready && c.Failed == "" && status.IsTrue(d, hubv1.ReadyCondition)
	return c
}

// ObserveLeaving returns what a rollout needs to know of a cluster that a set does not select any more, until its delivery is withdrawn.
// The cluster still counts in its wave, which does not wait for it.
func ObserveLeaving(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration) Cluster {
	c := Observe(d, reg)
	c.Excused, c.Asks = "the set does not select it", false
	return c
}

// ObserveNew returns what a rollout needs to know of a cluster that a set selects and does not deliver to yet.
func ObserveNew(reg *hubv1.ClusterRegistration) Cluster {
	return Cluster{
		Key: types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}, Labels: reg.Labels, Registered: reg.CreationTimestamp.Time,
		Offline: !status.Online(reg), Excused: away(reg), WithoutNodes: reg.Status.Nodes != nil && *reg.Status.Nodes == 0,
	}
}

// Waits returns whether a set delivers nothing to a cluster, which it selects, before its rollout comes to it.
func Waits(set *hubv1.AddonSet) bool {
	is, counts := set.Status.Rollout, set.Status.Clusters
	return is != nil && counts != nil && counts.Waiting > 0 && len(is.Waves) > 0 && is.Phase != hubv1.RolloutDone
}

// away says why nothing is delivered to a cluster that answers, by its registration: it is paused, or it sleeps.
func away(reg *hubv1.ClusterRegistration) string {
	if reason := status.Reason(reg, hubv1.SuspendedCondition); !hubv1.Tripped(reason) {
		return reason
	}
	return ""
}

// ready returns whether a delivery has been Ready on its revision since it got it.
func ready(d *hubv1.AddonDelivery) bool {
	s, start := &d.Status, d.Spec.Start
	return s.ReadyRevision == d.Spec.RevisionName &&
		(start == nil || s.ReadyTime != nil && !s.ReadyTime.Before(&start.Time))
}

// Trouble returns why the first add-on of a delivery that failed did; "" if none has.
func Trouble(d *hubv1.AddonDelivery) string {
	return trouble(d, func(*hubv1.AddonStatus) bool { return true })
}

// trouble is Trouble of the add-ons that count.
func trouble(d *hubv1.AddonDelivery, counts func(*hubv1.AddonStatus) bool) string {
	uncounted := int32(0)
	for i := range d.Status.Addons {
		switch a := &d.Status.Addons[i]; {
		case !counts(a):
			uncounted++
		case isFailed(a):
			return fmt.Sprintf("%s: %s", a.Name, excerpt.Cut(a.Message, maxWhy))
		}
	}
	if c := d.Status.AddonCounts; c != nil && c.Failed > uncounted {
		return "an add-on failed"
	}
	return ""
}

func isFailed(a *hubv1.AddonStatus) bool {
	return a.State == hubv1.AddonFailed || a.State == hubv1.AddonNotOwned
}

// failure returns why a delivery has failed, and since when. What passes is no failure: if it does not pass, the cluster is late.
func failure(d *hubv1.AddonDelivery) (string, time.Time) {
	lasts := func(a *hubv1.AddonStatus) bool { return !passes(a) }
	why := trouble(d, lasts)
	if c := status.Find(d, hubv1.StalledCondition); why == "" && c != nil && c.Status == "True" {
		return excerpt.Cut(c.Message, maxWhy), c.LastTransitionTime.Time
	}
	var since time.Time
	for i := range d.Status.Addons {
		if a := &d.Status.Addons[i]; isFailed(a) && lasts(a) && a.Since != nil && a.Since.After(since) {
			since = a.Since.Time
		}
	}
	return why, since
}

// passes returns whether an add-on failed for a reason that says nothing of its revision: Flux did not reach the cluster, or the
// management cluster did not take a write of the hub.
func passes(a *hubv1.AddonStatus) bool {
	return a.State == hubv1.AddonFailed && (a.LastAttempt == hubv1.AttemptUnreached || a.Reason == hubv1.NotWrittenReason)
}

// pardon says why the rollout should not wait for a cluster that answers, as far as the hub knows; "" if it should.
func pardon(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration) string {
	if why := away(reg); why != "" {
		return why
	}
	if why := whose(d, heldBack); why != "" {
		return why
	}
	switch reason := status.Reason(d, hubv1.ReadyCondition); reason {
	case hubv1.DuplicateReason, hubv1.AddonsLostReason, hubv1.OriginMissingReason:
		if !status.IsTrue(d, hubv1.ReadyCondition) {
			return reason
		}
	}
	return ""
}

// Unchanged returns a function for Input.Same. raw returns the content of a revision, nil if there is none. Another epoch may
// render the same content differently, so there it may change something everywhere.
func Unchanged(raw func(revision string) []byte) func(c *Cluster, revision string) bool {
	deltas := map[[2]string]*compile.Delta{}
	return func(c *Cluster, revision string) bool {
		if !identity.SameEpoch(c.Revision, revision) {
			return false
		}
		pair := [2]string{c.Revision, revision}
		delta, known := deltas[pair]
		if !known {
			delta = between(raw(c.Revision), raw(revision))
			deltas[pair] = delta
		}
		return delta != nil && !delta.Touches(labels.Set(c.Labels))
	}
}

// between returns the difference between two revisions; nil if it is not known, since one does not exist.
func between(old, recent []byte) *compile.Delta {
	if old == nil || recent == nil {
		return nil
	}
	delta, err := compile.NewDelta(old, recent)
	if err != nil {
		return nil
	}
	return delta
}
