// SPDX-License-Identifier: Apache-2.0

// Package rolloutreader reads the rollout of a set from a live hub, for package rolloutview.
package rolloutreader

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/rolloutview"
	"github.com/chandler-hub/chandler/internal/team"
)

// Part reads a part of what belongs to a set.
type Part func(context.Context, *live.Reader, *rolloutview.Input) error

// Read reads parts of what belongs to a set.
func Read(ctx context.Context, r *live.Reader, in *rolloutview.Input, parts ...Part) error {
	for _, part := range parts {
		if err := part(ctx, r, in); err != nil {
			return err
		}
	}
	return nil
}

// Revisions reads the revisions of a set.
func Revisions(ctx context.Context, r *live.Reader, in *rolloutview.Input) error {
	list := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, list, client.InNamespace(in.Set.Namespace), labelled(in.Set)); err != nil {
		return fmt.Errorf("list the ControllerRevisions in namespace %s: %w", in.Set.Namespace, err)
	}
	in.Revisions = slices.DeleteFunc(list.Items, func(r appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&r, in.Set) })
	slices.SortFunc(in.Revisions, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// Deliveries reads the deliveries of a set.
func Deliveries(ctx context.Context, r *live.Reader, in *rolloutview.Input) error {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, client.InNamespace(in.Set.Namespace), labelled(in.Set)); err != nil {
		return fmt.Errorf("list the AddonDeliveries in namespace %s: %w", in.Set.Namespace, err)
	}
	in.Deliveries = list.Items
	return nil
}

// Reach reads how far the set reaches. If the Teams cannot be read, the set counts as one that reaches all clusters.
func Reach(ctx context.Context, r *live.Reader, in *rolloutview.Input) error {
	in.Reach = match.Reach{Namespace: in.Set.Namespace, Platform: true}
	teams := &hubv1.TeamList{}
	if !r.Hub.IsPlatform(in.Set.Namespace) {
		if err := r.Client.List(ctx, teams); err != nil {
			return fmt.Errorf("list the Teams, which say how far the set reaches: %w", err)
		}
	}
	in.Reach = team.Reach(in.Set.Namespace, teams.Items, r.Hub.IsPlatform)
	return nil
}

// Clusters reads which clusters there are, and how far the set reaches.
func Clusters(ctx context.Context, r *live.Reader, in *rolloutview.Input) error {
	if err := Reach(ctx, r, in); err != nil {
		return err
	}
	list := &hubv1.ClusterRegistrationList{}
	err := r.Client.List(ctx, list)
	if apierrors.IsForbidden(err) && !in.Reach.Platform && in.Reach.Team == nil {
		err = r.Client.List(ctx, list, client.InNamespace(in.Set.Namespace)) // it reaches no others
	}
	if err != nil {
		return fmt.Errorf("list the ClusterRegistrations, which say what each cluster is: %w", err)
	}
	in.Registrations = list.Items
	return nil
}

func labelled(set *hubv1.AddonSet) client.MatchingLabels {
	return client.MatchingLabels{hubv1.AddonSetLabel: identity.LabelValue(set.Name)}
}
