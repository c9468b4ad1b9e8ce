// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
)

var errCrashed = errors.New("the hub has crashed")

// crashAt has the hub die at its n-th write from now on, before or after that takes effect.
func (m *fixture) crashAt(n int, effect bool) {
	left := n
	m.failing = func(string) (error, bool) {
		left--
		switch {
		case left > 0:
			return nil, false
		case left == 0:
			return errCrashed, effect
		}
		return errCrashed, false // it is dead
	}
}

// Wherever the hub dies between orphaning an add-on and saying so, somebody is told in the end, by the statuses and by an event: by two, if nobody
// can know whether the dead one had sent it.
func TestOrphanAndCrash(t *testing.T) {
	orphan := map[string]any{"deletionPolicy": "Orphan"}
	for name, leave := range map[string]func(*fixture){
		"Dropped": func(m *fixture) {
			edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
		},
		"Withdrawn": func(m *fixture) { m.withdraw(testCluster, testSet) },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				crashed := false
				for _, effect := range []bool{false, true} {
					objects := append(addonsOf(testSet, "1", releaseAddon("app", orphan), releaseAddon("other")), addonsOf(testSet, "2", releaseAddon("other"))[1:]...)
					m := newServedFixture(t, objects...)
					m.settle()
					leave(m)
					m.crashAt(n, effect)
					died := false
					for range 4 { // Flux goes on without the hub
						died = died || errors.Is(m.reconcile(testCluster), errCrashed)
						m.flux()
					}
					crashed = crashed || m.dead()
					m.failing = nil
					m.restart()
					m.settle()
					m.settle()
					where := fmt.Sprintf("write %d, with effect %t", n, effect)
					if got := m.orphans(testCluster); len(got) != 1 || got[0].Addon != "app" || len(m.told) == 0 || len(m.told) > 2 {
						t.Errorf("%s: orphans %+v, events %q", where, got, m.told)
					}
					if m.object(testCluster, "app") != nil || len(m.released) != 1 {
						t.Errorf("%s: orphaned %v, uninstalled %v", where, m.released, m.uninstalled)
					}
				}
				if !crashed {
					return
				}
			}
		})
	}
}

// dead returns whether the hub has crashed.
func (m *fixture) dead() bool {
	err, _ := m.failing("")
	return errors.Is(err, errCrashed)
}

// TestAnnounceAgain: what the status says that it is orphaned is told of again until this hub has begun with that: the one before may have died before it did.
func TestAnnounceAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		// removed is what the hub has noted of the object when it had it go lately; nil if it has not.
		removed *string
		want    bool
	}{
		"not by this hub, or not at all":    {nil, true},
		"was being uninstalled by this hub": {new(""), true},
		"orphaned by this hub":              {new("what it applied"), false},
	} {
		t.Run(name, func(t *testing.T) {
			k := plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: "one-app"}
			m, d := newFixture(t), leaving(hubv1.AddonStatus{Name: "app", Kind: k.Kind, Object: k.Name, State: hubv1.AddonOrphaned})
			c := passOf(&observed.Cluster{Key: testCluster, Objects: map[plan.Key]*observed.Object{k: {Delivery: d.Name, Observed: plan.Observed{Key: k, Addon: "app"}}}}, d)
			if tc.removed != nil {
				m.r.ledger.Remove(k, *tc.removed, m.clock.Now())
			}
			m.r.announceAgain(t.Context(), c, d, plan.Step{Key: k, Addon: "app", Verb: plan.Orphan})
			if got := m.orphanEvents(); len(got) > 0 != tc.want {
				t.Errorf("told: %v", got)
			}
		})
	}
}
