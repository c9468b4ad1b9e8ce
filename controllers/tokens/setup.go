// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// SetupWithManager starts the controller. Every event is turned into the registration that it concerns.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return ctrl.NewControllerManagedBy(mgr).Named("tokens").
		Watches(&hubv1.AddonDelivery{}, handler.EnqueueRequestsFromMapFunc(enqueue.RegistrationOfDelivery), builder.WithPredicates(arrives())).
		Watches(&hubv1.ClusterRegistration{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(answersOrMoves())).
		Watches(&hubv1.Team{}, enqueue.ClustersOfTeam(r.Client),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(secret, handler.EnqueueRequestsFromMapFunc(enqueue.RegistrationOfObject), builder.WithPredicates(ofTeams())).
		WithOptions(enqueue.Options(r.Config.Concurrency)).
		WithLogConstructor(logkey.Of(mgr, "tokens", logkey.Cluster)).
		Complete(r)
}

// arrives lets through that a delivery comes or goes, that the hub reports on it, that one of its add-ons becomes Ready, which may be a
// Team's rights, or fails, and that the cluster refuses the token of one that had failed before.
func arrives() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*hubv1.AddonDelivery), e.ObjectNew.(*hubv1.AddonDelivery)
			return len(a.Status.Addons) == 1 && len(b.Status.Addons) == 1 && a.Status.Addons[0].State != b.Status.Addons[0].State ||
				(len(a.Status.Addons) == 0) != (len(b.Status.Addons) == 0) || failing(a) < failing(b) || !refuses(a) && refuses(b)
		},
	}
}

// failing counts the failed add-ons of a delivery: the cluster may refuse the token.
func failing(d *hubv1.AddonDelivery) (n int) {
	for i := range d.Status.Addons {
		if d.Status.Addons[i].State == hubv1.AddonFailed {
			n++
		}
	}
	return n
}

// refuses returns whether an add-on of a delivery says that the cluster does not accept its token.
func refuses(d *hubv1.AddonDelivery) bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return unauthorized.MatchString(a.Message) })
}

// answersOrMoves lets through that a cluster answers, or is another one, or is reached otherwise, or has other labels, or
// that its kubeconfig is there again, or that it comes or goes.
func answersOrMoves() predicate.Predicate {
	return predicate.Or(predicate.LabelChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
			return status.Online(a) != status.Online(b) || a.Status.ClusterID() != b.Status.ClusterID() ||
				status.IsTrue(a, hubv1.KubeConfigValidCondition) != status.IsTrue(b, hubv1.KubeConfigValidCondition) ||
				!equality.Semantic.DeepEqual(a.Status.Credential, b.Status.Credential)
		},
	})
}

// ofTeams lets through that a Team's kubeconfig copy goes, or that a user edits it.
func ofTeams() predicate.Predicate {
	team := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[hubv1.CopyLabel] == identity.TeamCopy })
	edited := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	}
	return predicate.And(team, edited)
}

// SetupWithManager starts the renewal of the hub's own tokens.
func (r *Renewal) SetupWithManager(mgr manager.Manager) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return ctrl.NewControllerManagedBy(mgr).Named("renewal").
		Watches(&hubv1.ClusterRegistration{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(becomesUsable())).
		WatchesMetadata(secret, handler.EnqueueRequestsFromMapFunc(enqueue.UsersOfSecret(r.Client)), builder.WithPredicates(asksForRenewal())).
		WithOptions(enqueue.Options(r.Config.Concurrency)).
		WithLogConstructor(logkey.Of(mgr, "renewal", logkey.Cluster)).
		Complete(r)
}

// becomesUsable lets through that a cluster answers to a kubeconfig, or to another one, and that a registration goes.
func becomesUsable() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
			return may(a) != may(b) || !equality.Semantic.DeepEqual(a.Status.Credential, b.Status.Credential)
		},
	}
}

// asksForRenewal lets through that a user asks for the renewal of the token in a Secret, or for another lifetime, also by a Secret in the
// place of one that did not ask, or was not there: its registration has nothing to tell if the token is the same.
func asksForRenewal() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { // its registration is read at the start
			return !e.IsInInitialList && e.Object.GetAnnotations()[hubv1.RenewTokenAnnotation] != ""
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.GetAnnotations()[hubv1.RenewTokenAnnotation], e.ObjectNew.GetAnnotations()[hubv1.RenewTokenAnnotation]
			return a != b && b != ""
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
