// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/coverage"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/render"
)

// history is how many revisions are kept that no delivery names.
const history = 5

func labelValue(set string) string { return identity.LabelValue(set) }

// snapshot makes sure that the revision of the set's present spec and some pins exists, notes it in the status, and returns its
// content.
func (r *Reconciler) snapshot(ctx context.Context, set *hubv1.AddonSet, pins *compile.Pins) ([]byte, error) {
	raw, hash, err := compile.Snapshot(&set.Spec, pins)
	if err != nil {
		return nil, err
	}
	name := identity.Revision(set.Name, hash, render.Epoch)
	there := &appsv1.ControllerRevision{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, there)
	if err == nil {
		set.Status.Revision = name
		if err := r.own(ctx, set, there, raw); err != nil {
			return nil, err
		}
		return raw, r.raise(ctx, set, there)
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err := r.makeRevision(ctx, set, name, raw); err != nil {
		return nil, err
	}
	set.Status.Revision = name
	return raw, nil
}

// keepRevisions makes the revisions again that the deliveries of a deleted set name, if the set's spec still gives
// their content: what the guard holds is still delivered as it was. A deletion with --cascade=foreground, such as
// Argo CD's, takes the revisions before the set. While garbage collection deletes the set's dependents, it would
// delete new revisions as well, and wait for them.
func (r *Reconciler) keepRevisions(ctx context.Context, set *hubv1.AddonSet, deliveries []hubv1.AddonDelivery) error {
	if slices.Contains(set.Finalizers, metav1.FinalizerDeleteDependents) || slices.Contains(set.Finalizers, metav1.FinalizerOrphanDependents) {
		return nil // when that is off, it wakes us
	}
	raw, hash, err := compile.Snapshot(&set.Spec, pin.Recorded(set.Status.Sources))
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range deliveries {
		d := &deliveries[i]
		name := d.Spec.RevisionName
		if d.Withdrawn() || seen[name] || !identity.SameContent(name, identity.Revision(set.Name, hash, render.Epoch)) {
			continue
		}
		seen[name] = true
		there := &appsv1.ControllerRevision{}
		// Live: the cache may still have a revision that has just been deleted.
		switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, there); {
		case err == nil && there.DeletionTimestamp == nil && !metav1.IsControlledBy(there, set) && bytes.Equal(there.Data.Raw, raw):
			err = r.own(ctx, set, there, raw) // --cascade=orphan has taken us off
			if err != nil {
				return err
			}
		case apierrors.IsNotFound(err):
			if err := r.makeRevision(ctx, set, name, raw); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("read revision %s: %w", name, err)
		}
	}
	return nil
}

// makeRevision makes a revision of a set's present content.
func (r *Reconciler) makeRevision(ctx context.Context, set *hubv1.AddonSet, name string, raw []byte) error {
	revisions, err := r.revisions(ctx, r.Client, set)
	if err != nil {
		return err
	}
	number := int64(1)
	if n := len(revisions); n > 0 {
		number = revisions[n-1].Revision + 1
	}
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name,
			Labels: map[string]string{hubv1.AddonSetLabel: labelValue(set.Name), "app.kubernetes.io/managed-by": "chandler"},
			// For people: `kubectl tree`. And for garbage collection, if a user takes the finalizer off the set.
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, hubv1.GroupVersion.WithKind("AddonSet"))},
		},
		Data:     runtime.RawExtension{Raw: raw},
		Revision: number,
	}
	if err := r.Client.Create(ctx, revision, client.FieldOwner(hubv1.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make revision %s: %w", name, err)
	}
	r.event(set, hubv1.RevisionCreatedEvent, "revision %s", name)
	return nil
}

// raise gives a revision the highest number, if the set has come back to it and it has another one: the numbers say in which order the set
// had its revisions, as those of a Deployment do.
func (r *Reconciler) raise(ctx context.Context, set *hubv1.AddonSet, there *appsv1.ControllerRevision) error {
	revisions, err := r.revisions(ctx, r.Client, set)
	if err != nil {
		return err
	}
	if n := len(revisions); n == 0 || revisions[n-1].Name == there.Name || !metav1.IsControlledBy(there, set) {
		return nil
	}
	after := there.DeepCopy()
	after.Revision = revisions[len(revisions)-1].Revision + 1
	if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(there, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(hubv1.FieldManager)); err != nil {
		return fmt.Errorf("raise the number of revision %s: %w", there.Name, err)
	}
	return nil
}

// own makes sure that an existing revision belongs to the set, and has the content that its name says. A revision
// from a backup belongs to a set of another UID, and garbage collection is about to delete it. A revision with other
// content is forged.
func (r *Reconciler) own(ctx context.Context, set *hubv1.AddonSet, there *appsv1.ControllerRevision, raw []byte) error {
	if !bytes.Equal(there.Data.Raw, raw) {
		hash, err := compile.ContentHash(there.Data.Raw)
		if err != nil || there.Name != identity.Revision(set.Name, hash, render.Epoch) {
			if err := apply.Delete(ctx, r.Client, there); err != nil {
				return fmt.Errorf("remove revision %s, which does not hold what its name says: %w", there.Name, err)
			}
			return fmt.Errorf("ControllerRevision %s/%s did not hold what its name says: it is removed, and made anew", there.Namespace, there.Name)
		}
	}
	if metav1.IsControlledBy(there, set) {
		return nil
	}
	if owner := metav1.GetControllerOf(there); owner != nil && owner.Kind != "AddonSet" {
		return fmt.Errorf("ControllerRevision %s/%s belongs to %s %s: remove it", there.Namespace, there.Name, owner.Kind, owner.Name)
	}
	after := there.DeepCopy()
	after.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, hubv1.GroupVersion.WithKind("AddonSet"))}
	if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(there, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(hubv1.FieldManager)); err != nil {
		return fmt.Errorf("take over revision %s: %w", there.Name, err)
	}
	return nil
}

// revisions returns the revisions of a set, the oldest first.
func (r *Reconciler) revisions(ctx context.Context, from client.Reader, set *hubv1.AddonSet) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := from.List(ctx, list, client.InNamespace(set.Namespace), setLabels(set.Name)); err != nil {
		return nil, fmt.Errorf("list the revisions: %w", err)
	}
	ours := slices.DeleteFunc(list.Items, func(c appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&c, set) })
	slices.SortFunc(ours, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return ours, nil
}

// pruneRevisions deletes old revisions, but not the newest ones, nor those that a delivery names.
func (r *Reconciler) pruneRevisions(ctx context.Context, set *hubv1.AddonSet, f *coverage.Fleet) error {
	revisions, err := r.revisions(ctx, r.Client, set)
	if err != nil {
		return err
	}
	inUse := func(name string) bool {
		is := set.Status.Rollout
		return name == set.Status.Revision || f.InUse[name] || is != nil && (name == is.Revision || name == is.CompletedRevision)
	}
	idle := slices.DeleteFunc(revisions, func(c appsv1.ControllerRevision) bool { return inUse(c.Name) })
	for i := 0; i < len(idle)-history; i++ {
		if err := apply.Delete(ctx, r.Client, &idle[i]); err != nil {
			return fmt.Errorf("remove revision %s: %w", idle[i].Name, err)
		}
	}
	return nil
}

// deleteRevisions deletes all revisions of a set that is going, since garbage collection may not be running. It reads
// live: a revision that is not in the cache yet would stay.
func (r *Reconciler) deleteRevisions(ctx context.Context, set *hubv1.AddonSet) error {
	revisions, err := r.revisions(ctx, r.Live, set)
	if err != nil {
		return err
	}
	for i := range revisions {
		if err := apply.Delete(ctx, r.Client, &revisions[i]); err != nil {
			return fmt.Errorf("remove revision %s: %w", revisions[i].Name, err)
		}
	}
	return nil
}
