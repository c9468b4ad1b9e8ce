// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
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

// What a set takes over stays until the delivery is made again that somebody has deleted, unless the delivery takes it over as it is.
func TestAwaitsAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted  []string
		deleted bool
		want    bool
	}{
		"ItsRevisionIsOlder":    {wanted: []string{"web"}, deleted: true, want: true},
		"ItTakesItOverAsItIs":   {wanted: []string{"web", "app"}, deleted: true},
		"NobodyHasDeletedIt":    {wanted: []string{"web"}},
		"NothingIsRenderedOfIt": {deleted: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			there := plan.Key{Kind: "HelmRelease", Namespace: "tenant", Name: "one-app"}
			c := &cluster{registration: &hubv1.ClusterRegistration{}, objects: map[plan.Key]*object{there: {Observed: plan.Observed{Key: there, Addon: "app"}}}}
			set := &hubv1.AddonSet{}
			set.Spec.Addons = []hubv1.Addon{{Name: "web"}, {Name: "app"}}
			d := &delivery{AddonDelivery: &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-one"}}, set: set, selected: true}
			if tc.deleted {
				d.DeletionTimestamp = &metav1.Time{}
			}
			for _, addon := range tc.wanted {
				d.Wanted = append(d.Wanted, assembly.Wanted{Object: render.Object{Kind: "Kustomization", Namespace: d.Namespace, Name: "one-" + addon, Addon: addon}})
			}
			if got := c.awaitsAgain(d, &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}); (got[there] != "") != tc.want {
				t.Errorf("%v, want %t", got, tc.want)
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

// A set whose delivery was deleted waits for what it takes over, but not for what another scope has: a Team's member who forges an object of a
// delivery that does not exist would keep another Team from dropping an add-on of that name.
func TestAwaitsAgainInItsScope(t *testing.T) {
	for name, tc := range map[string]struct {
		awaits, has string
		want        bool
	}{
		"ThePlatformThePlatforms":   {"flux-system", "flux-system", true},
		"ThePlatformAClusterOwners": {"flux-system", "fleet", true},
		"AClusterOwnerThePlatforms": {"fleet", "flux-system", false},
		"ATeamItsOwn":               {"a-team", "a-team", true},
		"ATeamAnotherTeams":         {"b-team", "a-team", false},
		"ATeamAClusterOwners":       {"b-team", "fleet", false},
		"ThePlatformATeams":         {"flux-system", "a-team", false},
	} {
		t.Run(name, func(t *testing.T) {
			k := plan.Key{Kind: "HelmRelease", Namespace: tc.has, Name: "one-web"}
			team := match.Reach{Team: &match.Team{}}
			c := &cluster{registration: &hubv1.ClusterRegistration{}, reach: map[string]match.Reach{"a-team": team, "b-team": team},
				objects: map[plan.Key]*object{k: {Observed: plan.Observed{Key: k, Addon: "web"}, delivery: "theirs"}}}
			d := &delivery{AddonDelivery: &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: tc.awaits, Name: "mine"}}, selected: true,
				set: &hubv1.AddonSet{Spec: hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "web"}}}}}
			c.missing = []*delivery{d}
			if got := c.awaitsAgain(d, &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}); len(got) > 0 != tc.want {
				t.Errorf("it waits for %v", got)
			}
		})
	}
}

// A set that has left the cluster selects it again, and takes over what depends on it, of a set that does not. The latter waits for the former's
// delivery to be made again, and that for what depends on it.
func TestTurnsBackForWhatDependsOnIt(t *testing.T) {
	other := releaseAddon("other")
	other["dependsOn"] = []map[string]any{{"name": "app", "addonSet": roomSet}}
	objects := append(addonsOf(roomSet, "1", releaseAddon("app")), addonsOf("extra", "1", other)...)
	m := newServedRoom(t, append(objects, deliveredTo(roomCluster, "extra", "1"))...)
	m.settle()
	now := addonsOf(roomSet, "2", releaseAddon("app"), releaseAddon("other"))[0].(*hubv1.AddonSet)
	edit(m, now.Namespace, roomSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) { s.Spec = now.Spec })
	edit(m, now.Namespace, "extra", &hubv1.AddonSet{}, func(s *hubv1.AddonSet) { s.Spec.SelectAll = false })
	m.withdraw(roomCluster, roomSet)
	m.withdraw(roomCluster, "extra")
	m.settle()
	m.clock.SetTime(m.clock.Now().Add(2 * time.Hour))
	m.settle()
	if base := m.delivery(roomCluster, roomSet); base != nil {
		t.Errorf("it stays: %+v; %+v", base.Status.Addons, m.delivery(roomCluster, "extra").Status.Addons)
	}
}
