// SPDX-License-Identifier: Apache-2.0

package clusterreader

import (
	"context"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/tree"
)

// Tree reads what hangs on a cluster: its deliveries and their Flux objects, and nothing of other clusters. The notes say what could
// not be read.
func Tree(ctx context.Context, r *live.Reader, reg *hubv1.ClusterRegistration, now time.Time) (*tree.Cluster, []string, error) {
	g := begin(ctx, r, reg, now)
	if err := g.read(g.deliveries, g.flux); err != nil {
		return nil, nil, err
	}
	return &tree.Cluster{Registration: reg, Deliveries: g.in.Deliveries, Releases: g.in.Releases, Kustomizations: g.in.Kustomizations,
		FluxUnread: g.in.FluxUnread, Now: now}, g.in.Notes, nil
}
