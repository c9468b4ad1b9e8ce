// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"github.com/chandler-hub/chandler/controllers/delivery/copies"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/internal/plan"
)

// cluster is a cluster in one pass: what was observed, what is to be done, and what comes of it.
type cluster struct {
	*copies.Cluster
	// mayResume is true once something of this cluster has been resumed.
	mayResume bool
	// announced are the objects that are orphaned: what each leaves, or why that could not be written into the status.
	announced map[plan.Key]outcome
}

// delivery is one AddonDelivery in a pass.
type delivery = planned.Delivery

// newCluster begins to carry out what is to be done on a cluster.
func newCluster(c *planned.Cluster) *cluster {
	return &cluster{Cluster: copies.Begin(c)}
}

// reader returns what reads a cluster.
func (r *Reconciler) reader() *observed.Reader {
	return &observed.Reader{Client: r.Client, Live: r.Live, Config: r.Config, Origins: r.Origins, Programs: r.Programs, Clock: r.Clock,
		Tenure: r.Tenure, Sightings: &r.sightings, Ledger: &r.ledger, Looks: &r.looks}
}

// planner returns what decides what is to be done.
func (r *Reconciler) planner() *planned.Planner {
	return &planned.Planner{Client: r.Client, Live: r.Live, Config: r.Config, Shared: r.Shared, Reader: r.reader(), Documents: &r.documents,
		Memory: &r.memory}
}

// keeper returns what keeps the copies.
func (r *Reconciler) keeper() *copies.Keeper {
	return &copies.Keeper{Client: r.Client, Live: r.Live, Config: r.Config, Reader: r.reader(), Documents: &r.documents}
}
