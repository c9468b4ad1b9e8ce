// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// What leaves, in every state that its Flux object may be in, while the breaker holds the cluster's objects suspended and while it does
// not. Uninstall means that the object is resumed before it is deleted, Orphan that it is suspended before. What waits is suspended,
// but not what is being deleted already: Flux would orphan it.
func TestLeaving(t *testing.T) {
	states := map[string]func(*plan.Observed){
		"plain":            func(*plan.Observed) {},
		"held":             func(o *plan.Observed) { o.Held, o.Suspended = true, true },
		"byHand":           func(o *plan.Observed) { o.Suspended = true },
		"heldAndResumed":   func(o *plan.Observed) { o.Held = true },
		"deleting":         func(o *plan.Observed) { o.Deleting = true },
		"deletingAndHeld":  func(o *plan.Observed) { o.Deleting, o.Held, o.Suspended = true, true, true },
		"ofAnotherCluster": func(o *plan.Observed) { o.Replaced, o.Held, o.Suspended = plan.ReplacedReason, true, true },
	}
	for _, tc := range []struct {
		mode teardown.Mode
		down bool
		want map[string]string
	}{
		{teardown.Uninstall, false, map[string]string{
			"plain": "Uninstall", "held": "Uninstall", "byHand": "Uninstall", "heldAndResumed": "Uninstall", "deleting": "Uninstall", "deletingAndHeld": "Uninstall", "ofAnotherCluster": "Orphan",
		}},
		// The cluster answers again, and the condition has not gone yet.
		{teardown.Uninstall, true, map[string]string{
			"plain": "Uninstall", "held": "Uninstall", "byHand": "Uninstall", "heldAndResumed": "Uninstall", "deleting": "Uninstall", "deletingAndHeld": "Uninstall", "ofAnotherCluster": "Orphan",
		}},
		{teardown.Hold, false, map[string]string{
			"plain": "Hold", "held": "Hold, Resume", "byHand": "Hold", "heldAndResumed": "Hold, Resume", "deleting": "Hold", "deletingAndHeld": "Orphan", "ofAnotherCluster": "Orphan",
		}},
		{teardown.Hold, true, map[string]string{
			"plain": "Hold, Suspend", "held": "Hold", "byHand": "Hold, Suspend", "heldAndResumed": "Hold, Suspend", "deleting": "Hold", "deletingAndHeld": "Orphan", "ofAnotherCluster": "Orphan",
		}},
		{teardown.Orphan, false, map[string]string{
			"plain": "Orphan", "held": "Orphan", "byHand": "Orphan", "heldAndResumed": "Orphan", "deleting": "Orphan", "deletingAndHeld": "Orphan", "ofAnotherCluster": "Orphan",
		}},
		{teardown.Orphan, true, map[string]string{
			"plain": "Orphan", "held": "Orphan", "byHand": "Orphan", "heldAndResumed": "Orphan", "deleting": "Orphan", "deletingAndHeld": "Orphan", "ofAnotherCluster": "Orphan",
		}},
	} {
		for state, with := range states {
			in := plan.Input{
				Observed: []plan.Observed{have("a", with)}, MayCreate: true,
				Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: tc.mode, Reason: "r"} },
			}
			if tc.down {
				in.Suspend = "the cluster is down"
			}
			steps := plan.Compute(in)
			if len(steps) != 1 {
				t.Fatalf("%s: %d steps", state, len(steps))
			}
			got := fmt.Sprint(steps[0].Verb)
			if steps[0].Meanwhile != "" {
				got += ", " + string(steps[0].Meanwhile)
			}
			if got != tc.want[state] {
				t.Errorf("%s, down %t, %s: got %s, want %s", tc.mode, tc.down, state, got, tc.want[state])
			}
		}
	}
}

// In a chain that leaves, those that wait for their dependants are suspended while the cluster is down; what one of them orphans
// does not wait for another.
func TestLeavingInAChain(t *testing.T) {
	chain := []plan.Observed{have("a"), have("b", after("a"))}
	for name, tc := range map[string]struct {
		removal func(plan.Observed) teardown.Decision
		want    string
	}{
		"Uninstalled": {func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} }, "[AwaitDependants Suspend Uninstall ]"},
		"Orphan":      {func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Orphan} }, "[Orphan  Orphan ]"},
		"OneIsAnOrphan": {func(o plan.Observed) teardown.Decision {
			if o.Addon == "a" {
				return teardown.Decision{Mode: teardown.Orphan}
			}
			return teardown.Decision{Mode: teardown.Uninstall}
		}, "[Orphan  Uninstall ]"},
	} {
		steps := plan.Compute(plan.Input{Observed: chain, MayCreate: true, Suspend: "the cluster is down", Removal: tc.removal})
		got := fmt.Sprint([]any{steps[0].Verb, steps[0].Meanwhile, steps[1].Verb, steps[1].Meanwhile})
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Whoever may write Flux objects in his own namespace can have any number of them leave a cluster, and everybody else there waits for that
// cluster's plan.
func TestManyLeave(t *testing.T) {
	const many = 800
	one := hubv1.HelmReleaseIdentity{Name: "r", Namespace: "r", StorageNamespace: "r"}
	for name, with := range map[string]func(i int, o *plan.Observed){
		"EachWithARelease": func(_ int, o *plan.Observed) {
			o.Release = hubv1.HelmReleaseIdentity{Name: o.Addon, Namespace: o.Addon, StorageNamespace: o.Addon}
		},
		"AllWithOneRelease":     func(_ int, o *plan.Observed) { o.Release = one },
		"OneAfterEachOther":     func(i int, o *plan.Observed) { o.DependsOn = []string{fmt.Sprint("a", i-1)} },
		"AllAfterWhatIsNoAddon": func(_ int, o *plan.Observed) { o.DependsOn = slices.Repeat([]string{"none"}, 32) },
	} {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{MayCreate: true, Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} }}
			for i := range many {
				in.Observed = append(in.Observed, have(fmt.Sprint("a", i), func(o *plan.Observed) { with(i, o) }))
			}
			begun := time.Now()
			steps := plan.Compute(in)
			if took := time.Since(begun); took > time.Second || len(steps) != many {
				t.Errorf("%d steps for %d objects in %s", len(steps), many, took)
			}
		})
	}
}

// A platform's add-on that leaves waits for what depends on it in the platform's sets, and not for a tenant's: that one's removal guard, or a
// finalizer of the tenant's own, could have it wait for ever. A tenant's waits for either.
func TestPlatformsRemovalWaitsForNoTenant(t *testing.T) {
	of := func(namespace string) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Key.Namespace = namespace }
	}
	for name, tc := range map[string]struct {
		first, second string
		want          string
	}{
		"ThePlatformsForATenants":     {"flux-system", "tenants", "Uninstall web, Ask his"},
		"ThePlatformsForThePlatforms": {"flux-system", "flux-system", "Ask his, AwaitDependants web"},
		"ATenantsForThePlatforms":     {"tenants", "flux-system", "Ask his, AwaitDependants web"},
		"ATenantsForATenants":         {"tenants", "tenants", "Ask his, AwaitDependants web"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range plan.Compute(plan.Input{MayCreate: true, Platform: func(namespace string) bool { return namespace == "flux-system" },
				Observed: []plan.Observed{have("web", of(tc.first)), have("his", of(tc.second), after("web"))},
				Removal: func(o plan.Observed) teardown.Decision {
					if o.Addon == "his" {
						return teardown.Decision{Mode: teardown.Ask}
					}
					return teardown.Decision{Mode: teardown.Uninstall}
				}}) {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Addon))
			}
			if is := strings.Join(got, ", "); is != tc.want {
				t.Errorf("%s, want %s", is, tc.want)
			}
		})
	}
}
