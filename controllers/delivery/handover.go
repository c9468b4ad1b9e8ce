// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// takesOver returns what the add-on of a step takes over, as the status keeps it until Flux has noted something of the add-on's own object: what
// is about to go for it, and what has gone. The ledger knows what the cache does not show yet.
func (r *Reconciler) takesOver(c *cluster, d *delivery, s plan.Step, steps []plan.Step) []string {
	if o := c.objects[s.Key]; o != nil {
		return d.untaken(o)
	}
	if s.Leaving() {
		return nil
	}
	var out []string
	for _, other := range steps {
		if other.To == s.Key {
			out = append(out, other.Key.String())
		}
	}
	for _, k := range was(d, s.Addon).TakesOver {
		key := plan.ParseKey(k)
		if _, ours := r.ledger.wasRemoved(key); ours || c.objects[key] == nil || c.objects[key].Deleting {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// untaken returns what an object of a delivery has taken over, if Flux has noted nothing of it yet: then Flux would leave it behind.
func (d *delivery) untaken(o *object) []string {
	if o.state.Version != "" || o.delivery != d.Name || o.Key.Namespace != d.Namespace {
		return nil
	}
	if a := d.addon(o.Addon); a != nil && a.Kind == o.Key.Kind && a.Object == o.Key.Name {
		return a.TakesOver
	}
	return nil
}

// unnoted says what of the cluster an object of a delivery is to go on with, if Flux has noted nothing of it yet: then Flux would leave it behind; "" for nothing.
func (d *delivery) unnoted(o *object) string {
	if list := d.untaken(o); len(list) > 0 {
		return "what " + strings.Join(list, ", ") + " had left"
	}
	a := d.addon(o.Addon)
	if a == nil || o.state.Version != "" || len(a.OnCluster) == 0 || a.Kind != o.Key.Kind || a.Object != o.Key.Name || o.delivery != d.Name || o.Key.Namespace != d.Namespace {
		return ""
	}
	return "what is there of it already"
}

// halfway returns whether an add-on has let go of one object for another that Flux has noted nothing of yet: then the status of its delivery alone
// knows with which release that goes on, and what is left on the cluster if it never does.
func (d *delivery) halfway() bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return len(a.TakesOver) > 0 })
}

// lostBetween looks, live, for what the add-ons of a delivery were about to take over: an add-on that is not delivered any more, and never had
// an object of its own, leaves behind what has been let go for it. What is still there is its own delivery's to remove, or somebody else's. So
// is not what is on its way out suspended, whatever the cache says: it was let go for the add-on, and Flux removes nothing. What the delivery is
// to make again under its old name goes on with what it has left.
func (r *Reconciler) lostBetween(ctx context.Context, c *cluster, d *delivery) error {
	for _, a := range d.before.Status.Addons {
		for _, text := range a.TakesOver {
			k := plan.ParseKey(text)
			obj := newObject(k)
			err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("look for %s, which add-on %q was to take over: %w", k, a.Name, err)
			}
			by, _ := c.wanted(k)
			switch s := fluxstate.Of(obj); {
			case err != nil && by != d:
				d.lost = append(d.lost, text)
			case err != nil, s.Deleting && (s.Suspended || c.objects[k] == nil):
				d.going = append(d.going, text)
			}
		}
	}
	return nil
}

// between returns the entry of an add-on that is not delivered any more, and never had an object of its own that Flux got to; false if nothing
// was let go for it.
func (d *delivery) between(a hubv1.AddonStatus) (hubv1.AddonStatus, bool) {
	out := hubv1.AddonStatus{Name: a.Name, Kind: a.Kind, Object: a.Object, Release: a.Release, TakesOver: a.TakesOver}
	for _, k := range a.TakesOver {
		switch {
		case slices.Contains(d.going, k):
			out.State, out.Message = hubv1.AddonRemoving, "waits for "+k+" to be gone, or to be made again"
			return out, true
		case slices.Contains(d.lost, k):
			out.State = hubv1.AddonOrphaned
			out.Message = fmt.Sprintf("%s was let go for it, and Flux has never got to its own %s; left there: what that had applied, with its namespaces and CRDs", k, a.Kind)
			if a.Release != nil {
				out.Message += fmt.Sprintf(" (Helm release %s/%s)", a.Release.Namespace, a.Release.Name)
			}
			out.Release, out.TakesOver = nil, nil
		}
	}
	return out, out.State != ""
}
