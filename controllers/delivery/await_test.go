// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
)

// What an add-on is to take over that cannot be delivered stays, and another workload of its name waits. A platform set's does not wait for
// a tenant's.
func TestAwaitIsNoVeto(t *testing.T) {
	for name, tc := range map[string]struct {
		awaits, delivers string
		gated            bool
	}{
		"OfOneTenant":           {"tenant", "tenant", true},
		"OfThePlatform":         {"flux-system", "flux-system", true},
		"OfATenantByPlatform":   {"tenant", "flux-system", false},
		"OfThePlatformByTenant": {"flux-system", "tenant", true},
	} {
		t.Run(name, func(t *testing.T) {
			there := plan.Key{Kind: "HelmRelease", Namespace: tc.awaits, Name: "one-app"}
			c := &cluster{awaited: map[plan.Key]string{}, objects: map[plan.Key]*object{there: {Observed: plan.Observed{
				Key: there, Addon: "app", Release: hubv1.HelmReleaseIdentity{Name: "other", Namespace: "x", StorageNamespace: "x"},
			}}}}
			d := &delivery{AddonDelivery: &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: tc.awaits}}}
			d.Portion = assembly.Portion{Awaits: map[plan.Key]string{there: "renamed is to take it over"}}
			c.deliveries = []*delivery{d}
			desired := []plan.Desired{{
				Key: plan.Key{Kind: "HelmRelease", Namespace: tc.delivers, Name: "mine"}, Addon: "app",
				Release: hubv1.HelmReleaseIdentity{Name: "app", Namespace: "app", StorageNamespace: "app"},
			}}
			c.await("", desired, &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}})
			if gated := desired[0].Gate != ""; gated != tc.gated || (c.awaited[there] != "") != tc.gated {
				t.Errorf("gate %q, awaited %q; want %t", desired[0].Gate, c.awaited[there], tc.gated)
			}
		})
	}
}

// A delivery on its way out stops there if its set selects the cluster again, and all that is left of it waits for others.
func TestTurnsBack(t *testing.T) {
	key := func(name string) plan.Key { return plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: name} }
	for name, tc := range map[string]struct {
		verbs      map[string]plan.Verb
		deselected bool
		stays      bool
		deleting   bool
		want       bool
	}{
		"Awaited":                {verbs: map[string]plan.Verb{"web": plan.Hold}, want: true},
		"AwaitedAndWhatItNeeds":  {verbs: map[string]plan.Verb{"web": plan.Hold, "hello": plan.AwaitDependants}, want: true},
		"TheRestGoes":            {verbs: map[string]plan.Verb{"web": plan.Hold, "hello": plan.Uninstall}},
		"TheRestIsHeld":          {verbs: map[string]plan.Verb{"web": plan.Hold, "hello": plan.Hold}},
		"OnlyDependants":         {verbs: map[string]plan.Verb{"hello": plan.AwaitDependants}},
		"BeingDeleted":           {verbs: map[string]plan.Verb{"web": plan.Hold}, deleting: true},
		"NotSelected":            {verbs: map[string]plan.Verb{"web": plan.Hold}, deselected: true},
		"NotOnItsWayOut":         {verbs: map[string]plan.Verb{"web": plan.Hold}, stays: true},
		"AnotherTakesItOverNow":  {verbs: map[string]plan.Verb{"web": plan.Hold, "hello": plan.Update}},
		"OthersObjectsAreOthers": {verbs: map[string]plan.Verb{"web": plan.Hold, "others": plan.Uninstall}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &delivery{
				AddonDelivery: &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-one"}},
				set:           &hubv1.AddonSet{}, selected: !tc.deselected, leaving: !tc.stays,
			}
			c := &cluster{registration: &hubv1.ClusterRegistration{}, objects: map[plan.Key]*object{}, awaited: map[plan.Key]string{key("web"): "why"}}
			var steps []plan.Step
			for addon, verb := range tc.verbs {
				o := &object{Observed: plan.Observed{Key: key(addon), Addon: addon, Deleting: tc.deleting}, delivery: d.Name}
				if addon == "others" {
					o.delivery = addon
				}
				c.objects[o.Key] = o
				steps = append(steps, plan.Step{Key: o.Key, Addon: addon, Verb: verb}, plan.Step{Key: o.Key, Addon: addon, Verb: plan.AwaitRemoval})
			}
			if got := c.turnsBack(d, steps); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
