// SPDX-License-Identifier: Apache-2.0

// Package clusterreader reads one cluster from a live hub: what package explain explains, and package tree shows.
package clusterreader

import (
	"context"
	"fmt"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// Read reads everything about a cluster. If the caller may not read something, that is noted, and is not an error. own is a namespace that
// is read too if the caller may not read all of them; it may be empty.
func Read(ctx context.Context, r *live.Reader, reg *hubv1.ClusterRegistration, own string, now time.Time) (*explain.Input, error) {
	g := begin(ctx, r, reg, now)
	g.own, g.in.Document, g.in.Revision = own, g.document, g.revision
	return g.in, g.read(g.origin, g.teams, g.sets, g.deliveries, g.flux)
}

type gatherer struct {
	*live.Reader
	ctx       context.Context
	in        *explain.Input
	documents map[place]document.Document
	own       string
	// only is the one namespace that is read; empty for all.
	only string
	// refused are the namespaces in which the caller may not list the kind that was listed last.
	refused []string
}

func begin(ctx context.Context, r *live.Reader, reg *hubv1.ClusterRegistration, now time.Time) *gatherer {
	return &gatherer{Reader: r, ctx: ctx, documents: map[place]document.Document{},
		in: &explain.Input{Registration: reg, Shared: r.Hub, Now: now}}
}

func (g *gatherer) read(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// note records something that is missing from the answer.
func (g *gatherer) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(g.in.Notes, text) {
		g.in.Notes = append(g.in.Notes, text)
	}
}

// list lists a kind in all namespaces. If the caller may not do that, it lists only the namespaces whose sets reach
// the cluster, and the caller's own. It calls take after each list.
func (g *gatherer) list(what string, list client.ObjectList, take func(), opts ...client.ListOption) error {
	g.refused = nil
	err := g.Client.List(g.ctx, list, append([]client.ListOption{client.InNamespace(g.only)}, opts...)...)
	switch {
	case err == nil:
		take()
		return nil
	case meta.IsNoMatchError(err):
		g.note("this API server has no %s", what)
		return nil
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("list the %s: %w", what, err)
	case g.only != "":
		g.note("you may not list the %s in namespace %s, so nothing is said about them", what, g.only)
		return nil
	}
	reach := append(slices.Clone(g.Hub.PlatformNamespaces), g.in.Registration.Namespace)
	namespaces := slices.Clone(reach)
	if g.own != "" {
		namespaces = append(namespaces, g.own)
	}
	slices.Sort(namespaces)
	for _, ns := range slices.Compact(namespaces) {
		err := g.Client.List(g.ctx, list, append([]client.ListOption{client.InNamespace(ns)}, opts...)...)
		switch {
		case err == nil:
			take()
		case apierrors.IsForbidden(err) && !slices.Contains(reach, ns):
		case apierrors.IsForbidden(err):
			g.refused = append(g.refused, ns)
			g.note("you may not list the %s in namespace %s, so nothing is said about them", what, ns)
		default:
			return fmt.Errorf("list the %s in namespace %s: %w", what, ns, err)
		}
	}
	return nil
}

func (g *gatherer) teams() error {
	list := &hubv1.TeamList{}
	err := g.list("Teams", list, func() { g.in.Teams = append(g.in.Teams, list.Items...) })
	g.in.TeamsUnread = slices.ContainsFunc(g.refused, g.Hub.IsPlatform) // a Team counts only there
	return err
}

func (g *gatherer) sets() error {
	list := &hubv1.AddonSetList{}
	return g.list("AddonSets", list, func() { g.in.Sets = append(g.in.Sets, list.Items...) })
}

func (g *gatherer) clusterKey() string {
	return identity.ClusterKey(g.Hub.HubID, client.ObjectKeyFromObject(g.in.Registration))
}

// deliveries reads the deliveries to the cluster, by its name and not by its cluster key: with a wrong --hub-id, the
// key would find nothing, without a word.
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
		g.note("%d AddonDeliveries to this cluster are those of a hub with another id than %q, and are left out; --hub-id says "+
			"which hub to look at", others, g.Hub.HubID)
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
		return nil, fmt.Errorf("you may not read ControllerRevision %s/%s, so it is not known who set what", namespace, name)
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
