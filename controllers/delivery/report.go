// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"slices"

	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
)

// report sets the status of one delivery, in memory. pass is what snapshot returned.
func (c *cluster) report(d *delivery, pass *report.Cluster) {
	after, ready := report.Status(pass, c.reported(d))
	d.Status = after
	ready.Message += d.reportRefused(c.now) + c.reportDeselected(d) + c.reportHeld(d) + d.reportOmitted()
	status.Summarize(d.AddonDelivery, ready, c.now)
}

// snapshot returns what the status of each of the cluster's deliveries is made from.
func (c *cluster) snapshot(l *ledger, steps []plan.Step, outcomes map[plan.Key]outcome) *report.Cluster {
	pass := &report.Cluster{
		Now: c.now, Since: c.since(), Registration: c.key, Registered: c.registration != nil, Answered: c.answered(),
		Reachable: c.reachable(), Unprobed: c.unprobed(), Suspended: c.suspended(),
		Objects: make(map[plan.Key]*report.Object, len(c.objects)), Steps: make([]report.Step, 0, len(steps)),
		Removed: l.wasRemoved,
	}
	if c.registration != nil {
		pass.Nodes = c.registration.Status.Nodes
	}
	for k, o := range c.objects {
		pass.Objects[k] = &report.Object{
			Observed: o.Observed, UID: o.uid, Delivery: o.delivery, State: o.state, Awaited: c.awaited[k], Yields: c.yields[k],
			Lacks: o.lacks != "" && !c.makes(o.lacks), Refusal: o.refusal,
		}
	}
	for _, s := range steps {
		step := report.Step{Step: s, Outcome: outcomes[s.Key].reported()}
		if d, w := c.wanted(s.Key); d != nil {
			step.By, step.Wanted = key{Namespace: d.Namespace, Name: d.Name}, w
		}
		pass.Steps = append(pass.Steps, step)
	}
	return pass
}

// makes returns whether the hub makes a source or chart for what it delivers here, as index.Source writes it.
func (c *cluster) makes(use string) bool {
	return slices.ContainsFunc(c.deliveries, func(d *delivery) bool {
		return d.result != nil && slices.ContainsFunc(d.result.Objects, func(o render.Object) bool {
			return slices.ContainsFunc(o.Shared, func(s render.Shared) bool { return sourceOf(s) == use })
		})
	})
}

// sourceOf names a shared object as index.Source writes it.
func sourceOf(s render.Shared) string {
	return index.Source(s.Object.GetKind(), s.Object.GetNamespace(), s.Object.GetName())
}

func (o outcome) reported() report.Outcome {
	return report.Outcome{
		Applied: o.applied, Left: o.left, Err: o.err,
		NotOwned: errors.Is(o.err, apply.ErrNotOwned), NoMirror: errors.Is(o.err, errNoMirror),
		Passes: o.err != nil && apply.Passes(o.err), Conflict: o.err != nil && apply.Lagged(o.err),
	}
}

// reported returns a delivery as its status is made from it.
func (c *cluster) reported(d *delivery) *report.Delivery {
	return &report.Delivery{
		AddonDelivery: d.AddonDelivery, Before: d.before.Status.Addons,
		Result: d.result, Portion: d.Portion, Frozen: d.frozen, Stays: d.stays,
		Leaving: d.leaving, WantedAgain: d.wantedAgain, Abandoned: c.abandoned(d),
		Failed: d.failed != nil, Reason: d.reason, Why: d.unrenderable,
	}
}
