// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
)

// deletions notes what is deleted, as it was. Whoever renders an object makes it again, but what runs may refer to one
// that nobody renders any more: its removal is held, or what is wanted in its place is refused. The twin of a
// ServiceAccount is left out, which only goes when the hub lets it.
func (k *Keeper) deletions(kind string) predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		if kind == index.ServiceAccount || !k.ours(e.Object) {
			return true
		}
		k.Gone(kind, client.ObjectKeyFromObject(e.Object))
		k.mu.Lock()
		defer k.mu.Unlock()
		k.lost.note(id{kind, client.ObjectKeyFromObject(e.Object)}, e.Object, k.Clock.Now())
		return true
	}}
}

// found forgets what was lost: it is there again.
func (k *Keeper) found(key id) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lost.forget(key)
}

// again makes an object that was deleted as it was, if something refers to it and nobody has made it since. What nothing refers to is
// remembered for as long as it would have been kept: what refers to it may be about to be made again itself.
func (k *Keeper) again(ctx context.Context, key id, rec *record) (ctrl.Result, error) {
	k.mu.Lock()
	was, deleted := k.lost.objects[key]
	k.mu.Unlock()
	if rec.hash != "" && k.Clock.Since(rec.at) < Unseen {
		return ctrl.Result{}, nil // the cache does not show it yet
	}
	rec.hash, rec.idleSince = "", time.Time{}
	if !deleted {
		return ctrl.Result{}, nil
	}
	// Whoever renders the object comes first. What the cache knows of it is what the hub's version of Flux's API knows: a field of a newer
	// one is not in it, and 1h is 1h0m0s.
	if left := Unseen - k.Clock.Since(was.at); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	used, err := k.used(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if used {
		return ctrl.Result{}, k.remake(ctx, key, rec, was)
	}
	if left := k.Config.ChartRetention - k.Clock.Since(was.at); left > 0 {
		return ctrl.Result{RequeueAfter: left + time.Millisecond}, nil
	}
	k.found(key)
	return ctrl.Result{}, nil
}

// remake makes an object that was deleted, and then what it refers to, if that was deleted too.
func (k *Keeper) remake(ctx context.Context, key id, rec *record, was lost) error {
	u, err := k.asItWas(was.Object)
	if err != nil {
		return err
	}
	_, err = apply.Create(ctx, k.Client, k.Live, u, hubv1.FieldManager, k.ours)
	if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	rec.hash, rec.at = was.GetAnnotations()[hubv1.HashAnnotation], k.Clock.Now()
	k.found(key)
	for _, use := range index.UsesOf(was.Object) {
		source, ok := parse(use)
		k.mu.Lock()
		gone, deleted := k.lost.objects[source]
		k.mu.Unlock()
		if !ok || !deleted || source == key {
			continue
		}
		sourceRec, release := k.record(source)
		err := k.remake(ctx, source, sourceRec, gone)
		release()
		if err != nil {
			return err
		}
	}
	return nil
}

// asItWas returns what the hub writes of an object: its spec, labels and annotations.
func (k *Keeper) asItWas(was client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(was, k.Client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("make %s again: %w", client.ObjectKeyFromObject(was), err)
	}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(was)
	if err != nil {
		return nil, fmt.Errorf("make %s %s again: %w", gvk.Kind, client.ObjectKeyFromObject(was), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": whole["spec"]}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(was.GetNamespace())
	u.SetName(was.GetName())
	u.SetLabels(was.GetLabels())
	u.SetAnnotations(was.GetAnnotations())
	return u, nil
}
