// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"net/netip"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
)

// handWritten reads the Flux objects of all namespaces, and what their clusters may come from. Of Secrets it keeps the
// metadata, and of those that objects name two fingerprints: one of the address and the CA, and one with the user too. It
// returns what the caller may not read, in full sentences.
func (o *Options) handWritten(ctx context.Context) (in folding.Input, notes []string, err error) {
	in.Hub = o.Reader.Hub
	for _, gvk := range []schema.GroupVersionKind{
		helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind), kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind),
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		switch err := o.Client.List(ctx, list); {
		case meta.IsNoMatchError(err):
			notes = append(notes, fmt.Sprintf("this API server has no %s of %s", gvk.Kind, gvk.GroupVersion()))
			continue
		case err != nil:
			return in, nil, fmt.Errorf("list the %ss of all namespaces: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			in.Objects = append(in.Objects, folding.Object{Unstructured: &list.Items[i]})
		}
	}
	if in.Targets, err = o.targets(ctx, in.Objects); err != nil {
		return in, nil, err
	}
	for _, k := range origin.Kinds {
		found, note, err := o.origins(ctx, k)
		if err != nil {
			return in, nil, err
		}
		in.Origins = append(in.Origins, found...)
		if note != "" {
			notes = append(notes, note)
		}
	}
	registrations := &hubv1.ClusterRegistrationList{}
	switch err := o.Client.List(ctx, registrations); {
	case meta.IsNoMatchError(err):
		notes = append(notes, "this API server has no ClusterRegistrations: install the hub before what this prints is applied")
	case err != nil:
		return in, nil, fmt.Errorf("list the ClusterRegistrations of all namespaces: %w", err)
	}
	in.Registrations = registrations.Items
	sets := &hubv1.AddonSetList{}
	if err := o.Client.List(ctx, sets); err != nil && !meta.IsNoMatchError(err) {
		return in, nil, fmt.Errorf("list the AddonSets of all namespaces: %w", err)
	}
	in.Sets = sets.Items
	return in, notes, nil
}

// origins reads the metadata of all origins of a kind. That is enough: a set that is imported reads no origin.
func (o *Options) origins(ctx context.Context, kind origin.Kind) (found []*unstructured.Unstructured, note string, err error) {
	found, err = o.Reader.OriginMetadata(ctx, kind)
	switch {
	case meta.IsNoMatchError(err):
		return nil, "", nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("you may not list the %ss of all namespaces: their labels are not known, and which object a cluster comes from "+
			"is taken from the names", kind.Kind), nil
	case err != nil:
		return nil, "", fmt.Errorf("list the %ss of all namespaces: %w", kind.Kind, err)
	}
	return found, "", nil
}

// targets finds out where the kubeconfigs of objects lead. It keeps nothing of them but fingerprints. A Secret that does not
// exist, or that the caller may not read, is left out.
func (o *Options) targets(ctx context.Context, objects []folding.Object) (map[string]folding.Target, error) {
	out := map[string]folding.Target{}
	for i := range objects {
		u := objects[i].Unstructured
		name, _, _ := unstructured.NestedString(u.Object, "spec", "kubeConfig", "secretRef", "name")
		key, _, _ := unstructured.NestedString(u.Object, "spec", "kubeConfig", "secretRef", "key")
		at := u.GetNamespace() + "/" + name + "/" + key
		if _, known := out[at]; known || name == "" {
			continue
		}
		s := &corev1.Secret{}
		switch err := o.Client.Get(ctx, client.ObjectKey{Namespace: u.GetNamespace(), Name: name}, s); {
		case apierrors.IsForbidden(err):
		case apierrors.IsNotFound(err):
			out[at] = folding.Target{Problem: "does not exist, so it is not known which cluster it is for"}
		case err != nil:
			return nil, fmt.Errorf("read Secret %s/%s: %w", u.GetNamespace(), name, err)
		default:
			out[at] = target(s.Data, key)
		}
	}
	return out, nil
}

// target returns where a kubeconfig leads. What the hub refuses in one is the hub's to say: here everything is allowed.
func target(data map[string][]byte, key string) folding.Target {
	key = kubeconfig.FluxKey(data, key)
	if _, ok := data[key]; !ok {
		return folding.Target{Problem: fmt.Sprintf("has no key %q", key)}
	}
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	config, err := kubeconfig.Parse(data[key], kubeconfig.Rules{AllowedCIDRs: everything, AllowInsecureTLS: true, AllowProxy: true,
		AllowMissingCA: true, AllowHTTP: true, AllowServices: true})
	if err != nil {
		return folding.Target{Problem: fmt.Sprintf("is refused (key %q): %s", key, err)}
	}
	return folding.Target{Fingerprint: config.TargetFingerprint(), Credential: config.Fingerprint()}
}
