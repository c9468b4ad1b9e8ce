// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/tree"
)

// Tree reads what hangs on a cluster: its deliveries and their Flux objects, and nothing of other clusters. The notes say what could
// not be read.
func (r *Reader) Tree(ctx context.Context, reg *hubv1.ClusterRegistration, now time.Time) (*tree.Cluster, []string, error) {
	g := &gatherer{Reader: r, ctx: ctx, documents: map[place]render.Document{}, in: &explain.Input{Registration: reg, Shared: r.Hub, Now: now}}
	for _, step := range []func() error{g.deliveries, g.flux} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	return &tree.Cluster{Registration: reg, Deliveries: g.in.Deliveries, Releases: g.in.Releases, Kustomizations: g.in.Kustomizations,
		FluxUnread: g.in.FluxUnread, Now: now}, g.in.Notes, nil
}
