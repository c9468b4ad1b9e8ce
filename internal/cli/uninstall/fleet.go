// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/manifests"
	"github.com/chandler-hub/chandler/internal/register"
	"github.com/chandler-hub/chandler/internal/status"
)

// uninstallManager is the field manager of what `chandler uninstall` changes.
const uninstallManager = "chandler-uninstall"

// fleetOf says what there is of the kinds that a hub serves, such as "3 AddonSets", and which of those that people write Flux applies.
func fleetOf(ctx context.Context, c client.Client) (counts, applied []string, err error) {
	for _, kind := range []string{"AddonSet", "ClusterRegistration", "Team", "AddonDelivery"} {
		n := 0
		err := pagesOf(ctx, c, kind, func(o client.Object) {
			n++
			if o.GetLabels()["kustomize.toolkit.fluxcd.io/name"] != "" && len(applied) < 5 {
				applied = append(applied, fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), o.GetName()))
			}
		})
		if err != nil {
			return nil, nil, err
		}
		if n > 0 {
			counts = append(counts, number(n, kind))
		}
	}
	return counts, applied, nil
}

func number(n int, kind string) string {
	switch {
	case n == 1:
		return "1 " + kind
	case kind == "AddonDelivery":
		return fmt.Sprintf("%d AddonDeliveries", n)
	}
	return fmt.Sprintf("%d %ss", n, kind)
}

// pagesOf takes the metadata of each object of a kind of ours. Without its CRD there is none.
func pagesOf(ctx context.Context, c client.Client, kind string, take func(client.Object)) error {
	next := ""
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(hubv1.GroupVersion.WithKind(kind + "List"))
		err := c.List(ctx, list, client.Limit(500), client.Continue(next))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the objects of kind %s: %w", kind, err)
		}
		for i := range list.Items {
			take(&list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// drain has the hub uninstall the add-ons or orphan them, and unregister the clusters. The sets go before the Teams, whose rights they use.
func (o *Options) drain(ctx context.Context) error {
	if o.Removal.Addons == manifests.Orphan {
		if err := o.orphan(ctx); err != nil {
			return err
		}
	}
	if err := o.deleteAll(ctx, "AddonSet", func(s client.Object) bool { return s.GetLabels()[hubv1.TeamLabel] == "" }); err != nil {
		return err
	}
	if err := o.deleteAll(ctx, "Team", func(client.Object) bool { return true }); err != nil {
		return err
	}
	r := &register.Registrar{Hub: live.Reader{Client: o.Client}, HubConfig: o.config, Out: o.Out, Wait: o.Timeout}
	r.Hub.Hub.HubID = o.hubID
	if err := r.Hub.Hub.Complete(o.Removal.Namespace); err != nil {
		return err
	}
	var names []client.ObjectKey
	err := pagesOf(ctx, o.Client, "ClusterRegistration", func(c client.Object) { names = append(names, client.ObjectKeyFromObject(c)) })
	for _, name := range names {
		d, failed := r.Departure(ctx, name, false, false)
		if failed == nil {
			failed = r.Leave(ctx, d)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("unregister cluster %s: %w", name, failed))
			continue
		}
		fmt.Fprintf(o.Out, "Cluster %s is unregistered\n", name)
	}
	return err
}

// orphan writes into each set that its add-ons stay, and waits until the hub has read it. A Team's set is the hub's own.
func (o *Options) orphan(ctx context.Context) error {
	sets := &hubv1.AddonSetList{}
	if err := o.Client.List(ctx, sets); err != nil {
		return fmt.Errorf("list the AddonSets: %w", err)
	}
	var wanted []*hubv1.AddonSet
	for i := range sets.Items {
		s := &sets.Items[i]
		if s.Labels[hubv1.TeamLabel] != "" {
			continue
		}
		if s.Spec.DeletionPolicy != hubv1.DeletionPolicyOrphan && s.DeletionTimestamp == nil {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionPolicy":"Orphan"}}`))
			if err := o.Client.Patch(ctx, s, patch, client.FieldOwner(uninstallManager)); err != nil {
				return fmt.Errorf("AddonSet %s/%s: %w", s.Namespace, s.Name, err)
			}
			fmt.Fprintf(o.Out, "AddonSet %s/%s: deletionPolicy: Orphan\n", s.Namespace, s.Name)
		}
		wanted = append(wanted, s)
	}
	return o.wait.Until(ctx, func(ctx context.Context) (string, error) {
		for _, s := range wanted {
			now := &hubv1.AddonSet{}
			if err := o.Client.Get(ctx, client.ObjectKeyFromObject(s), now); err != nil {
				if client.IgnoreNotFound(err) == nil {
					continue
				}
				return "", err
			}
			if now.DeletionTimestamp == nil && now.Status.ObservedGeneration < s.Generation {
				return fmt.Sprintf("AddonSet %s/%s: waits until the hub has read it", s.Namespace, s.Name), nil
			}
		}
		return "", nil
	})
}

// deleteAll deletes the objects of a kind, and waits until they are gone.
func (o *Options) deleteAll(ctx context.Context, kind string, which func(client.Object) bool) error {
	var all []client.Object
	err := pagesOf(ctx, o.Client, kind, func(object client.Object) {
		if which(object) {
			all = append(all, object)
		}
	})
	if err != nil {
		return err
	}
	for _, object := range all {
		if err := apply.Delete(ctx, o.Client, object); err != nil {
			return fmt.Errorf("delete %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	err = o.wait.Until(ctx, func(ctx context.Context) (string, error) {
		left, held := 0, ""
		err := pagesOf(ctx, o.Client, kind, func(object client.Object) {
			if which(object) {
				left++
				held = o.held(ctx, object, held)
			}
		})
		if err != nil || left == 0 {
			return "", err
		}
		return fmt.Sprintf("waits until %s gone%s", are(left, kind), held), nil
	})
	if err == nil {
		fmt.Fprintf(o.Out, "%s deleted\n", number(len(all), kind))
	}
	return err
}

func are(n int, kind string) string {
	if n == 1 {
		return number(n, kind) + " is"
	}
	return number(n, kind) + " are"
}

// held says why a set does not go, for the first that the removal guard holds.
func (o *Options) held(ctx context.Context, object client.Object, before string) string {
	if before != "" {
		return before
	}
	set := &hubv1.AddonSet{}
	if o.Client.Get(ctx, client.ObjectKeyFromObject(object), set) != nil {
		return ""
	}
	if c := status.Find(set, hubv1.RemovalsHeldCondition); c != nil && c.Status == metav1.ConditionTrue {
		return fmt.Sprintf("; %s/%s: %s", set.Namespace, set.Name, c.Message)
	}
	return ""
}
