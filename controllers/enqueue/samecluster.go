// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/precedence"
	"github.com/chandler-hub/chandler/internal/status"
)

// SameCluster returns a function that returns the registrations of a registration's cluster, and those that go and do not know of which
// cluster they are: it may be that one.
func SameCluster(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		id := obj.(*hubv1.ClusterRegistration).Status.ClusterID()
		if id == "" {
			return nil
		}
		return append(Registrations(ctx, c, client.MatchingFields{index.ClusterID: id}), goingSomewhere(ctx, c)...)
	}
}

// goingSomewhere returns the registrations that go and do not know of which cluster they are.
func goingSomewhere(ctx context.Context, c client.Reader) (out []reconcile.Request) {
	list := &hubv1.ClusterRegistrationList{}
	if err := c.List(ctx, list, client.MatchingFields{index.ClusterID: ""}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the registrations that have not answered")
	}
	for i := range list.Items {
		if status.Goes(&list.Items[i]) {
			out = append(out, Itself(ctx, &list.Items[i])...)
		}
	}
	return out
}

// ComesOrGoes lets through a registration that goes, that is led elsewhere, or that turns out to be of another cluster: that
// may change which of the cluster's other registrations is served.
func ComesOrGoes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
			return a.Status.ClusterID() != b.Status.ClusterID() || !a.Status.ClusterSince.Equal(b.Status.ClusterSince) ||
				authority(a) != authority(b) || status.Goes(a) != status.Goes(b) ||
				precedence.LedElsewhere(a) != precedence.LedElsewhere(b)
		},
	}
}

func authority(reg *hubv1.ClusterRegistration) string {
	if c := reg.Status.Credential; c != nil {
		return c.AuthorityFingerprint
	}
	return ""
}
