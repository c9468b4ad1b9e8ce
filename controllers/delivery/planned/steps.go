// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"cmp"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Steps returns what is to be done with each object. What a Team's sets deliver has a plan of its own.
func (c *Cluster) Steps(config *hubconfig.Config) []plan.Step {
	var out []plan.Step
	c.Awaited = map[plan.Key]string{}
	for _, scope := range c.Scopes() {
		out = append(out, plan.Compute(c.planInput(scope, config))...)
	}
	return out
}

// planInput returns what the plan of a scope is computed from.
func (c *Cluster) planInput(scope string, config *hubconfig.Config) plan.Input {
	in := plan.Input{MayCreate: c.Answered(), Frozen: map[plan.Key]bool{}, Platform: config.IsPlatform}
	if s := c.Suspended(); s != nil {
		in.Suspend = s.Message
	}
	for _, d := range c.Deliveries {
		if c.Scope(d.Namespace) != scope {
			continue
		}
		for i := range d.Wanted {
			w := &d.Wanted[i]
			want := Desired(w)
			want.Labels, want.Recorded = render.Labels(d.target, w.Addon), d.recorded(w)
			if d.DeletedByHand() { // it may be gone already, and the set with it
				want.Gate = cmp.Or(want.Gate, "waits for its AddonDelivery, which was deleted, to be made again")
			}
			if o := c.Objects[want.Key]; o != nil {
				_, to, _ := want.Reinstall(&o.Observed)
				want.MayReinstall = c.mayReinstall(d, guard.Reinstalled(string(o.UID), to.String()))
			}
			in.Desired = append(in.Desired, want)
		}
	}
	c.keepMoved(scope, in.Desired, config)
	for k, o := range c.Objects {
		if c.Scope(cmp.Or(o.Adopter, k.Namespace)) != scope {
			continue // what is adopted is in the plan of the set that adopts it, whichever Team governs its namespace
		}
		o.NeededBy = c.neededBy(o, config)
		in.Observed = append(in.Observed, o.Observed)
		d := c.Delivery(k.Namespace, o.Delivery)
		in.Frozen[k] = !o.Foreign && !c.Yields[k] &&
			(d == nil || !d.Leaving && (d.holds(o.Addon) || c.Awaited[k] != "" || d.Frozen && !o.Deleting && !d.wants(k) && d.Has(o.Addon)))
	}
	in.Removal = func(o plan.Observed) teardown.Decision {
		if d := c.Delivery(o.Key.Namespace, c.Objects[o.Key].Delivery); d != nil && d.Failed != nil {
			return teardown.Decision{Mode: teardown.Hold, Reason: d.Unrenderable}
		}
		return teardown.Addon(c.Removal(o, config))
	}
	return in
}

// keepMoved notes the objects that stay until the add-on that is to take them over can be delivered, unless another add-on goes on with
// them. A platform set does not wait for a tenant's add-on: the tenant would have a veto.
func (c *Cluster) keepMoved(scope string, desired []plan.Desired, config *hubconfig.Config) {
	for _, d := range c.Deliveries {
		if c.Scope(d.Namespace) != scope {
			continue
		}
		for k, why := range d.Keeps {
			vetoed := config.IsPlatform(k.Namespace) && !config.IsPlatform(d.Namespace)
			if !vetoed && !slices.ContainsFunc(desired, func(o plan.Desired) bool { return o.Key == k }) {
				c.Awaited[k] = why
			}
		}
	}
}

// Desired returns what the plan needs to know of a wanted object, without the observed one.
func Desired(w *assembly.Wanted) plan.Desired {
	return plan.Desired{
		Key: assembly.Key(&w.Object), Addon: w.Addon, Hash: w.Hash, Release: w.Release, Chart: w.Chart, Content: assembly.Content(&w.Object),
		Predecessors: w.Predecessors, Gate: w.Gate, Once: w.Once,
	}
}

// recorded returns whether the status says which release an add-on goes on with, or its name says so.
func (d *Delivery) recorded(w *assembly.Wanted) bool {
	s := d.Addon(w.Addon)
	return w.DefaultRelease || w.Kind != fluxspec.HelmReleaseKind || s != nil && s.Release != nil && *s.Release == w.Release
}

// wants returns whether a delivery delivers an object.
func (d *Delivery) wants(k plan.Key) bool {
	return slices.ContainsFunc(d.Wanted, func(w assembly.Wanted) bool { return assembly.Key(&w.Object) == k })
}

// holds returns whether an add-on stays as it is, because it is not known what it should be.
func (d *Delivery) holds(addon string) bool {
	return assembly.Held(&assembly.Delivery{Result: d.Result, Stays: d.Stays}, addon)
}

// mayReinstall returns whether the removal guard of the set grants a reinstall. What the set does not want on the cluster any more
// leaves as it is: another set may be about to go on with it.
func (c *Cluster) mayReinstall(d *Delivery, removal string) bool {
	return !c.Unwanted(d.Delivery) && d.Granted(removal)
}

// Removal returns the facts that decide how an object leaves.
func (c *Cluster) Removal(o plan.Observed, config *hubconfig.Config) teardown.Facts {
	obj := c.Objects[o.Key]
	f := teardown.Facts{
		RegistrationFound: c.Registration != nil, Unprobed: c.Unprobed(), Deleted: obj.Deleted, Orphan: obj.Orphan, Since: c.Now, Now: c.Now,
		Grace: config.TeardownGrace, Settle: config.RemovalDelay, Began: c.Began, Awaited: c.Awaited[o.Key],
	}
	d, looks := c.Delivery(o.Key.Namespace, obj.Delivery), tenure.Looks
	if d != nil {
		f.Settle = c.settle(d, o.Addon, config)
		f.Guarded = d.guarded(obj)
		if d.ForGood(o.Key, o.Addon) {
			f.Orphaned = "it has been told of as orphaned"
		}
		f.Orphan = f.Orphan || d.Set != nil && d.Set.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		switch s := d.Addon(o.Addon); {
		case d.Leaving:
			f.Since = d.Before.DeletionTimestamp.Time // the API server's answer to a write may be another delivery
		case s != nil && report.Leaves(s) && s.Since != nil:
			f.Since = s.Since.Time
		}
	}
	if reg := c.Registration; reg != nil {
		f.Orphan = f.Orphan || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		f.Paused = c.Paused() && !status.Unregistered(reg)
		if u := status.Find(reg, hubv1.UnregisteringCondition); u != nil && hubv1.OrphansAddons(u.Reason) {
			f.Orphaned = u.Message
		}
		f.Silent, f.Rightless = c.Silent(), c.Rightless(o.Key.Namespace)
		f.Reachable = f.Silent.IsZero()
		if u := status.Find(reg, hubv1.UnregisteringCondition); u != nil && u.Reason == hubv1.OriginLostReason && d != nil && d.Leaving {
			f.Orphaned = u.Message // the guard has let the delivery go, or it would not be leaving
		}
		if drain.Requested(reg) {
			f.Grace = max(f.Grace, drain.Timeout(reg.Spec.DrainBeforeDeletion)) // what is orphaned is not drained
			looks += drain.Timeout(reg.Spec.DrainBeforeDeletion)                // which a hub that starts counts anew
		}
	}
	if d != nil && d.Leaving && d.Orphaned() && !f.Orphan && f.Orphaned == "" {
		f.Orphaned = "its add-ons were to stay when its delivery was withdrawn"
	}
	if asked := c.Began.Add(looks - f.Grace); !f.Reachable && f.Silent.Before(c.Began) && asked.After(f.Silent) {
		f.Silent = asked // while no hub was at work, the cluster was not asked: its grace is not over before the hub has asked
	}
	return f
}

// guarded returns whether the removal guard of the set has still to grant that an object goes. What Flux uninstalls already, no guard can
// hold any more.
func (d *Delivery) guarded(o *observed.Object) bool {
	return (!o.Deleting || o.Suspended) && !d.Granted(guard.Dropped(string(o.UID)))
}

// settle returns how long an add-on that a delivery drops stays. If labels or variables decide that, by a when or an overlay of the set,
// they may come back, as those by which a set selects the cluster may. An override says what its owner wants of this cluster.
func (c *Cluster) settle(d *Delivery, addon string, config *hubconfig.Config) time.Duration {
	if d.Leaving || d.Result == nil {
		return config.RemovalDelay
	}
	base := strings.TrimSuffix(addon, compile.CRDSuffix)
	overridden := c.Registration != nil && slices.ContainsFunc(c.Registration.Spec.Overrides, func(o hubv1.Override) bool {
		return o.Exclude && (o.Name == addon || o.Name == base)
	})
	if overridden || d.Result.Excluded[addon] == "" && d.Result.Excluded[base] == "" {
		return config.RemovalDelay
	}
	return max(config.RemovalDelay, config.DeselectionDelay)
}
