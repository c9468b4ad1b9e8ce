// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
)

// copies keeps beside each set what its add-ons read of the ConfigMaps and Secrets that lie beside the cluster. A copy is
// written before the add-on that reads it, and again whenever its original changes: Flux reconciles by its watch label. A
// copy goes when nothing reads it any more, and at once when its original is no longer shared. What cannot be copied
// holds up only the add-ons that read it.
func (r *Reconciler) copies(ctx context.Context, c *cluster) error {
	there, err := r.copiesThere(ctx, c)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range c.deliveries {
		if d.leaving {
			continue
		}
		for _, want := range d.copies() {
			if err := r.copy(ctx, c, d, &want, there); err != nil {
				errs = append(errs, err)
				d.uncopied = append(d.uncopied, uncopied{want.As, err})
			}
		}
	}
	for i := range there {
		if c.dropsCopy(&there[i]) {
			name := there[i].Kind + " " + client.ObjectKeyFromObject(&there[i]).String()
			ctrl.LoggerFrom(ctx).Info("nothing reads a copy any more", logkey.Object, name)
			errs = append(errs, apply.Delete(ctx, r.Client, &there[i]))
		}
	}
	return errors.Join(errs...)
}

// uncopied is a copy that could not be made, by its name.
type uncopied struct {
	as  string
	err error
}

// copies returns the copies that what a delivery may deliver needs, each once.
func (d *delivery) copies() []render.Copy {
	var all []render.Copy
	for i := range d.Wanted {
		all = append(all, d.Wanted[i].Copies...)
	}
	return render.MergeCopies(all)
}

// mayRead returns an error if an object reads a copy that could not be made.
func (d *delivery) mayRead(copies []render.Copy) error {
	for _, u := range d.uncopied {
		if slices.ContainsFunc(copies, func(c render.Copy) bool { return c.As == u.as }) {
			return u.err
		}
	}
	return nil
}

// copiesThere returns the metadata of the copies that the hub keeps for a cluster.
func (r *Reconciler) copiesThere(ctx context.Context, c *cluster) ([]metav1.PartialObjectMetadata, error) {
	var out []metav1.PartialObjectMetadata
	for _, kind := range []string{secretKind, configMapKind} {
		mirrors, err := index.Mirrors(ctx, r.Client, kind, identity.ClusterKey(r.Config.HubID, c.key))
		if err != nil {
			return nil, err
		}
		for i := range mirrors {
			if mirrors[i].Labels[hubv1.MirrorLabel] == identity.CopyMirror {
				mirrors[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
				out = append(out, mirrors[i])
			}
		}
	}
	return out, nil
}

// dropsCopy returns whether a copy is to go: it is not shared any more, or nothing is to read it and no Flux object does.
func (c *cluster) dropsCopy(there *metav1.PartialObjectMetadata) bool {
	d := c.delivery(there.Namespace, there.Annotations[hubv1.DeliveryAnnotation])
	switch {
	case there.DeletionTimestamp != nil:
		return false
	case d != nil && d.result != nil && slices.Contains(d.result.Unshared, there.Name):
		return true
	}
	wanted := func(w render.Copy) bool { return w.Kind == there.Kind && w.As == there.Name }
	if d != nil && !d.leaving && slices.ContainsFunc(d.copies(), wanted) {
		return false
	}
	for k, o := range c.objects {
		if k.Namespace == there.Namespace && slices.Contains(o.reads, there.Kind+"/"+there.Name) {
			return false
		}
	}
	return true
}

// copy writes one copy, if it is not there as it should be.
func (r *Reconciler) copy(ctx context.Context, c *cluster, d *delivery, want *render.Copy, there []metav1.PartialObjectMetadata) error {
	hash := identity.Hash(16, append([]string{want.Namespace, want.Version}, want.Keys...)...)
	at := slices.IndexFunc(there, func(m metav1.PartialObjectMetadata) bool {
		return m.Kind == want.Kind && m.Namespace == d.Namespace && m.Name == want.As
	})
	if at >= 0 && there[at].Annotations[hubv1.HashAnnotation] == hash && there[at].Annotations[hubv1.DeliveryAnnotation] == d.Name {
		return nil
	}
	u, err := r.original(ctx, want, d.Namespace)
	if err != nil {
		return fmt.Errorf("copy %s %s/%s: %w", want.Kind, want.Namespace, want.Name, err)
	}
	key := identity.ClusterKey(r.Config.HubID, c.key)
	u.SetNamespace(d.Namespace)
	u.SetName(want.As)
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.MirrorLabel:              identity.CopyMirror,
		hubv1.ClusterKeyLabel:          key,
		hubv1.ClusterLabel:             identity.LabelValue(c.key.Name),
		hubv1.AddonSetLabel:            identity.LabelValue(d.Spec.AddonSetRef.Name),
		fluxmeta.LabelKeyWatch:         fluxmeta.LabelValueWatchEnabled,
	})
	u.SetAnnotations(map[string]string{
		hubv1.RegistrationAnnotation: c.key.String(),
		hubv1.DeliveryAnnotation:     d.Name,
		hubv1.HashAnnotation:         hash,
	})
	if at >= 0 {
		u.SetUID(there[at].UID)
		_, err = apply.Update(ctx, r.Client, u, hubv1.FieldManager)
		return err
	}
	_, err = apply.Create(ctx, r.Client, r.Live, u, hubv1.FieldManager, func(there client.Object) bool {
		return there.GetLabels()[hubv1.ClusterKeyLabel] == key && there.GetLabels()[hubv1.MirrorLabel] == identity.CopyMirror
	})
	return err
}

// errUnshared says that what is to be copied has gone, or is not shared, since it was looked at. Its event renders the add-ons again.
var errUnshared = errors.New("it is not there any more, or not shared with the set's namespace")

// original reads what is to be copied, and returns an object of its kind with the keys that are used. It reads live whether the owner
// shares it: the rendering may be older.
func (r *Reconciler) original(ctx context.Context, want *render.Copy, namespace string) (*unstructured.Unstructured, error) {
	name, content := types.NamespacedName{Namespace: want.Namespace, Name: want.Name}, map[string]any{}
	u := &unstructured.Unstructured{Object: map[string]any{"data": content}}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(want.Kind))
	var annotations map[string]string
	if want.Kind == secretKind {
		s := &corev1.Secret{}
		if err := r.Live.Get(ctx, name, s); err != nil {
			return nil, err
		}
		for _, k := range want.Keys {
			if v, has := s.Data[k]; has {
				content[k] = base64.StdEncoding.EncodeToString(v)
			}
		}
		annotations, u.Object["type"] = s.Annotations, string(corev1.SecretTypeOpaque)
	} else {
		m := &corev1.ConfigMap{}
		if err := r.Live.Get(ctx, name, m); err != nil {
			return nil, err
		}
		for _, k := range want.Keys {
			if v, has := m.Data[k]; has {
				content[k] = v
			}
		}
		annotations = m.Annotations
	}
	if !slices.Contains(render.SharedWith(annotations), namespace) {
		return nil, errUnshared
	}
	return u, nil
}
