// SPDX-License-Identifier: Apache-2.0

// Package sharedobjects keeps the HelmCharts and sources that clusters share. It is their only writer, and deletes
// each one a while after its last use. The name of an object is a hash of its spec, so the package updates one in two cases: to undo the
// edit of another, and if a set gives its sources other labels and annotations now. The one exception is the repository of the hub's own
// chart.
package sharedobjects

import (
	"context"
	"fmt"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// Keeper keeps the shared objects.
type Keeper struct {
	Client client.Client
	Live   client.Reader
	Config *hubconfig.Config
	Clock  clock.PassiveClock

	records memory.Map[id, *record]
}

// Unseen is how long the cache may take to show an object that was made. After that the object does not exist:
// a user has deleted it.
const Unseen = 3 * time.Second

// id names a shared object.
type id struct {
	kind string
	types.NamespacedName
}

// record is what is remembered of one object. Its lock prevents that the object is deleted just when a delivery begins
// to use it, and that a hundred clusters all make it.
type record struct {
	mu sync.Mutex
	// hash is the hash of what was last written, until the cache shows it; empty if nothing was. at is when that was.
	hash string
	at   time.Time
	// idleSince is since when no delivery uses it; zero while one does.
	idleSince time.Time
	// generation is that of the hub's last write to an object that was there; zero if there was none.
	generation int64

	// users is how many hold the record now. Only an update of the Keeper's records changes it.
	users int
}

// record returns the record of an object, locked, and a function that unlocks it, and forgets it if it is empty.
func (k *Keeper) record(key id) (*record, func()) {
	r := k.take(key)
	r.mu.Lock()
	return r, func() {
		defer r.mu.Unlock()
		k.records.Update(key, func(is *record, known bool) (*record, bool) {
			r.users--
			return is, known && (is != r || r.users > 0 || r.hash != "" || !r.idleSince.IsZero() || r.generation != 0)
		})
	}
}

func (k *Keeper) take(key id) (r *record) {
	k.records.Update(key, func(is *record, known bool) (*record, bool) {
		if r = is; !known {
			r = &record{}
		}
		r.users++
		return r, true
	})
	return r
}

// Kept returns how many objects are remembered. They take next to no memory.
func (k *Keeper) Kept() (entries, bytes int) { return k.records.Len(), 0 }

// Gone is called when a user has deleted an object, so that it is not taken for one that the cache does not show
// yet. It does not block: a caller that works on the object has its own record, and the next caller starts with a new
// one.
func (k *Keeper) Gone(kind string, name types.NamespacedName) { k.records.Delete(id{kind, name}) }

// objects returns an empty object of each kind that is kept.
func objects() map[string]client.Object {
	return map[string]client.Object{
		sourcev1.HelmChartKind:      &sourcev1.HelmChart{},
		sourcev1.HelmRepositoryKind: &sourcev1.HelmRepository{},
		sourcev1.GitRepositoryKind:  &sourcev1.GitRepository{},
		sourcev1.OCIRepositoryKind:  &sourcev1.OCIRepository{},
		sourcev1.BucketKind:         &sourcev1.Bucket{},
		index.ServiceAccount:        &corev1.ServiceAccount{},
	}
}

// Ensure makes an object if it does not exist. An existing object stays as it is, unless it has another hash, or another writer has edited
// it. seen is false if the cache does not show the object yet. Then the caller has to look again after
// Unseen: if a user deletes the object before the cache has ever shown it, no event says so.
func (k *Keeper) Ensure(ctx context.Context, s *flux.Shared) (seen bool, err error) {
	key := id{s.Object.GetKind(), client.ObjectKeyFromObject(s.Object)}
	rec, release := k.record(key)
	defer release()
	rec.idleSince = time.Time{} // its retention begins when it is seen unused from now on
	there := objects()[key.kind]
	err = k.Client.Get(ctx, key.NamespacedName, there, client.UnsafeDisableDeepCopy) // it is only read
	switch {
	case err == nil && there.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(there, hubv1.Finalizer):
		return true, nil // it serves until no delivery uses it
	case err == nil && there.GetDeletionTimestamp() != nil:
		return true, fmt.Errorf("%s %s %w", key.kind, key, apply.ErrBeingDeleted)
	case err == nil:
		return true, k.renew(ctx, there, s, rec)
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("read %s %s: %w", key.kind, key, err)
	case rec.hash == s.Hash && k.Clock.Since(rec.at) < Unseen:
		return false, nil // made a moment ago, and not in the cache yet
	case s.Yields && k.Live.Get(ctx, key.NamespacedName, objects()[key.kind]) == nil:
		return true, nil
	default:
		_, err = apply.Create(ctx, k.Client, k.Live, kept(s.Object), hubv1.FieldManager, k.ours)
	}
	if err == nil {
		rec.hash, rec.at = s.Hash, k.Clock.Now()
	}
	return false, err
}

// renew brings an object in line that is there.
func (k *Keeper) renew(ctx context.Context, there client.Object, s *flux.Shared, rec *record) (err error) {
	if k.ours(there) && edited(there, rec) {
		if rec.generation, err = k.restore(ctx, there, s.Object); err != nil {
			return err
		}
	}
	if !s.InPlace && !k.ours(there) || there.GetAnnotations()[hubv1.HashAnnotation] == s.Hash || rec.hash == s.Hash {
		return nil
	}
	written, err := apply.Update(ctx, k.Client, kept(s.Object), hubv1.FieldManager)
	if err == nil {
		rec.generation, rec.hash, rec.at = written.GetGeneration(), s.Hash, k.Clock.Now()
	}
	return err
}

// Lacks returns something that an object refers to, directly or through another object, and that the hub has not made, as index.Source
// writes it; "" if there is nothing. It may not be the hub's, and then the hub does not read it. uses is what index.UsesOf returns for the
// object.
func (k *Keeper) Lacks(ctx context.Context, uses []string) (string, error) {
	for _, use := range uses {
		key, ok := parse(use)
		there := objects()[key.kind]
		if !ok || there == nil {
			continue
		}
		if err := k.Client.Get(ctx, key.NamespacedName, there, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
			return use, nil
		} else if err != nil {
			return "", fmt.Errorf("read %s %s: %w", key.kind, key, err)
		}
		if lacks, err := k.Lacks(ctx, index.UsesOf(there)); lacks != "" || err != nil {
			return lacks, err
		}
	}
	return "", nil
}

// Refusal returns what Flux says of a source or chart that an object refers to, directly or through another object, and that it could not
// fetch; zero if there is none. The cause comes first: what a chart says of its repository is less than what the repository says. uses
// is what index.UsesOf returns for the object. One that the hub has not made is read live, so ask only of an object that waits for it.
func (k *Keeper) Refusal(ctx context.Context, uses []string) (fluxstate.Refusal, error) {
	for _, use := range uses {
		key, ok := parse(use)
		there := objects()[key.kind]
		if !ok || there == nil || key.kind == index.ServiceAccount {
			continue
		}
		err := k.Client.Get(ctx, key.NamespacedName, there, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			there = objects()[key.kind]
			err = k.Live.Get(ctx, key.NamespacedName, there)
		}
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fluxstate.Refusal{}, fmt.Errorf("read %s %s: %w", key.kind, key, err)
		}
		if cause, err := k.Refusal(ctx, index.UsesOf(there)); cause != (fluxstate.Refusal{}) || err != nil {
			return cause, err
		}
		if refusal := fluxstate.RefusalOf(there); refusal != (fluxstate.Refusal{}) {
			return refusal, nil
		}
	}
	return fluxstate.Refusal{}, nil
}

// EnsurePlaceholder makes a placeholder ServiceAccount, unless a ServiceAccount of that name exists: without one,
// kustomize-controller leaves behind what it should remove. ours is false if it is not the hub's: it may go at
// any time.
func (k *Keeper) EnsurePlaceholder(ctx context.Context, namespace, name string) (ours bool, err error) {
	placeholder, err := flux.PlaceholderServiceAccount(k.Config.HubID, namespace, name)
	if err != nil {
		return false, err
	}
	if _, err := k.Ensure(ctx, &placeholder); err != nil {
		return false, err
	}
	there := &corev1.ServiceAccount{}
	if err := k.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, there); err != nil {
		return false, fmt.Errorf("read ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return controllerutil.ContainsFinalizer(there, hubv1.Finalizer), nil
}

// kept returns an object as it is to be made: with a finalizer, if Flux needs it to remove what it has made.
func kept(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj.GetKind() != index.ServiceAccount {
		return obj
	}
	obj = obj.DeepCopy()
	obj.SetFinalizers([]string{hubv1.Finalizer})
	return obj
}

func (k *Keeper) ours(o client.Object) bool {
	l := o.GetLabels()
	return l[hubv1.ChartLabel] == k.Config.HubID || l[hubv1.SourceLabel] == k.Config.HubID
}

// reconcile removes an object that no delivery has used for a while.
func (k *Keeper) reconcile(ctx context.Context, key id) (ctrl.Result, error) {
	rec, release := k.record(key)
	defer release()
	there := objects()[key.kind]
	if err := k.Client.Get(ctx, key.NamespacedName, there); err != nil {
		if apierrors.IsNotFound(err) && k.Clock.Since(rec.at) >= Unseen { // else the cache may not show it yet
			rec.hash, rec.idleSince = "", time.Time{}
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	used, err := k.used(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if used {
		rec.idleSince = time.Time{}
		return ctrl.Result{}, nil
	}
	if !k.ours(there) {
		return ctrl.Result{}, nil
	}
	if there.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, apply.RemoveFinalizer(ctx, k.Client, there, hubv1.Finalizer)
	}
	if rec.idleSince.IsZero() {
		rec.idleSince = k.Clock.Now()
	}
	if left := k.Config.ChartRetention - k.Clock.Since(rec.idleSince); left > 0 {
		return ctrl.Result{RequeueAfter: left + time.Millisecond}, nil
	}
	rec.hash = ""
	if err := apply.RemoveFinalizer(ctx, k.Client, there, hubv1.Finalizer); err != nil {
		return ctrl.Result{}, err
	}
	if err := apply.Delete(ctx, k.Client, there); err != nil {
		return ctrl.Result{}, fmt.Errorf("remove %s %s: %w", key.kind, key, err)
	}
	return ctrl.Result{}, nil
}

// used returns whether anything refers to an object.
func (k *Keeper) used(ctx context.Context, key id) (bool, error) {
	for _, list := range []client.ObjectList{&helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}, &sourcev1.HelmChartList{},
		&hubv1.AddonSetList{}} {
		err := k.Client.List(ctx, list, client.MatchingFields{index.Uses: index.Source(key.kind, key.Namespace, key.Name)},
			client.UnsafeDisableDeepCopy, client.Limit(1))
		if err != nil {
			return false, fmt.Errorf("list the users of %s %s: %w", key.kind, key, err)
		}
		if n := length(list); n > 0 {
			return true, nil
		}
	}
	return false, nil
}

func length(list client.ObjectList) int {
	switch l := list.(type) {
	case *helmv2.HelmReleaseList:
		return len(l.Items)
	case *kustomizev1.KustomizationList:
		return len(l.Items)
	case *sourcev1.HelmChartList:
		return len(l.Items)
	case *hubv1.AddonSetList:
		return len(l.Items)
	}
	return 0
}
