// SPDX-License-Identifier: Apache-2.0

// Package observed is what is: it reads a cluster's registration, deliveries and Flux objects at one moment, and remembers of Flux's and
// the hub's own writes what the cache does not show. It decides nothing, and writes nothing. What is planned of it is in package planned.
package observed

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/expectations"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
)

// Cluster is everything that is known of one cluster. It was read at one moment.
type Cluster struct {
	// Key names the registration.
	Key types.NamespacedName
	// Now is that moment, for all decisions. If each decision read the clock, the time that the plan waits for could
	// pass while the reconcile runs, and the cluster would not be requeued for it.
	Now time.Time
	// Began is since when this process of the hub is at work; zero if that is not known.
	Began        time.Time
	Registration *hubv1.ClusterRegistration // nil if it does not exist
	Origin       *unstructured.Unstructured // nil if there is none
	Deliveries   []*Delivery
	// Ignored are deliveries that the hub did not make.
	Ignored []*Delivery
	// Foreign are HelmReleases for this cluster that are not the hub's.
	Foreign []assembly.Foreign
	// Objects are the Flux objects of this cluster that the hub made.
	Objects map[plan.Key]*Object
	// Reach says how far the sets of a namespace reach, for those that have been looked at.
	Reach map[string]match.Reach
	// wasTeam are the namespaces whose Team is not theirs any more, and from which it delivered here.
	wasTeam map[string]bool
	// outside says for each namespace out of reach whether Flux still reaches the cluster from there.
	outside map[string]look
	// Again is after how long to requeue the cluster; 0 for not at all.
	Again time.Duration
}

// Observed returns what was observed of a cluster, for those who know more of it.
func (c *Cluster) Observed() *Cluster { return c }

// Reachable returns whether the cluster answered the last probe.
func (c *Cluster) Reachable() bool {
	return c.Registration != nil && status.Online(c.Registration)
}

// Unprobed is true if the hub cannot probe the cluster: Flux logs in by workload identity.
func (c *Cluster) Unprobed() bool {
	return c.Registration != nil && c.Registration.Status.UsesWorkloadIdentity()
}

// Suspended returns the condition by which the registration controller asks for suspended objects; nil if it does not ask
// for that.
func (c *Cluster) Suspended() *metav1.Condition {
	if c.Registration == nil {
		return nil
	}
	return status.Find(c.Registration, hubv1.SuspendedCondition)
}

// Paused returns whether the cluster's objects are suspended because a user, or the origin, wants that. A cluster
// that does not answer is not paused.
func (c *Cluster) Paused() bool {
	s := c.Suspended()
	return s != nil && !hubv1.Tripped(s.Reason)
}

// Replaced says why an object that was made for the cluster with a UID is to be orphaned: the present cluster is
// another one, or another registration of it is served. A paused cluster's suspended objects do no harm, so they
// stay. It returns "" if the object is this registration's.
func (c *Cluster) Replaced(uid string) string {
	switch {
	case uid != "" && c.Registration != nil && c.Registration.Status.ClusterID() != "" && uid != c.Registration.Status.ClusterID():
		return plan.ReplacedReason
	case c.Duplicate() && !c.Paused():
		return c.otherHas()
	}
	return ""
}

// Answered is true if the cluster has answered once, or cannot be probed, so that objects may be made for it.
func (c *Cluster) Answered() bool {
	return c.Registration != nil && c.Registration.Status.Credential != nil && c.Registration.Status.ClusterID() != ""
}

// Duplicate returns whether another registration has the cluster, so that nothing of this one may stay there.
func (c *Cluster) Duplicate() bool {
	return c.Registration != nil && c.Registration.Status.DuplicateOf != nil
}

// otherHas says which registration has the cluster.
func (c *Cluster) otherHas() string {
	return fmt.Sprintf("ClusterRegistration %s has the cluster", c.Registration.Status.DuplicateOf.Key())
}

// Originless says that the origin of the cluster does not exist, or cannot be read; "" if it can, or if the registration names none.
// Nothing is rendered without it: what it does not say is unknown, and not absent.
func (c *Cluster) Originless() string {
	if c.Registration == nil || c.Registration.Spec.OriginRef == nil || c.Origin != nil {
		return ""
	}
	ref := c.Registration.Spec.OriginRef
	return fmt.Sprintf("%s %s/%s, the origin of the cluster, does not exist or cannot be read: what is delivered stays as it is, and the hub "+
		"makes and changes nothing until it can read the origin again. Bring the origin back, or delete ClusterRegistration %s",
		ref.Kind, c.Key.Namespace, ref.Name, c.Key)
}

// Since is when the registration came to be of its present cluster; zero if that is not known.
func (c *Cluster) Since() time.Time {
	if c.Registration == nil || c.Registration.Status.ClusterSince == nil {
		return time.Time{}
	}
	return c.Registration.Status.ClusterSince.Time
}

// Silent returns since when Flux can do nothing on the cluster, and zero if it can. The cluster does not answer, or
// sleeps, or is read-only.
func (c *Cluster) Silent() time.Time {
	if r := status.Find(c.Registration, hubv1.ReachableCondition); !status.Online(c.Registration) {
		if r == nil {
			return c.Registration.CreationTimestamp.Time
		}
		return r.LastTransitionTime.Time
	}
	if s := c.Suspended(); s != nil && (s.Reason == hubv1.ClusterSleepingReason || s.Reason == hubv1.ClusterWriteLimitedReason) {
		return s.LastTransitionTime.Time
	}
	return time.Time{}
}

// Nodeless returns whether the cluster is known to have no node.
func (c *Cluster) Nodeless() bool {
	return c.Registration != nil && c.Registration.Status.Nodes != nil && *c.Registration.Status.Nodes == 0
}

// Namespaces returns those of the deliveries.
func (c *Cluster) Namespaces() []string {
	var out []string
	seen := map[string]bool{}
	for _, d := range c.Deliveries {
		if !seen[d.Namespace] {
			seen[d.Namespace] = true
			out = append(out, d.Namespace)
		}
	}
	return out
}

// HasObjects returns whether a namespace has Flux objects of the cluster.
func (c *Cluster) HasObjects(namespace string) bool {
	for k := range c.Objects {
		if k.Namespace == namespace {
			return true
		}
	}
	return false
}

// Version returns the resourceVersion that an object had when it was read; "" if it does not exist.
func (c *Cluster) Version(o expectations.Object) string {
	if o.Kind == DeliveryKind {
		if d := c.delivery(o.Namespace, o.Name); d != nil {
			return d.ResourceVersion
		}
		return ""
	}
	if there := c.Objects[plan.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}]; there != nil {
		return there.Version
	}
	return ""
}

// LookAgain requeues the cluster after a time, if it is not requeued sooner.
func (c *Cluster) LookAgain(after time.Duration) {
	c.Again = pace.Sooner(c.Again, after)
}

// Soon is after how long to requeue the cluster for a change that no event reports.
const Soon = 100 * time.Millisecond

// RetryFailed is how long a failed delivery waits at most for its next try, while other deliveries of the cluster are
// requeued for later.
const RetryFailed = time.Minute

// DeliveryKind is the kind of a delivery in expectations.Object.
const DeliveryKind = "AddonDelivery"

// delivery returns the delivery with a name, or nil.
func (c *Cluster) delivery(namespace, name string) *Delivery {
	for _, d := range c.Deliveries {
		if d.Namespace == namespace && d.Name == name {
			return d
		}
	}
	return nil
}
