// SPDX-License-Identifier: Apache-2.0

// Package planned is what is to be done: it renders what a cluster's deliveries want, settles which of them has what, and returns a step
// for each Flux object. It writes nothing. It takes what package observed has read, and package delivery carries the steps out.
package planned

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// Cluster is a cluster with what is to be done there.
type Cluster struct {
	*observed.Cluster
	Deliveries []*Delivery
	// Awaited are objects that no delivery wants now. They stay, because an add-on that cannot be delivered yet is to
	// take them over.
	Awaited map[plan.Key]string
	// Yields are objects that would stay as they are, but must go, because another set delivers what they have.
	Yields map[plan.Key]bool
}

// Delivery is one AddonDelivery, with what is to be delivered.
type Delivery struct {
	*observed.Delivery
	// Stays names the add-ons of a frozen delivery that have an object.
	Stays map[string]bool
	// target is what the delivery is rendered for.
	target render.Target
	// Result is what the delivery renders to; nil if it cannot be rendered.
	Result *render.Result
	// Unreadable are the overrides and variables of the cluster's owner that cannot be read.
	Unreadable []string
	// assembly.Portion is what it may deliver.
	assembly.Portion
	// whole renders the result again, with the bodies that memory does not keep.
	whole func() (*render.Result, error)
}

// Planned returns what is planned for a cluster, for those who know more of it.
func (c *Cluster) Planned() *Cluster { return c }

// Planner decides what is to be done on a cluster.
type Planner struct {
	Client client.Client
	Live   client.Reader
	Config *hubconfig.Config
	Shared *sharedobjects.Keeper

	Reader    *observed.Reader
	Documents *documents.Reader
	Memory    *Memory
}

// Begin begins the plan of a cluster.
func Begin(seen *observed.Cluster) *Cluster {
	c := &Cluster{Cluster: seen}
	for _, d := range seen.Deliveries {
		c.Deliveries = append(c.Deliveries, &Delivery{Delivery: d})
	}
	return c
}

// Delivery returns the delivery with a name, or nil.
func (c *Cluster) Delivery(namespace, name string) *Delivery {
	for _, d := range c.Deliveries {
		if d.Namespace == namespace && d.Name == name {
			return d
		}
	}
	return nil
}

// fail is that for a delivery that may have been rendered.
func (d *Delivery) fail(err error) {
	d.Result = nil
	d.Delivery.Fail(err)
}
