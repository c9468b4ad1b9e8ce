// SPDX-License-Identifier: Apache-2.0

package match

import (
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Aim says which clusters a set is to leave.
type Aim struct {
	// Reach is that of the set's namespace.
	Reach Reach
	// Selector is nil if the set does not compile. Then it keeps every cluster in its reach.
	Selector *Selector
}

// Leaves returns whether the set is to leave a cluster: it does not reach the cluster, or does not select it.
func (a Aim) Leaves(reg *hubv1.ClusterRegistration) bool {
	if a.Reach.Broken() != "" {
		return false // how far it reaches is not known
	}
	return !a.Reach.To(reg) || a.Selector != nil && !a.Selector.Matches(reg)
}

// AtOnce returns whether the set leaves a cluster without a delay: no label and no selector can come back that would have
// it reach the cluster. Its namespace is no platform namespace, and has no Team, or its Team is being deleted.
func (a Aim) AtOnce(reg *hubv1.ClusterRegistration) bool {
	return !a.Reach.To(reg) && (a.Reach.Team == nil || a.Reach.Team.Deleted)
}

// LeavesWith is Leaves for a cluster that has other labels.
func (a Aim) LeavesWith(reg *hubv1.ClusterRegistration, with labels.Set) bool {
	next := reg.DeepCopy()
	next.Labels = with
	return a.Leaves(next)
}
