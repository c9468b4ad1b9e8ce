// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// Cluster is what one pass of the hub has read of a cluster and done for it.
type Cluster struct {
	// Now is when the cluster was read. Since is when the registration came to be of its present cluster; zero if that is not known.
	Now, Since time.Time
	// Registration names the ClusterRegistration, and Registered is true if it exists.
	Registration types.NamespacedName
	Registered   bool
	// Answered is true if the cluster has answered once, or cannot be probed.
	Answered bool
	// Reachable is true if the cluster answers, and Unprobed if the hub cannot probe it.
	Reachable, Unprobed bool
	// Nodes is how many nodes the cluster has; nil if that is not known.
	Nodes *int32
	// Suspended is the condition that says why the cluster's Flux objects are suspended; nil if they are not.
	Suspended *metav1.Condition
	// Objects are the cluster's Flux objects, as they were read.
	Objects map[plan.Key]*Object
	// Steps are those of the plan, in its order.
	Steps []Step
	// Removed returns what an object left on the cluster that the hub deleted a moment ago, and "" if it left nothing.
	// It returns false for any other object.
	Removed func(plan.Key) (left string, ok bool)
}

// Object is a Flux object.
type Object struct {
	plan.Observed
	UID types.UID
	// Delivery is the name of the AddonDelivery, in the object's namespace.
	Delivery string
	State    fluxstate.State
	// Awaited says why the object stays although no delivery wants it: another add-on is to take it over, and cannot be
	// delivered yet. It is empty for other objects.
	Awaited string
	// Lacks is true if it refers to a source or chart that the hub has not made, and does not make now: one that exists is not the hub's
	// then.
	Lacks bool
	// Refusal is what Flux says of a source or chart that the object waits for, and that could not be fetched; zero for none.
	Refusal fluxstate.Refusal
	// Yields is true if the object must go because another delivery delivers what it has.
	Yields bool
}

// Step is a step of the plan, and its outcome.
type Step struct {
	plan.Step
	// By is the delivery that wants the object, and Wanted is what it wants; zero and nil if no delivery does.
	By     types.NamespacedName
	Wanted *assembly.Wanted
	Outcome
}

// Outcome is the outcome of a step.
type Outcome struct {
	// Applied is the object's generation after the hub's last write.
	Applied int64
	// Left says what an object that was orphaned leaves on the cluster, and why.
	Left string
	// Err is why the step failed. NotOwned is true if the reason is that the object is not the hub's, and NoCopy if
	// Flux's credentials for the cluster are not beside the set yet. Passes is true if the next try may succeed, and Conflict if
	// another writer has just changed the object, so that the next try comes at once.
	Err                                error
	NotOwned, NoCopy, Passes, Conflict bool
}

// Delivery is a delivery, with what the hub rendered and assembled for it.
type Delivery struct {
	// AddonDelivery has the status that it had when it was read. Before are the add-ons that its status names now: they
	// differ if the hub has announced since that it orphans some.
	*hubv1.AddonDelivery
	Before []hubv1.AddonStatus
	// Result is what its revision renders to; nil if it cannot be rendered. Portion is what it may deliver of that.
	Result *render.Result
	assembly.Portion
	// Frozen is true if another version of the hub made the revision. Stays are the add-ons that stay as they are then.
	Frozen bool
	Stays  map[string]bool
	// Leaving is true if the set withdraws the delivery. WantedAgain is true if the set makes it again after another user
	// deleted it, and Abandoned if there is no set or no registration any more to withdraw it.
	Leaving, WantedAgain, Abandoned bool
	// Failed is true if it could not be read or rendered, and the hub tries again. Reason and Why describe that, or why
	// there is no Result.
	Failed      bool
	Reason, Why string
}

func (d *Delivery) key() types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
}

// before returns what the status said of an add-on before; zero if it said nothing.
func (d *Delivery) before(addon string) hubv1.AddonStatus {
	for i := range d.Before {
		if d.Before[i].Name == addon {
			return d.Before[i]
		}
	}
	return hubv1.AddonStatus{}
}

// owns returns whether an object is the delivery's.
func (d *Delivery) owns(o *Object) bool {
	return o != nil && o.Delivery == d.Name && o.Key.Namespace == d.Namespace
}

// holds returns whether an add-on stays as it is, because it is not known what it should be.
func (d *Delivery) holds(addon string) bool {
	return assembly.Held(&assembly.Delivery{Result: d.Result, Stays: d.Stays}, addon)
}

// asks returns what a step asks the removal guard for, or has been granted; "" for neither. A step that first waits for
// something else does not ask yet.
func (d *Delivery) asks(s *Step, o *Object) string {
	switch {
	case o == nil || d.Leaving:
		return ""
	case s.Reinstall != nil:
		return guard.Reinstalled(string(o.UID), s.Reinstall.String())
	case s.Verb == plan.Ask, s.Leaving() && slices.Contains(d.Spec.Removals, guard.Dropped(string(o.UID))):
		return guard.Dropped(string(o.UID))
	}
	return ""
}

// waits returns whether a step leaves an object as it is although the revision wants something else.
func (c *Cluster) waits(s *Step) bool {
	switch s.Verb {
	case plan.AwaitCluster, plan.AwaitDependency, plan.AwaitRemoval, plan.Ask:
		return true
	case plan.Suspend, plan.AwaitResume:
		o := c.Objects[s.Key]
		return s.Wanted != nil && o != nil && o.Hash != s.Wanted.Hash
	}
	return false
}

// keptSuspended returns the state of an add-on whose Flux object the hub keeps suspended.
func (c *Cluster) keptSuspended() hubv1.AddonState {
	if c.Suspended != nil && hubv1.Tripped(c.Suspended.Reason) {
		return hubv1.AddonUnreachable
	}
	return hubv1.AddonPaused
}
