// SPDX-License-Identifier: Apache-2.0

// Package fluxcrds reads the CRDs of Flux that are installed on the management cluster. Bodies of add-ons are held to
// them, so that a hub neither writes what this Flux refuses nor refuses what it takes.
package fluxcrds

import (
	"context"
	"slices"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/internal/crdschema"
)

// names are the CRDs of what the hub makes.
var names = []string{
	"helmreleases.helm.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io", "helmcharts.source.toolkit.fluxcd.io",
	"helmrepositories.source.toolkit.fluxcd.io", "gitrepositories.source.toolkit.fluxcd.io", "ocirepositories.source.toolkit.fluxcd.io",
	"buckets.source.toolkit.fluxcd.io",
}

// Reader keeps the schemas of the installed CRDs. Those of a CRD that is not installed, or cannot be read, are the ones
// that are built in.
type Reader struct {
	Live client.Reader
	// Changed are rung when the schemas have changed, and everything is to be judged anew.
	Changed []*enqueue.Bell

	current atomic.Pointer[crdschema.Library]
}

// Library returns the schemas as they are now.
func (r *Reader) Library() *crdschema.Library { return r.current.Load() }

// Read reads all of the CRDs, and returns whether anything has changed.
func (r *Reader) Read(ctx context.Context) (changed bool, err error) {
	var found []apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		crd := apiextensionsv1.CustomResourceDefinition{}
		err := r.Live.Get(ctx, types.NamespacedName{Name: name}, &crd)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, err
		default:
			found = append(found, crd)
		}
	}
	l, err := crdschema.Of(found)
	if err != nil {
		log.FromContext(ctx).Error(err, "A CRD of Flux cannot be read; the one that is built in counts in its place")
	}
	return r.current.Swap(l).Hash() != l.Hash(), nil
}

// SetupWithManager reads the CRDs again whenever one of them changes.
func (r *Reader) SetupWithManager(mgr manager.Manager) error {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	flux := predicate.NewPredicateFuncs(func(obj client.Object) bool { return slices.Contains(names, obj.GetName()) })
	one := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "flux"}}}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("fluxcrds").
		WatchesMetadata(crd, handler.EnqueueRequestsFromMapFunc(one), builder.WithPredicates(flux, predicate.GenerationChangedPredicate{})).
		Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			changed, err := r.Read(ctx)
			if changed {
				for _, bell := range r.Changed {
					bell.Ring(ctx, crd)
				}
			}
			return reconcile.Result{}, err
		}))
}
