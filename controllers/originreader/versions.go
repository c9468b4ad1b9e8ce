// SPDX-License-Identifier: Apache-2.0

package originreader

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/internal/origin"
)

// served asks the API server which version of a kind to read: the one that it prefers; empty if the CRD does not
// exist or serves none.
func (o *Reader) served(ctx context.Context, kind origin.Kind) (string, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := o.live.Get(ctx, types.NamespacedName{Name: kind.CRD}, crd); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("read CustomResourceDefinition %s: %w", kind.CRD, err)
	}
	if crd.DeletionTimestamp != nil {
		return "", nil
	}
	if !slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		return "", nil
	}
	best := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && (best == "" || version.CompareKubeAwareVersionStrings(v.Name, best) > 0) {
			best = v.Name
		}
	}
	return best, nil
}

// try lists a kind in a version. If a conversion webhook does not answer, an informer of that version would never
// sync, and its readers would block.
func (o *Reader) try(ctx context.Context, gvk schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return o.live.List(ctx, list, client.Limit(1))
}

// watch starts the watches of a kind in a version. From now on the kind is read in that version.
func (o *Reader) watch(ctx context.Context, kind origin.Kind, gvk schema.GroupVersionKind) error {
	o.mu.Lock()
	if old, watched := o.versions[kind.GroupKind]; watched {
		o.retired[old] = time.Now()
	}
	delete(o.retired, gvk)
	o.versions[kind.GroupKind] = gvk
	o.mu.Unlock()
	log.FromContext(ctx).Info("watching a kind of origin", "kind", kind.Kind, "apiVersion", gvk.GroupVersion())
	for _, start := range o.starters {
		if err := start(kind, Example(kind, gvk)); err != nil {
			o.mu.Lock()
			delete(o.versions, kind.GroupKind) // so that the next try does not take it for watched
			o.mu.Unlock()
			return fmt.Errorf("watch %s: %w", kind.Kind, err)
		}
	}
	return nil
}

// retireAfter is how long the informers of a version are kept after the switch to another. Otherwise a reader of the
// old version would start them again, and wait for ever for a version that is not served any more.
const retireAfter = time.Minute

// retire stops the informers of versions of a kind that are not read any more.
func (o *Reader) retire(ctx context.Context, kind origin.Kind) (reconcile.Result, error) {
	var over []schema.GroupVersionKind
	wait := time.Duration(0)
	o.mu.Lock()
	for gvk, since := range o.retired {
		if gvk.GroupKind() != kind.GroupKind {
			continue
		}
		if left := retireAfter - time.Since(since); left > 0 {
			wait = max(wait, left)
			continue
		}
		over = append(over, gvk)
		delete(o.retired, gvk)
	}
	o.mu.Unlock()
	for _, gvk := range over {
		if err := o.mgr.GetCache().RemoveInformer(ctx, Example(kind, gvk)); err != nil {
			return reconcile.Result{}, fmt.Errorf("end the watch of %s: %w", gvk, err)
		}
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}
