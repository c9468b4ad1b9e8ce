// SPDX-License-Identifier: Apache-2.0

package assembly_test

import (
	"testing"

	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

func TestAssemble(t *testing.T) {
	cases{
		"SameKindIsLeftToFlux": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("a", "b"), object("b"))}}, "s: a\ns: b",
		},
		"WhoLeavesTakesNothingOver": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					with(delivery("s", object("ks a")), func(d *assembly.Delivery) { d.Over = map[string]bool{"a": true} }),
					with(delivery("t", object("ks a")), func(d *assembly.Delivery) { d.Leaving = true }),
				},
				Live: []assembly.Live{live("t", object("ks a"), true)},
			},
			"s: lost a: Kustomization flux-system/one-a is there of another set, and this one is to leave the cluster",
		},
		"AcrossKindsWaits": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "b"), object("b"))}},
			"s: a gate(waits for add-on \"b\" (HelmRelease) to be Ready)\ns: b",
		},
		"AcrossKindsOpens": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "b"), object("b"))}, Live: []assembly.Live{live("s", object("b"), true)}},
			"s: a\ns: b",
		},
		"NotReady": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "b"), object("b"))}, Live: []assembly.Live{live("s", object("b"), false)}},
			"s: a gate(waits for add-on \"b\" (HelmRelease) to be Ready)\ns: b",
		},
		"ReadyAsItWasBefore": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "b"), object("b"))},
				Live: []assembly.Live{with(live("s", object("b"), true), func(l *assembly.Live) { l.Hash = "older" })}},
			"s: a gate(waits for add-on \"b\" (HelmRelease) to be Ready)\ns: b",
		},
		"ALatchNeverCloses": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("ks a", "b"), object("b")), func(d *assembly.Delivery) { d.Latched = true })},
				Live: []assembly.Live{live("s", object("ks a"), true), live("s", object("b"), false)}},
			"s: a\ns: b",
		},
		"ALatchIsOfWhatIsThere": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("ks a", "b"), object("b")), func(d *assembly.Delivery) { d.Latched = true })},
				Live: []assembly.Live{live("s", object("b"), false)}},
			"s: a gate(waits for add-on \"b\" (HelmRelease) to be Ready)\ns: b",
		},
		"ALatchIsOfTheClusterBefore": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("ks a", "b"), object("b")), func(d *assembly.Delivery) { d.Latched = true })},
				Live: []assembly.Live{with(live("s", object("ks a"), true), func(l *assembly.Live) { l.Going = true }), live("s", object("b"), false)}},
			"s: a gate(waits for add-on \"b\" (HelmRelease) to be Ready)\ns: b",
		},
		"WhereItAllLeadsTo": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "b"), object("b"))}, End: true}, "s: a\ns: b",
		},
		"WhatIsNotHereIsIgnored": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "gone", "other/c"))}}, "s: a",
		},
		"WhatDoesNotComeOutIsWaitedFor": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("ks a", "b")), failing("b"))}},
			"s: a gate(waits for add-on \"b\", which cannot be rendered)",
		},
		"WhatIsHeldAndReadyOpens": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("ks a", "b")), failing("b"))}, Live: []assembly.Live{live("s", object("b"), true)}},
			"s: a",
		},
		"AnAddonOfAnotherSet": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "t/b")), delivery("t", object("b"))}},
			"s: a gate(waits for add-on \"b\" (HelmRelease) to be Ready)\nt: b",
		},
		"ThePlatformsWaitsForNoTenantsAddonOfThatName": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", object("ks a", "b")), tenants(delivery("t", object("b")))}},
			"s: a\nt: b",
		},
		"ATenantsWaitsForThePlatformsAddonOfThatName": {
			assembly.Input{Deliveries: []assembly.Delivery{tenants(delivery("s", object("ks a", "b"))), delivery("t", object("b"))}},
			"s: a gate(waits for add-on \"b\" (HelmRelease) to be Ready)\nt: b",
		},
		"AnotherSet": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("a")), func(d *assembly.Delivery) { d.DependsOn = []string{"t"} }), delivery("t", object("b"))}},
			"s: a gate(waits for AddonSet \"t\", whose add-ons have not all been Ready yet)\nt: b",
		},
		"AnotherSetThatIsReady": {
			assembly.Input{Deliveries: []assembly.Delivery{
				with(delivery("s", object("a")), func(d *assembly.Delivery) { d.DependsOn = []string{"t", "absent"} }),
				with(delivery("t", object("b")), func(d *assembly.Delivery) { d.Ready = true }),
			}},
			"s: a\nt: b",
		},
		"AnotherSetThatHasLostAllItsAddons": {
			assembly.Input{Deliveries: []assembly.Delivery{
				with(delivery("s", object("a")), func(d *assembly.Delivery) { d.DependsOn = []string{"t"} }),
				delivery("t", object("b")),
				with(delivery("u", object("b")), func(d *assembly.Delivery) { d.Priority = 1 }),
			}},
			"s: a\nt: lost b: AddonSet flux-system/u delivers add-on \"b\": its priority is 1, and this set's is 0\nu: b",
		},
		"AnotherSetThatHasLostSomeOfThem": {
			assembly.Input{Deliveries: []assembly.Delivery{
				with(delivery("s", object("a")), func(d *assembly.Delivery) { d.DependsOn = []string{"t"} }),
				delivery("t", object("b"), object("c")),
				with(delivery("u", object("b")), func(d *assembly.Delivery) { d.Priority = 1 }),
			}},
			"s: a gate(waits for AddonSet \"t\", whose add-ons have not all been Ready yet)\nt: c\nt: lost b: AddonSet flux-system/u delivers add-on \"b\": its priority is 1, and this set's is 0\nu: b",
		},
		"AnotherSetThatIsComing": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("a")), func(d *assembly.Delivery) { d.DependsOn, d.Pending = []string{"t"}, []string{"t"} })}},
			"s: a gate(waits for AddonSet \"t\", which selects this cluster and is not on it yet)",
		},
		"WhatDoesNotComeOutIsNotMade": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("a"), object("b")), failing("b"))}}, "s: a",
		},
		"WhatStaysIsLeftAndTheRestIsMade": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("a"), object("ks b", "a")), func(d *assembly.Delivery) { d.Stays = map[string]bool{"a": true} })},
				Live: []assembly.Live{live("s", object("a"), true)}},
			"s: b",
		},
		"WhatIsHeldIsNotTaken": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s"), func(d *assembly.Delivery) { d.Result, d.Priority = nil, 5 }), delivery("t", object("a"))},
				Live:       []assembly.Live{live("s", object("a"), true)},
			},
			"t: lost a: AddonSet flux-system/s delivers add-on \"a\": it is there, and stays as it is for now",
		},
		"WhatIsHeldIsNotTakenByAHigherPriority": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s"), func(d *assembly.Delivery) { d.Result = nil }), with(delivery("t", object("a")), func(d *assembly.Delivery) { d.Priority = 5 })},
				Live:       []assembly.Live{live("s", object("a"), true)},
			},
			"t: lost a: AddonSet flux-system/s delivers add-on \"a\": it is there, and stays as it is for now",
		},
		"WhatIsHeldAndOnItsWayOutHoldsNothing": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s"), func(d *assembly.Delivery) { d.Result = nil }), with(delivery("t", object("a")), func(d *assembly.Delivery) { d.Priority = 5 })},
				Live:       []assembly.Live{with(live("s", object("a"), true), func(l *assembly.Live) { l.Going = true })},
			},
			"s: flux-system/one-a goes\ns: lost a: AddonSet flux-system/t delivers add-on \"a\": its priority is 5, and this set's is 0\nt: a",
		},
		"WhatATenantsSetHoldsGoesForAPlatformSets": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(tenants(delivery("s")), func(d *assembly.Delivery) { d.Result = nil }), delivery("t", object("a"))},
				Live:       []assembly.Live{with(live("s", object("a"), true), ofTenants)},
			},
			"s: lost a: AddonSet flux-system/t delivers add-on \"a\": platform sets win over others\ns: tenants/one-a goes\nt: a",
		},
		"WhatDoesNotComeOutGoesForAPlatformSetsOfTheSameRelease": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(tenants(delivery("s")), failing("b")), delivery("t", with(object("a"), func(o *flux.Object) { o.Release = object("b").Release }))},
				Live:       []assembly.Live{with(live("s", object("b"), true), ofTenants)},
			},
			"s: lost b: AddonSet flux-system/t delivers Helm release \"b\" in namespace \"b\", as its add-on \"a\": platform sets win over others\ns: tenants/one-b goes\nt: a",
		},
		"WhatIsFrozenGoesForAPlatformSets": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(tenants(delivery("s", object("a"))), func(d *assembly.Delivery) { d.Stays = map[string]bool{"a": true} }), delivery("t", object("a"))},
				Live:       []assembly.Live{with(live("s", object("a"), true), ofTenants)},
			},
			"s: lost a: AddonSet flux-system/t delivers add-on \"a\": platform sets win over others\ns: tenants/one-a goes\nt: a",
		},
		"OfTwoThatAreHeldWithOneReleaseOneGoes": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s"), func(d *assembly.Delivery) { d.Result = nil }), with(delivery("t"), func(d *assembly.Delivery) { d.Result, d.Priority = nil, 5 })},
				Live:       []assembly.Live{live("s", object("a"), true), with(live("t", object("a"), true), func(l *assembly.Live) { l.Addon, l.Key.Name = "b", "one-b" })},
			},
			"s: flux-system/one-a goes\ns: lost a: AddonSet flux-system/t delivers Helm release \"a\" in namespace \"a\", as its add-on \"b\": its priority is 5, and this set's is 0",
		},
		"TwoFormsOfOneThatIsHeldStay": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s"), func(d *assembly.Delivery) { d.Result = nil })},
				Live:       []assembly.Live{live("s", object("a"), true), live("s", object("ks a"), true)},
			},
			"",
		},
		"WhatLeavesIsFree": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s"), func(d *assembly.Delivery) { d.Result, d.Leaving = nil, true }), delivery("t", object("a"))},
				Live:       []assembly.Live{live("s", object("a"), true)},
			},
			"t: a",
		},
		"WhoTakesOverAnAddonTakesItsObject": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s", object("a")), func(d *assembly.Delivery) { d.Priority, d.Ends = 5, true }), delivery("t", object("a"))},
				Live:       []assembly.Live{live("s", object("a"), true)},
			},
			"s: lost a: AddonSet flux-system/t delivers add-on \"a\": this set is being deleted\nt: a",
		},
		"ManifestsAreLostWhole": {
			assembly.Input{Deliveries: []assembly.Delivery{
				delivery("s", with(object("a-crds"), func(o *flux.Object) { o.Form = "Manifests" }), with(object("a"), func(o *flux.Object) { o.Form = "Manifests" })),
				with(delivery("t", object("ks a")), func(d *assembly.Delivery) { d.Priority = 5 }),
			}},
			"s: lost a-crds: AddonSet flux-system/t delivers add-on \"a\": its priority is 5, and this set's is 0\n" +
				"s: lost a: AddonSet flux-system/t delivers add-on \"a\": its priority is 5, and this set's is 0\nt: a",
		},
		"SomebodyElsesRelease": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", object("a"), object("b"))},
				Foreign:    []assembly.Foreign{{Key: plan.Key{Kind: "HelmRelease", Namespace: "tenants", Name: "by-hand"}, Release: object("a").Release}},
			},
			"s: b\ns: not ours a: HelmRelease tenants/by-hand, which Chandler did not make, delivers release \"a\" to this cluster; it is left alone. Write adopt: {namespace: tenants, name: by-hand} to take it over",
		},
		"SomebodyElsesReleaseAdopted": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("a"), func(o *flux.Object) {
					o.Adopt = &flux.Adopt{Kind: "HelmRelease", Namespace: "tenants", Name: "by-hand"}
				}))},
				Foreign: []assembly.Foreign{{Key: plan.Key{Kind: "HelmRelease", Namespace: "tenants", Name: "by-hand"}, Release: object("a").Release}},
			},
			"s: a for(HelmRelease tenants/by-hand)",
		},
	}.run(t)
}

// What is of one kind is ordered by Flux, which would keep a platform's add-on waiting for a tenant's as long as that is not Ready.
func TestPlatformsAddonIsNotLinkedToATenants(t *testing.T) {
	for name, tc := range map[string]struct {
		in     []assembly.Delivery
		linked bool
	}{
		"ThePlatformsToATenants":     {[]assembly.Delivery{delivery("s", object("a", "b")), tenants(delivery("t", object("b")))}, false},
		"ThePlatformsToThePlatforms": {[]assembly.Delivery{delivery("s", object("a", "b")), delivery("t", object("b"))}, true},
		"ATenantsToThePlatforms":     {[]assembly.Delivery{tenants(delivery("s", object("a", "b"))), delivery("t", object("b"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			out := assembly.Assemble(assembly.Input{Deliveries: tc.in})
			if linked := out[0].Wanted[0].Hash != ""; linked != tc.linked { // an object without dependencies has none here
				t.Errorf("linked is %t", linked)
			}
		})
	}
}
