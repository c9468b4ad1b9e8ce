// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/controllers/delivery/copies"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
)

// report sets the status of one delivery, in memory. pass is what snapshot returned.
func (c *cluster) report(d *delivery, pass *report.Cluster) {
	after, ready := report.Status(pass, c.reported(d))
	d.Status = after
	ready.Message += reportRefused(d, c.Now) + c.reportDeselected(d) + c.reportHeld(d) + reportOmitted(d)
	status.Summarize(d.AddonDelivery, ready, c.Now)
}

// snapshot returns what the status of each of the cluster's deliveries is made from.
func (c *cluster) snapshot(l *observed.Ledger, steps []plan.Step, outcomes map[plan.Key]outcome) *report.Cluster {
	pass := &report.Cluster{
		Now: c.Now, Since: c.Since(), Registration: c.Key, Registered: c.Registration != nil, Answered: c.Answered(),
		Reachable: c.Reachable(), Unprobed: c.Unprobed(), Suspended: c.Suspended(),
		Objects: make(map[plan.Key]*report.Object, len(c.Objects)), Steps: make([]report.Step, 0, len(steps)),
		Removed: l.WasRemoved,
	}
	if c.Registration != nil {
		pass.Nodes = c.Registration.Status.Nodes
	}
	for k, o := range c.Objects {
		pass.Objects[k] = &report.Object{
			Observed: o.Observed, UID: o.UID, Delivery: o.Delivery, State: o.State, Awaited: c.Awaited[k], Yields: c.Yields[k],
			Lacks: o.Lacks != "" && !c.makes(o.Lacks), Refusal: o.Refusal,
		}
	}
	for _, s := range steps {
		step := report.Step{Step: s, Outcome: outcomes[s.Key].reported()}
		if d, w := c.Wanted(s.Key); d != nil {
			step.By, step.Wanted = types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, w
		}
		pass.Steps = append(pass.Steps, step)
	}
	return pass
}

// makes returns whether the hub makes a source or chart for what it delivers here, as index.Source writes it.
func (c *cluster) makes(use string) bool {
	return slices.ContainsFunc(c.Deliveries, func(d *delivery) bool {
		return d.Result != nil && slices.ContainsFunc(d.Result.Objects, func(o flux.Object) bool {
			return slices.ContainsFunc(o.Shared, func(s flux.Shared) bool { return sourceOf(s) == use })
		})
	})
}

// sourceOf names a shared object as index.Source writes it.
func sourceOf(s flux.Shared) string {
	return index.Source(s.Object.GetKind(), s.Object.GetNamespace(), s.Object.GetName())
}

func (o outcome) reported() report.Outcome {
	return report.Outcome{
		Applied: o.applied, Left: o.left, Err: o.err,
		NotOwned: errors.Is(o.err, apply.ErrNotOwned), NoCopy: errors.Is(o.err, copies.ErrNoCopy),
		Passes: o.err != nil && apply.Passes(o.err), Conflict: o.err != nil && apply.Lagged(o.err),
	}
}

// reported returns a delivery as its status is made from it.
func (c *cluster) reported(d *delivery) *report.Delivery {
	return &report.Delivery{
		AddonDelivery: d.AddonDelivery, Before: d.Before.Status.Addons,
		Result: d.Result, Portion: d.Portion, Frozen: d.Frozen, Stays: d.Stays,
		Leaving: d.Leaving, WantedAgain: d.WantedAgain, Abandoned: c.Abandoned(d.Delivery),
		Failed: d.Failed != nil, Reason: d.UnrenderableReason, Why: d.Unrenderable,
	}
}
