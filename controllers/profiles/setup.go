// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// SetupWithManager starts the controller. It does nothing before the CRD of ClusterProfiles is installed.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	all := enqueue.NewFleetBell(enqueue.Everywhere(r.Client))
	c, err := ctrl.NewControllerManagedBy(mgr).Named("profiles").
		For(&hubv1.ClusterRegistration{}, builder.WithPredicates(showsOtherwise())).
		WatchesRawSource(all).
		WithOptions(enqueue.Options(r.Config.Concurrency)).
		WithLogConstructor(logkey.Of(mgr, "profiles", logkey.Cluster)).
		Build(r)
	if err != nil {
		return err
	}
	r.Origins.OnInstalled(func(kind origin.Kind, example client.Object) error {
		if kind != origin.ClusterProfile {
			return nil
		}
		// A profile has the name of its registration. The registrations are listed once more: they may have been there before the CRD.
		if err := c.Watch(source.Kind(mgr.GetCache(), example, &handler.EnqueueRequestForObject{})); err != nil {
			return err
		}
		return c.Watch(source.Kind(mgr.GetCache(), client.Object(&hubv1.ClusterRegistration{}), &handler.EnqueueRequestForObject{},
			predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false }}))
	})
	r.Origins.OnChange(func(ctx context.Context, kind origin.Kind) {
		if kind == origin.ClusterProfile { // all profiles have gone with their CRD
			all.Ring(ctx, &hubv1.ClusterRegistration{})
		}
	})
	return nil
}

// showsOtherwise lets through what changes a profile.
func showsOtherwise() predicate.Predicate {
	return predicate.Or(predicate.LabelChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
			return status.Goes(a) != status.Goes(b) || a.Status.ClusterUID != b.Status.ClusterUID || a.Status.Provider != b.Status.Provider ||
				a.Status.KubernetesVersion != b.Status.KubernetesVersion || !equality.Semantic.DeepEqual(a.Status.Nodes, b.Status.Nodes) ||
				!equality.Semantic.DeepEqual(a.Status.Credential, b.Status.Credential) ||
				status.IsTrue(a, hubv1.KubeConfigValidCondition) != status.IsTrue(b, hubv1.KubeConfigValidCondition) || // its Secret is back
				!equality.Semantic.DeepEqual(meta.FindStatusCondition(a.Status.Conditions, hubv1.ReachableCondition),
					meta.FindStatusCondition(b.Status.Conditions, hubv1.ReachableCondition))
		},
	})
}
