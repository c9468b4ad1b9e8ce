// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/reach"
)

// scopesOf returns a function that names the scope of a namespace, in which the names of add-ons are unique on a registration's cluster:
// "" for those that reach it without a Team. Each other one is a scope of its own, also if its Team is gone, or cannot be read: an orphan
// that is told for too long does no harm.
func (r *Reconciler) scopesOf(ctx context.Context, reg *hubv1.ClusterRegistration) func(namespace string) string {
	return func(namespace string) string {
		if from, err := reach.Of(ctx, r.Client, r.Config, namespace); err != nil || from.ByTeam() || !from.To(reg) {
			return namespace
		}
		return ""
	}
}
