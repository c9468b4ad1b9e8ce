// SPDX-License-Identifier: Apache-2.0

// Package reach reads how far the AddonSets of a namespace reach: whether it is a platform namespace, or which Team
// governs it.
package reach

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/team"
)

// Of returns how far the sets of a namespace reach.
func Of(ctx context.Context, c client.Reader, config *hubconfig.Config, namespace string) (match.Reach, error) {
	if config.IsPlatform(namespace) {
		return match.Reach{Namespace: namespace, Platform: true}, nil
	}
	list := &hubv1.TeamList{}
	if err := c.List(ctx, list, client.MatchingFields{index.Governs: namespace}, client.UnsafeDisableDeepCopy); err != nil {
		return match.Reach{}, fmt.Errorf("look for the Team that governs namespace %s: %w", namespace, err)
	}
	return team.Reach(namespace, list.Items, config.IsPlatform), nil
}

// Acts returns whether Flux may act on a cluster for the sets of a namespace: they reach it, or their Team has lost it
// and still has its rights there. Those are in a platform namespace. In its own, a team can forge what looks as if the
// hub had made it for any cluster. It reads live.
func Acts(ctx context.Context, live client.Reader, config *hubconfig.Config, from match.Reach,
	reg *hubv1.ClusterRegistration) (bool, error) {
	if from.To(reg) || !from.ByTeam() {
		return from.To(reg), nil
	}
	key := client.ObjectKeyFromObject(reg)
	err := live.Get(ctx, team.Rights(from.Team, key), &hubv1.AddonDelivery{})
	if apierrors.IsNotFound(err) { // somebody may have deleted that one as well, and it is about to be made again
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind))
		name := identity.FluxObject(config.HubID, key, team.SetName(from.Team.Name))
		err = live.Get(ctx, types.NamespacedName{Namespace: from.Team.Namespace, Name: name}, object)
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for the rights of Team %s/%s on cluster %s: %w", from.Team.Namespace, from.Team.Name, key, err)
	}
	return err == nil, nil
}
