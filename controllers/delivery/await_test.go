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
			d.Portion = assembly.Portion{Awaits: map[plan.Key]assembly.Await{there: {Why: "renamed is to take it over"}}}
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

// What awaits an object and could not go on with it has no edit of the add-on wait for it, nor who keeps it from coming by its name.
func TestAwaitOfWhatCannotGoOn(t *testing.T) {
	there := plan.Key{Kind: "Kustomization", Namespace: "flux-system", Name: "one-app"}
	folder := func(name string) *render.Object {
		return &render.Object{Addon: "app", Kind: there.Kind, Namespace: there.Namespace, Name: there.Name, Path: name}
	}
	renamed := folder("a")
	renamed.Addon, renamed.Name = "new", "one-new"
	release := &render.Object{Addon: "app", Kind: "HelmRelease", Namespace: there.Namespace, Name: there.Name}
	for name, tc := range map[string]struct {
		await   assembly.Await
		set     string
		desired *render.Object
		behind  bool
		gated   bool
	}{
		"AnEditOfWhatCanGoOn":             {assembly.Await{Addon: "app", Known: true, By: folder("a")}, "base", folder("b"), false, true},
		"AnEditBeforeFluxHasApplied":      {assembly.Await{Addon: "new", Known: true, By: renamed}, "base", folder("b"), true, true},
		"AnEditOfWhatGoesElsewhere":       {assembly.Await{Addon: "app", Known: true, By: folder("c")}, "base", folder("b"), false, false},
		"AnEditOfWhatIsAnotherKind":       {assembly.Await{Addon: "app", Known: true, By: release}, "base", folder("b"), false, false},
		"AnEditOfWhatIsDroppedThere":      {assembly.Await{Addon: "app", Known: true}, "base", folder("b"), false, false},
		"AnEditOfWhatDoesNotComeOut":      {assembly.Await{Addon: "app"}, "base", folder("b"), false, true},
		"AnotherKindOfWhatIsAnotherKind":  {assembly.Await{Addon: "app", Known: true, By: folder("c")}, "base", release, false, false},
		"AnEditOfWhatGetsAnotherName":     {assembly.Await{Addon: "new", Known: true, By: release}, "base", folder("b"), false, false},
		"AnothersOfItsName":               {assembly.Await{Addon: "app", Known: true, By: folder("c")}, "strong", release, false, false},
		"AnothersOfWhatGetsAnotherName":   {assembly.Await{Addon: "new", Known: true, By: folder("c")}, "strong", release, false, true},
		"AnothersOfItsNameWhereItCanGoOn": {assembly.Await{Addon: "app", Known: true, By: folder("a")}, "strong", release, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{awaited: map[plan.Key]string{}, objects: map[plan.Key]*object{
				there: {Observed: plan.Observed{Key: there, Addon: "app", Content: assembly.Content(folder("a"))}, delivery: "base"}}}
			for _, set := range []string{"base", "extra", "strong"} {
				c.deliveries = append(c.deliveries, &delivery{AddonDelivery: &hubv1.AddonDelivery{
					ObjectMeta: metav1.ObjectMeta{Namespace: there.Namespace, Name: set}}})
			}
			if tc.behind {
				c.objects[there].AppliedAs = "another folder"
			}
			wanted := assembly.Wanted{Object: *tc.desired}
			c.delivery(there.Namespace, tc.set).Wanted = []assembly.Wanted{wanted}
			tc.await.Why = "extra is to take it over"
			c.delivery(there.Namespace, "extra").Awaits = map[plan.Key]assembly.Await{there: tc.await}
			all := []plan.Desired{desired(&wanted)}
			c.await("", all, &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{there.Namespace}}})
			if gated := all[0].Gate != ""; gated != tc.gated || !gated && c.awaited[there] != "" {
				t.Errorf("gate %q, awaited %q; want %t", all[0].Gate, c.awaited[there], tc.gated)
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
			if got := c.awaitsAgain(d, &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}); (got[there].Why != "") != tc.want {
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
			d.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
			if got := c.awaitsAgain(d, &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}); len(got) > 0 != tc.want {
				t.Errorf("it waits for %v", got)
			}
		})
	}
}

// What waits for an add-on of the platform's keeps a delivery of the platform's, and a tenant's does not: whoever may write Flux objects in his own
// namespace decides what is awaited there.
func TestAwaitsDependant(t *testing.T) {
	for name, tc := range map[string]struct {
		of, by  string
		awaited bool
		want    bool
	}{
		"ThePlatformThePlatforms": {"flux-system", "base", true, true},
		"ThePlatformATenants":     {"flux-system", "fleet", true, false},
		"ATenantThePlatforms":     {"fleet", "flux-system", true, true},
		"ATenantATenants":         {"fleet", "fleet", true, true},
		"NotAwaited":              {"flux-system", "base", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := &object{Observed: plan.Observed{Key: plan.Key{Kind: "HelmRelease", Namespace: tc.of, Name: "one-web"}, Addon: "web"}}
			by := &object{Observed: plan.Observed{Key: plan.Key{Kind: "HelmRelease", Namespace: tc.by, Name: "one-app"}, Addon: "app", DependsOn: []string{"web"}}}
			c := &cluster{objects: map[plan.Key]*object{of.Key: of, by.Key: by}, awaited: map[plan.Key]string{}, reach: map[string]match.Reach{
				"flux-system": {Namespace: "flux-system", Platform: true}, "base": {Namespace: "base", Platform: true}, "fleet": {Namespace: "fleet"}}}
			if tc.awaited {
				c.awaited[by.Key] = "why"
			}
			if got := c.awaitsDependant(of); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
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
