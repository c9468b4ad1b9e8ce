// SPDX-License-Identifier: Apache-2.0

// Package reach reads how far the AddonSets of a namespace reach: whether it is a platform namespace, or which Team
// governs it.
package reach

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/hubconfig"
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
