// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
)

// await notes the objects that stay because an add-on is to take them over and cannot be delivered now, unless
// another add-on delivers the same. A platform set does not wait for a tenant's add-on: the tenant would have a veto.
func (c *cluster) await(scope string, desired []plan.Desired, config *hubconfig.Config) {
	for _, d := range c.deliveries {
		if c.scope(d.Namespace) != scope {
			continue
		}
		wins := func(k plan.Key) bool { return config.IsPlatform(k.Namespace) && !config.IsPlatform(d.Namespace) }
		for _, awaits := range []map[plan.Key]assembly.Await{d.Awaits, c.awaitsAgain(d, config)} {
			for k, await := range awaits {
				if o := c.objects[k]; o != nil && !c.goesOn(desired, o, await, wins) {
					c.awaited[k] = await.Why
				}
			}
		}
	}
}

// goesOn returns whether something is delivered that goes on with an awaited object. What would replace that object
// waits: the add-on has given away what runs, and nobody can tell which of the two is meant. What wins against the
// add-on that awaits the object does not wait. If that one could not go on with the object either, there is nothing to save
// for it: neither an edit of the add-on waits, nor what has the name of the one that awaits it, and keeps it from coming.
func (c *cluster) goesOn(desired []plan.Desired, o *object, await assembly.Await, wins func(plan.Key) bool) bool {
	there, of := false, c.delivery(o.Key.Namespace, o.delivery)
	for i := range desired {
		d := &desired[i]
		edited := d.Addon == o.Addon && of != nil && of.wants(d.Key)
		switch {
		case d.Key != o.Key && !plan.Follows(*d, o.Observed):
		case wins(d.Key), d.TakesOver(&o.Observed):
			there = true
		case (edited || d.Addon == await.Addon) && !mayTakeOver(await, o):
			there = true
		default:
			d.Gate = cmp.Or(d.Gate, "waits: "+await.Why)
			there = there || d.Key == o.Key
		}
	}
	return there
}

// mayTakeOver returns whether an add-on could go on with an object that stays for it, as soon as Flux has done what that asks
// for. If the add-on does not come out, nobody knows.
func mayTakeOver(await assembly.Await, o *object) bool {
	if !await.Known {
		return true
	}
	if await.By == nil {
		return false
	}
	by, then := desired(&assembly.Wanted{Object: *await.By}), o.Observed
	then.InstalledAs, then.AppliedAs = hubv1.HelmReleaseIdentity{}, ""
	return by.TakesOver(&then)
}

// awaitsAgain returns the objects of others that a set names as its own now, if its delivery was deleted: by somebody, or
// by the set, which had left the cluster and selects it again. Until the hub makes the delivery again, it has its revision
// of before, or it is missing. A platform set does not wait for that of a tenant's set, and nobody for that of another scope.
func (c *cluster) awaitsAgain(d *delivery, config *hubconfig.Config) map[plan.Key]assembly.Await {
	if !c.wantsAgain(d) || d.DeletionTimestamp == nil {
		return nil
	}
	out := map[plan.Key]assembly.Await{}
	for k, o := range c.objects {
		if c.scope(k.Namespace) != c.scope(d.Namespace) {
			continue
		}
		own := k.Namespace == d.Namespace && o.delivery == d.Name
		if !own && !(config.IsPlatform(k.Namespace) && !config.IsPlatform(d.Namespace)) && takesOver(d.set, o) && !d.takesOver(o) {
			out[k] = assembly.Await{Why: fmt.Sprintf("waits for delivery %s/%s to be made again, whose AddonSet takes it over", d.Namespace, d.Name)}
		}
	}
	return out
}

// turnsBack returns whether a delivery on its way out stops there, since its set selects the cluster again: all that is left
// of it stays for add-ons that take it over, or waits for that. Two sets that take over from each other would wait for ever
// otherwise, each for the other one's delivery to be made again.
func (c *cluster) turnsBack(d *delivery, steps []plan.Step) bool {
	if !d.leaving || !c.wantsAgain(d) {
		return false
	}
	stays := false
	for _, s := range steps {
		o := c.objects[s.Key]
		if o == nil || o.Key.Namespace != d.Namespace || o.delivery != d.Name || s.Verb == plan.AwaitRemoval {
			continue
		}
		awaited := s.Verb == plan.Hold && c.awaited[s.Key] != ""
		if o.Deleting || !awaited && s.Verb != plan.AwaitDependants {
			return false
		}
		stays = stays || awaited || c.awaitsDependant(o)
	}
	return stays
}

// awaitsDependant returns whether something depends on an object that stays for an add-on that takes it over. That may be one
// of the very set whose delivery is on its way out. A tenant's is none for the platform: its removal does not wait for it either.
func (c *cluster) awaitsDependant(o *object) bool {
	for k, by := range c.objects {
		tenants := c.reach[o.Key.Namespace].Platform && !c.reach[k.Namespace].Platform
		if c.awaited[k] == "" || tenants || c.scope(k.Namespace) != c.scope(o.Key.Namespace) {
			continue
		}
		after := k.Namespace == o.Key.Namespace && by.Set != o.Set && slices.Contains(by.DependsOn, plan.SetBefore(o.Set))
		if after || slices.Contains(by.DependsOn, o.Addon) {
			return true
		}
	}
	return false
}

// turnBack releases a delivery that turns back. Its set makes it again, with what is left of it.
func (r *Reconciler) turnBack(ctx context.Context, c *cluster, d *delivery) error {
	if still, err := r.makesAgain(ctx, d); err != nil || !still || !c.told(d) {
		c.lookAgain(time.Second)
		return err
	}
	return r.forgo(ctx, c, d)
}

// takesOver returns whether a delivery takes over from an object as it is now, and need not be made again for that.
func (d *delivery) takesOver(o *object) bool {
	return slices.ContainsFunc(d.Wanted, func(w assembly.Wanted) bool { return plan.Follows(desired(&w), o.Observed) })
}

// takesOver returns whether a set says that an add-on of its own takes over from an object: by its name, or by movedFrom.
func takesOver(set *hubv1.AddonSet, o *object) bool {
	return slices.ContainsFunc(set.Spec.Addons, func(a hubv1.Addon) bool {
		return a.Name == o.Addon || slices.ContainsFunc(a.MovedFrom, func(m hubv1.MovedAddon) bool {
			m = m.Of(set.Namespace, set.Name, a.Name)
			return m.Name == o.Addon && identity.LabelValue(m.AddonSet) == o.Set && m.Namespace == o.Key.Namespace
		})
	})
}
