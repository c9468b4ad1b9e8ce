// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// Values keeps in the namespace of each set what its add-ons read of the ConfigMaps and Secrets that lie beside the cluster. A copy is
// written just before the add-on that reads it, and again whenever its original changes: Flux reconciles by its watch label. A
// copy has the keys that a Flux object reads, or will read after the steps. It goes when there are none, and at once when its original is
// no longer shared. What cannot be copied holds up only the add-ons that read it.
func (r *Keeper) Values(ctx context.Context, c *Cluster, steps []plan.Step) error {
	all, err := r.copiesOf(ctx, c, steps)
	if err != nil {
		return err
	}
	var errs []error
	for _, at := range slices.SortedFunc(maps.Keys(all), func(a, b plan.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		k := all[at]
		err := r.keepCopy(ctx, c, k)
		if err == nil {
			continue
		}
		c.uncopied[at] = err
		passes := errors.Is(err, apply.ErrNotOwned) || errors.Is(err, errUnshared)
		if !passes && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// copied is a copy, and who reads it.
type copied struct {
	kind, namespace, name string
	// original is what it is copied from, in the namespace of the registration.
	original string
	// delivery is the one whose add-ons read it.
	delivery string
	// there is its metadata; nil if it does not exist.
	there *metav1.PartialObjectMetadata
	// keys are those that are read, and whole is true if all are. needed is true if a reader cannot do without the original.
	keys          map[string]bool
	whole, needed bool
}

// read returns whether something reads the copy, or is to.
func (k *copied) read() bool { return k.whole || len(k.keys) > 0 }

// MayRead returns an error if an object of a namespace reads a copy that could not be made.
func (c *Cluster) MayRead(namespace string, copies []document.Copy) error {
	for _, w := range copies {
		if err := c.uncopied[plan.Key{Kind: w.Kind, Namespace: namespace, Name: w.As}]; err != nil {
			return err
		}
	}
	return nil
}

// copyOf returns the copy of a name in a namespace, which is added if it is not among them.
func copyOf(all map[plan.Key]*copied, kind, namespace, name string) *copied {
	at := plan.Key{Kind: kind, Namespace: namespace, Name: name}
	if all[at] == nil {
		all[at] = &copied{kind: kind, namespace: namespace, name: name, keys: map[string]bool{}}
	}
	return all[at]
}

// copiesOf returns the copies that there are for a cluster, and those that the steps need, with who reads them.
func (r *Keeper) copiesOf(ctx context.Context, c *Cluster, steps []plan.Step) (map[plan.Key]*copied, error) {
	all := map[plan.Key]*copied{}
	for _, kind := range []string{observed.SecretKind, observed.ConfigMapKind} {
		kept, err := r.keptBeside(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		for i := range kept {
			m := &kept[i]
			original, delivery := m.Annotations[hubv1.CopyOfAnnotation], m.Annotations[hubv1.DeliveryAnnotation]
			ours := m.Name == identity.Copy(r.Config.HubID, c.Key, delivery, kind, original) // no label alone makes it a copy
			if m.Labels[hubv1.CopyLabel] == identity.ValuesCopy && ours {
				k := copyOf(all, kind, m.Namespace, m.Name)
				k.there, k.original, k.delivery = m, original, delivery
			}
		}
	}
	for _, s := range steps {
		if d, w := c.Wanted(s.Key); w != nil {
			wantCopies(d, all, w.Copies, func(copied string) bool { return s.Verb.Writes() || readsCopy(c.Objects[s.Key], copied) })
		}
	}
	for at, o := range c.Objects {
		for _, ref := range o.Reads {
			if k := all[plan.Key{Kind: ref.Kind, Namespace: at.Namespace, Name: ref.Name}]; k != nil {
				k.readBy(&ref)
			}
		}
	}
	return all, nil
}

// wantCopies adds the copies of an add-on of a delivery that it reads, or will read, by their names.
func wantCopies(d *planned.Delivery, all map[plan.Key]*copied, copies []document.Copy, read func(name string) bool) {
	for _, w := range copies {
		if !read(w.As) {
			continue
		}
		k := copyOf(all, w.Kind, d.Namespace, w.As)
		k.original, k.delivery, k.needed = w.Name, d.Name, true
		for _, key := range w.Keys {
			k.keys[key] = true
		}
	}
}

// readsCopy returns whether a Flux object reads a copy of a name now. There may be no object.
func readsCopy(o *observed.Object, name string) bool {
	return o != nil && slices.ContainsFunc(o.Reads, func(ref index.Read) bool { return ref.Name == name })
}

// readBy notes what a Flux object reads now.
func (k *copied) readBy(ref *index.Read) {
	k.needed = k.needed || !ref.Optional
	if ref.Key == "" {
		k.whole = true
		return
	}
	k.keys[ref.Key] = true
}

// errUnshared says that what is to be copied has gone, or is not shared, since it was looked at. Its event renders the add-ons again.
var errUnshared = errors.New("it is not there any more, or not shared with the set's namespace")

// keepCopy writes a copy that is not as it should be, and deletes one that is to go.
func (r *Keeper) keepCopy(ctx context.Context, c *Cluster, k *copied) error {
	if c.Reach[k.namespace].ByTeam() {
		return r.dropCopy(ctx, k)
	}
	if !k.read() {
		if c.Delivery(k.namespace, k.delivery) == nil { // then a Flux object that reads it may not have been looked at
			if left, err := r.Reader.ObjectsLeft(ctx, c.Observed(), k.namespace); err != nil || slices.ContainsFunc(left, c.overlooked) {
				return err
			}
		}
		return r.dropCopy(ctx, k)
	}
	ref := document.Ref{Kind: k.kind, Namespace: c.Key.Namespace, Name: k.original}
	doc, _, err := r.Documents.Read(ctx, r.Reader.From(), c.Key, k.namespace, ref)
	switch {
	case err != nil:
		return err
	case !doc.Found && k.needed && k.there != nil:
		return nil // a tool that replaces the original may delete it first
	case !slices.Contains(doc.SharedWith, k.namespace):
		return errors.Join(r.dropCopy(ctx, k), errUnshared)
	}
	if k.whole {
		for _, key := range doc.Keys {
			k.keys[key] = true
		}
	}
	keys := slices.Sorted(maps.Keys(k.keys))
	hash := identity.Hash(16, append([]string{k.original, k.delivery, doc.Version}, keys...)...)
	if k.there != nil && k.there.Annotations[hubv1.HashAnnotation] == hash {
		return nil
	}
	return r.writeCopy(ctx, c, k, keys, hash)
}

// overlooked returns whether a Flux object is not among those of which the pass knows what they read.
func (c *Cluster) overlooked(o metav1.PartialObjectMetadata) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Values(c.Objects)), func(seen *observed.Object) bool { return seen.UID == o.UID })
}

func (r *Keeper) dropCopy(ctx context.Context, k *copied) error {
	if k.there == nil || k.there.DeletionTimestamp != nil {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("a copy goes", logkey.Object, fmt.Sprintf("%s %s/%s", k.kind, k.namespace, k.name))
	return apply.Delete(ctx, r.Client, k.there)
}

// writeCopy writes a copy. An object of that name that is not the hub's stays as it is.
func (r *Keeper) writeCopy(ctx context.Context, c *Cluster, k *copied, keys []string, hash string) error {
	u, err := r.original(ctx, c, k, keys)
	if err != nil {
		return fmt.Errorf("copy %s %s/%s: %w", k.kind, c.Key.Namespace, k.original, err)
	}
	key := identity.ClusterKey(r.Config.HubID, c.Key)
	u.SetNamespace(k.namespace)
	u.SetName(k.name)
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.CopyLabel:                identity.ValuesCopy,
		hubv1.ClusterKeyLabel:          key,
		hubv1.ClusterLabel:             identity.LabelValue(c.Key.Name),
		fluxmeta.LabelKeyWatch:         fluxmeta.LabelValueWatchEnabled,
	})
	u.SetAnnotations(map[string]string{
		hubv1.RegistrationAnnotation: c.Key.String(),
		hubv1.DeliveryAnnotation:     k.delivery,
		hubv1.CopyOfAnnotation:       k.original,
		hubv1.HashAnnotation:         hash,
	})
	if k.there != nil {
		u.SetUID(k.there.UID)
		_, err = apply.Update(ctx, r.Client, u, hubv1.FieldManager)
		return err
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(u.GroupVersionKind())
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(u), there)
	owned := there.Labels[hubv1.ClusterKeyLabel] == key && there.Labels[hubv1.CopyLabel] == identity.ValuesCopy
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read %s %s/%s: %w", k.kind, k.namespace, k.name, err)
	case err == nil && !owned:
		return fmt.Errorf("%s %s/%s: %w", k.kind, k.namespace, k.name, apply.ErrNotOwned)
	}
	_, err = apply.Update(ctx, r.Client, u, hubv1.FieldManager)
	return err
}

// original reads what is to be copied, and returns an object of its kind with the keys that are used. It reads live whether the owner
// shares it: what was looked at before may be older.
func (r *Keeper) original(ctx context.Context, c *Cluster, k *copied, keys []string) (*unstructured.Unstructured, error) {
	name, content := types.NamespacedName{Namespace: c.Key.Namespace, Name: k.original}, map[string]any{}
	u := &unstructured.Unstructured{Object: map[string]any{"data": content}}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(k.kind))
	var annotations map[string]string
	if k.kind == observed.SecretKind {
		s := &corev1.Secret{}
		if err := r.Live.Get(ctx, name, s); err != nil {
			return nil, unshared(err)
		}
		for _, key := range keys {
			if v, has := s.Data[key]; has {
				content[key] = base64.StdEncoding.EncodeToString(v)
			}
		}
		annotations, u.Object["type"] = s.Annotations, string(corev1.SecretTypeOpaque)
	} else {
		m := &corev1.ConfigMap{}
		if err := r.Live.Get(ctx, name, m); err != nil {
			return nil, unshared(err)
		}
		for _, key := range keys {
			if v, has := m.Data[key]; has {
				content[key] = v
			}
		}
		annotations = m.Annotations
	}
	if !slices.Contains(document.SharedWith(annotations), k.namespace) {
		return nil, errUnshared
	}
	return u, nil
}

// unshared makes an error of reading that an original is gone say no more than that.
func unshared(err error) error {
	if apierrors.IsNotFound(err) {
		return errUnshared
	}
	return err
}
