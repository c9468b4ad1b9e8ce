// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/status"
)

// SameCluster returns a function that returns the registrations of a registration's cluster.
func SameCluster(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		id := obj.(*hubv1.ClusterRegistration).Status.ClusterID()
		if id == "" {
			return nil
		}
		return Registrations(ctx, c, client.MatchingFields{index.ClusterID: id})
	}
}

// ComesOrGoes lets through a registration that goes, that is gone, or that turns out to be of another cluster: that may change which of the
// cluster's registrations has it.
func ComesOrGoes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
			return a.Status.ClusterID() != b.Status.ClusterID() || !a.Status.ClusterSince.Equal(b.Status.ClusterSince) ||
				authority(a) != authority(b) || status.Goes(a) != status.Goes(b)
		},
	}
}

func authority(reg *hubv1.ClusterRegistration) string {
	if c := reg.Status.Credential; c != nil {
		return c.AuthorityFingerprint
	}
	return ""
}
