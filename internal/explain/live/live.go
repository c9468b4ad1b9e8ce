// SPDX-License-Identifier: Apache-2.0

// Package live reads from a hub what package explain looks at. It reads only, and each object once. Nothing secret leaves it.
package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// Scheme knows the kinds that are read.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Reader reads from one hub.
type Reader struct {
	Client client.Client
	// HubID, PlatformNamespaces and Chart are the hub's flags.
	HubID              string
	PlatformNamespaces []string
	Chart              render.ManifestChart
}

// maxNames is how many names an error lists.
const maxNames = 20

// Find returns the registration that a name, or namespace/name, means. An empty namespace stands for all.
func (r *Reader) Find(ctx context.Context, name, namespace string) (*hubv1.ClusterRegistration, error) {
	if ns, rest, ok := strings.Cut(name, "/"); ok {
		if ns == "" || rest == "" || strings.Contains(rest, "/") {
			return nil, fmt.Errorf("%q is no cluster: write NAME or NAMESPACE/NAME", name)
		}
		if namespace != "" && namespace != ns {
			return nil, fmt.Errorf("cluster %s is not in namespace %q: leave out -n, or write the name alone", name, namespace)
		}
		namespace, name = ns, rest
	}
	list := &hubv1.ClusterRegistrationList{}
	err := r.Client.List(ctx, list, client.InNamespace(namespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("this API server has no ClusterRegistrations, so it is no Chandler hub: choose another one by --context or --kubeconfig")
	case apierrors.IsForbidden(err) && namespace == "":
		return nil, fmt.Errorf("list the ClusterRegistrations of all namespaces: %w; write -n NAMESPACE for a namespace that you may read", err)
	case err != nil:
		return nil, fmt.Errorf("list the ClusterRegistrations: %w", err)
	}
	return choose(list.Items, name, namespace)
}

func choose(regs []hubv1.ClusterRegistration, name, namespace string) (*hubv1.ClusterRegistration, error) {
	var found []*hubv1.ClusterRegistration
	var known, candidates []string
	for i := range regs {
		full := regs[i].Namespace + "/" + regs[i].Name
		known = append(known, full)
		if regs[i].Name == name {
			found, candidates = append(found, &regs[i]), append(candidates, full)
		}
	}
	where := "on this hub"
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q", namespace)
	}
	slices.Sort(known)
	slices.Sort(candidates)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("there are %d clusters called %q: %s; write one of these, or -n NAMESPACE", len(found), name, status.List(candidates, maxNames))
	case len(known) == 0:
		return nil, fmt.Errorf("there is no ClusterRegistration %s: label an origin %s: \"true\", or leave out the namespace to look in all", where, hubv1.RegisterLabel)
	}
	return nil, fmt.Errorf("there is no cluster %q %s; there are %s", name, where, status.List(known, maxNames))
}

// Read reads everything that belongs to a cluster.
func (r *Reader) Read(ctx context.Context, reg *hubv1.ClusterRegistration, now time.Time) (*explain.Input, error) {
	g := &gatherer{Reader: r, ctx: ctx, documents: map[place]render.Document{}, in: &explain.Input{
		Registration: reg, HubID: r.HubID, PlatformNamespaces: r.PlatformNamespaces, Chart: r.Chart, Now: now,
	}}
	g.in.Document, g.in.Revision = g.document, g.revision
	for _, step := range []func() error{g.origin, g.sets, g.deliveries, g.flux} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g.in, nil
}

type gatherer struct {
	*Reader
	ctx       context.Context
	in        *explain.Input
	documents map[place]render.Document
}

// note tells of something that is missing from the answer.
func (g *gatherer) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(g.in.Notes, text) {
		g.in.Notes = append(g.in.Notes, text)
	}
}

// list lists a kind in all namespaces, or, for somebody who may not, in those whose sets reach the cluster. take is called for
// each list that comes.
func (g *gatherer) list(what string, list client.ObjectList, take func(), opts ...client.ListOption) error {
	err := g.Client.List(g.ctx, list, opts...)
	switch {
	case err == nil:
		take()
		return nil
	case meta.IsNoMatchError(err):
		g.note("this API server has no %s", what)
		return nil
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("list the %s: %w", what, err)
	}
	namespaces := append(slices.Clone(g.PlatformNamespaces), g.in.Registration.Namespace)
	slices.Sort(namespaces)
	for _, ns := range slices.Compact(namespaces) {
		err := g.Client.List(g.ctx, list, append([]client.ListOption{client.InNamespace(ns)}, opts...)...)
		switch {
		case err == nil:
			take()
		case apierrors.IsForbidden(err):
			g.note("you may not list the %s in namespace %s, so nothing is said about them", what, ns)
		default:
			return fmt.Errorf("list the %s in namespace %s: %w", what, ns, err)
		}
	}
	return nil
}

func (g *gatherer) sets() error {
	list := &hubv1.AddonSetList{}
	return g.list("AddonSets", list, func() { g.in.Sets = append(g.in.Sets, list.Items...) })
}

func (g *gatherer) clusterKey() string {
	return identity.ClusterKey(g.HubID, client.ObjectKeyFromObject(g.in.Registration))
}

// deliveries reads those of the cluster, by its name and not by its key: a wrong --hub-id would find nothing, and say nothing.
func (g *gatherer) deliveries() error {
	reg := g.in.Registration
	list := &hubv1.AddonDeliveryList{}
	others := 0
	err := g.list("AddonDeliveries", list, func() {
		for i := range list.Items {
			d := &list.Items[i]
			switch {
			case d.Spec.RegistrationRef.Key() != client.ObjectKeyFromObject(reg):
			case d.Labels[hubv1.ClusterKeyLabel] != g.clusterKey():
				others++
			default:
				g.in.Deliveries = append(g.in.Deliveries, *d)
			}
		}
	}, client.MatchingLabels{hubv1.ClusterLabel: identity.LabelValue(reg.Name)})
	if others > 0 {
		g.note("%d AddonDeliveries to this cluster are those of a hub with another id than %q, and are left out; --hub-id says which hub to look at", others, g.HubID)
	}
	return err
}

func (g *gatherer) revision(namespace, name string) (*appsv1.ControllerRevision, error) {
	revision := &appsv1.ControllerRevision{}
	err := g.Client.Get(g.ctx, types.NamespacedName{Namespace: namespace, Name: name}, revision)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not read ControllerRevision %s/%s, so who set what cannot be told", namespace, name)
	case err != nil:
		return nil, fmt.Errorf("read ControllerRevision %s/%s: %w", namespace, name, err)
	}
	return revision, nil
}

func (g *gatherer) flux() error {
	before := len(g.in.Notes)
	key := client.MatchingLabels{hubv1.ClusterKeyLabel: g.clusterKey()}
	releases := &helmv2.HelmReleaseList{}
	if err := g.list("HelmReleases", releases, func() { g.in.Releases = append(g.in.Releases, releases.Items...) }, key); err != nil {
		return err
	}
	kustomizations := &kustomizev1.KustomizationList{}
	err := g.list("Kustomizations", kustomizations, func() { g.in.Kustomizations = append(g.in.Kustomizations, kustomizations.Items...) }, key)
	g.in.FluxUnread = len(g.in.Notes) > before
	return err
}
