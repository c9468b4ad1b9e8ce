// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

func (r *Reader) gatherObjects(ctx context.Context, c *Cluster) error {
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, c.Key))
	if err != nil {
		return err
	}
	for _, obj := range objects {
		ours, err := r.ours(ctx, c, obj)
		if err != nil {
			return err
		}
		if !ours {
			continue
		}
		hr, ok := obj.(*helmv2.HelmRelease)
		if !ok {
			r.observe(c, obj, fluxspec.KustomizationKind)
			continue
		}
		o := r.observe(c, hr, fluxspec.HelmReleaseKind)
		if latest := hr.Status.History.Latest(); latest != nil {
			o.Installed = latest.ChartName
		}
		if o.Chart, err = r.chartOf(ctx, hr); err != nil {
			return err
		}
	}
	return r.gatherForeign(ctx, c)
}

// gatherForeign finds the HelmReleases that people wrote for this cluster: those with the kubeconfig that it is registered
// with.
func (r *Reader) gatherForeign(ctx context.Context, c *Cluster) error {
	if c.Registration == nil || c.Registration.Status.Credential == nil || c.Unprobed() {
		return nil
	}
	list := &helmv2.HelmReleaseList{}
	secret := c.Key.Namespace + "/" + c.Registration.Status.Credential.SecretName
	if err := r.Client.List(ctx, list, client.MatchingFields{index.KubeConfigSecret: secret}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HelmReleases of others: %w", err)
	}
	for i := range list.Items {
		hr := &list.Items[i]
		c.Foreign = append(c.Foreign, assembly.Foreign{Key: KeyOf(hr, fluxspec.HelmReleaseKind), Release: assembly.ReleaseOf(hr)})
	}
	return nil
}

func (r *Reader) observe(c *Cluster, obj client.Object, kind string) *Object {
	a := obj.GetAnnotations()
	k, is := KeyOf(obj, kind), assembly.LiveOf(obj)
	o := &Object{State: r.Sightings.settled(obj.GetUID(), fluxstate.Of(obj)), UID: obj.GetUID(), Version: obj.GetResourceVersion(),
		Uses: index.UsesOf(obj), Reads: index.ReadsOf(obj), Delivery: is.Delivery, Kept: is.Kept,
		Orphan: a[hubv1.DeletionPolicyAnnotation] == string(hubv1.DeletionPolicyOrphan)}
	if d := obj.GetDeletionTimestamp(); d != nil {
		o.Deleted = d.Time
	}
	o.Account = accountOf(obj)
	o.Observed = plan.Observed{
		Key: k, Addon: is.Addon, Set: is.Set, Hash: is.Hash, Labels: obj.GetLabels(),
		Generation: obj.GetGeneration(), Deleting: o.State.Deleting, Suspended: o.State.Suspended, Release: is.Release,
		InstalledAs: index.InstalledAs(obj),
	}
	if kustomization, ok := obj.(*kustomizev1.Kustomization); ok {
		o.Applies(kustomization, r.Sightings.Succeeded(kustomization))
	}
	_, annotated := a[hubv1.SuspendedAnnotation]
	o.Held = annotated && o.Suspended // there is nothing to resume otherwise, whatever wrote that
	o.Replaced = c.Replaced(a[hubv1.ClusterUIDAnnotation])
	o.DependsOn = flux.ParseDependsOn(a[hubv1.DependsOnAnnotation])
	if d := c.delivery(k.Namespace, o.Delivery); d != nil {
		if s := d.Addon(o.Addon); s != nil && s.Object == k.Name && s.Kind == kind {
			o.Applied = s.AppliedGeneration
		}
	}
	o.Applied = r.Ledger.applied(k, obj.GetUID(), obj.GetGeneration(), o.Applied)
	c.Objects[k] = o
	return o
}

// accountOf returns the ServiceAccount that Flux acts as on the cluster.
func accountOf(obj client.Object) string {
	switch o := obj.(type) {
	case *kustomizev1.Kustomization:
		return o.Spec.ServiceAccountName
	case *helmv2.HelmRelease:
		return o.Spec.ServiceAccountName
	}
	return ""
}

// chartOf returns the name of the chart that one of the hub's HelmReleases asks for, from the HelmChart that the hub
// made of its template, or the hub's own chart; "" if it refers to something else.
func (r *Reader) chartOf(ctx context.Context, hr *helmv2.HelmRelease) (string, error) {
	ref := hr.Spec.ChartRef
	if ref == nil {
		return "", nil
	}
	key := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, hr.Namespace), Name: ref.Name}
	switch ref.Kind {
	case sourcev1.OCIRepositoryKind:
		return r.ownChart(ctx, key)
	case sourcev1.HelmChartKind:
	default:
		return "", nil
	}
	chart := &sourcev1.HelmChart{}
	if err := r.Client.Get(ctx, key, chart, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if chart.Spec.SourceRef.Kind != sourcev1.HelmRepositoryKind {
		return "", nil
	}
	return path.Base(chart.Spec.Chart), nil
}

// ownChart returns the name of the hub's own chart if a source is of it, in whatever version; "" if not.
func (r *Reader) ownChart(ctx context.Context, key types.NamespacedName) (string, error) {
	source := &sourcev1.OCIRepository{}
	if err := r.Client.Get(ctx, key, source, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if ref := source.Spec.Reference; ref != nil && key.Name == identity.ChartRepository(r.Config.HubID, ref.Digest) {
		return r.Config.Chart.Name, nil
	}
	return "", nil
}

// ObjectsLeft returns a cluster's Flux objects in a namespace.
func (r *Reader) ObjectsLeft(ctx context.Context, c *Cluster, namespace string) ([]metav1.PartialObjectMetadata, error) {
	if _, err := r.ReachOf(ctx, c, namespace); err != nil {
		return nil, err
	}
	var left []metav1.PartialObjectMetadata
	for kind, gv := range map[string]string{
		fluxspec.HelmReleaseKind: helmv2.GroupVersion.String(), fluxspec.KustomizationKind: kustomizev1.GroupVersion.String(),
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: kind + "List"}}
		err := r.Live.List(ctx, list, client.InNamespace(namespace),
			client.MatchingLabels{hubv1.ClusterKeyLabel: identity.ClusterKey(r.Config.HubID, c.Key)})
		if err != nil {
			return nil, fmt.Errorf("look for what is left: %w", err)
		}
		left = append(left, slices.DeleteFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
			return !c.made(&o)
		})...)
	}
	return left, nil
}
