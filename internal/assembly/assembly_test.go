// SPDX-License-Identifier: Apache-2.0

package assembly_test

import (
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

func TestAssemble(t *testing.T) {
	failed := func(d *assembly.Delivery) { d.Result.Failed["b"] = render.Errors{{Addon: "b", Message: "x"}} }
	cases := map[string]struct {
		in   assembly.Input
		want string
	}{
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
		"WhatWasMovedTakesTheNameAlong": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					delivery("s", object("ks a")),
					delivery("t", with(object("a"), func(o *flux.Object) {
						o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "a"}}
					})),
				},
				Live: []assembly.Live{live("s", object("a"), true)},
			},
			"s: lost a: AddonSet flux-system/t delivers add-on \"a\": what runs under that name has been moved there\nt: a",
		},
		"AStrongerSetsOtherFolderIsNewBesideWhatWasRenamed": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					delivery("s", with(object("ks b"), func(o *flux.Object) {
						o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "a"}}
					})),
					with(delivery("t", with(object("ks a"), func(o *flux.Object) { o.Path = "other" })), func(d *assembly.Delivery) { d.Priority = 1 }),
				},
				Live: []assembly.Live{live("s", object("ks a"), true)},
			},
			"s: b as(one-a)\nt: a named(one-0)",
		},
		"AStrongerSetsOtherReleaseIsNewBesideWhatWasRenamed": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					delivery("s", with(object("b"), func(o *flux.Object) {
						o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "a"}}
					})),
					with(delivery("t", with(object("a"), func(o *flux.Object) { o.Release.StorageNamespace = "other" })),
						func(d *assembly.Delivery) { d.Priority = 1 }),
				},
				Live: []assembly.Live{live("s", object("a"), true)},
			},
			"s: b as(one-a)\nt: a named(one-0)",
		},
		"AStrongerSetsAddonIsNewBesideWhatWasRenamed": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					delivery("s", with(object("ks b"), func(o *flux.Object) {
						o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "a"}}
					})),
					with(delivery("t", object("ks a")), func(d *assembly.Delivery) { d.Priority = 1 }),
				},
				Live: []assembly.Live{live("s", object("ks a"), true)},
			},
			"s: b as(one-a)\nt: a named(one-0)",
		},
		"WhatATenantHasRenamedDecidesNothingBetweenPlatformSets": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					with(delivery("s", object("a")), func(d *assembly.Delivery) { d.Priority = 1 }),
					delivery("t", with(object("a"), func(o *flux.Object) { o.Release.StorageNamespace = "other" })),
					tenants(delivery("u", with(object("b"), func(o *flux.Object) {
						o.MovedFrom = []hubv1.MovedAddon{{Namespace: "tenants", AddonSet: "u", Name: "a"}}
					}))),
				},
				Live: []assembly.Live{live("s", object("a"), true), with(live("u", object("a"), true), func(l *assembly.Live) {
					ofTenants(l)
					l.Release.StorageNamespace = "other"
				})},
			},
			"s: a\nt: lost a: AddonSet flux-system/s delivers add-on \"a\": its priority is 1, and this set's is 0\nu: b for(HelmRelease tenants/one-a)",
		},
		"WhatATenantHasRenamedIsNoConcernOfOthers": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					tenants(with(delivery("s", with(object("a"), func(o *flux.Object) { o.Release.StorageNamespace = "other" })),
						func(d *assembly.Delivery) { d.Priority = 1 })),
					tenants(delivery("u", with(object("b"), func(o *flux.Object) {
						o.MovedFrom = []hubv1.MovedAddon{{Namespace: "tenants", AddonSet: "u", Name: "a"}}
					}))),
				},
				Live: []assembly.Live{with(live("u", object("a"), true), ofTenants)},
			},
			"s: a\nu: b for(HelmRelease tenants/one-a)",
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
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("ks a", "b")), failed)}},
			"s: a gate(waits for add-on \"b\", which cannot be rendered)",
		},
		"WhatIsHeldAndReadyOpens": {
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("ks a", "b")), failed)}, Live: []assembly.Live{live("s", object("b"), true)}},
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
			assembly.Input{Deliveries: []assembly.Delivery{with(delivery("s", object("a"), object("b")), failed)}}, "s: a",
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
				Deliveries: []assembly.Delivery{with(tenants(delivery("s")), failed), delivery("t", with(object("a"), func(o *flux.Object) { o.Release = object("b").Release }))},
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
		"Moved": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("new"), func(o *flux.Object) {
					o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
				}))},
				Live: []assembly.Live{live("s", object("old"), true)},
			},
			"s: new as(one-old)",
		},
		"WhoTakesOverAnAddonTakesItsObject": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s", object("a")), func(d *assembly.Delivery) { d.Priority, d.Ends = 5, true }), delivery("t", object("a"))},
				Live:       []assembly.Live{live("s", object("a"), true)},
			},
			"s: lost a: AddonSet flux-system/t delivers add-on \"a\": this set is being deleted\nt: a",
		},
		"MovedLongAgo": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("new"), func(o *flux.Object) {
					o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "t", Name: "old"}}
				})), delivery("t", object("old"))},
				Live: []assembly.Live{live("s", object("new"), true), live("t", object("old"), true)},
			},
			"s: new\nt: old",
		},
		"ARenamedAddonThatIsLostStaysUnderItsOldName": {
			assembly.Input{
				Deliveries: []assembly.Delivery{renamed(delivery("s", with(object("new"), func(o *flux.Object) {
					o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
				}))), with(delivery("t", object("new")), func(d *assembly.Delivery) { d.Priority = 5 })},
				Live: []assembly.Live{live("s", object("old"), true)},
			},
			"s: lost new: AddonSet flux-system/t delivers add-on \"new\": its priority is 5, and this set's is 0\n" +
				"s: one-old stays: add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now\nt: new",
		},
		"ARenamedAddonThatDoesNotComeOutStaysUnderItsOldName": {
			assembly.Input{
				Deliveries: []assembly.Delivery{renamed(with(delivery("s"), func(d *assembly.Delivery) { d.Result.Failed["new"] = render.Errors{{Addon: "new", Message: "x"}} }))},
				Live:       []assembly.Live{live("s", object("old"), true)},
			},
			"s: one-old stays: add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now",
		},
		"TheDefinitionsOfARenamedAddonStayForItsDefinitions": {
			assembly.Input{
				Deliveries: []assembly.Delivery{renamed(delivery("s", object("new"), object("new-crds"))),
					with(delivery("t", object("new")), func(d *assembly.Delivery) { d.Priority = 5 }),
					with(delivery("u", object("new-crds")), func(d *assembly.Delivery) { d.Priority = 5 })},
				Live: []assembly.Live{live("s", object("old"), true), live("s", object("old-crds"), true)},
			},
			"s: lost new-crds: AddonSet flux-system/u delivers add-on \"new-crds\": its priority is 5, and this set's is 0\n" +
				"s: lost new: AddonSet flux-system/t delivers add-on \"new\": its priority is 5, and this set's is 0\n" +
				"s: one-old stays: add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now\n" +
				"s: one-old-crds stays: add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now\nt: new\nu: new-crds",
		},
		"ARenamedAddonThatIsNotForThisClusterGoes": {
			assembly.Input{
				Deliveries: []assembly.Delivery{renamed(with(delivery("s"), func(d *assembly.Delivery) { d.Result.Excluded["new"] = "x" }))},
				Live:       []assembly.Live{live("s", object("old"), true)},
			},
			"",
		},
		"MovedFromASetThatStillHasIt": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("new"), func(o *flux.Object) {
					o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "t", Name: "old"}}
				})), delivery("t", object("old"))},
				Live: []assembly.Live{live("t", object("old"), true)},
			},
			"s: lost new: AddonSet flux-system/t delivers HelmRelease flux-system/one-old, as its add-on \"old\": it was there first (for now)\nt: old",
		},
		"RenamedAndItsSetHasTheOldNameAgain": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("ks new"), func(o *flux.Object) {
					o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
				}), object("ks old"))},
				Live: []assembly.Live{live("s", object("ks old"), true)},
			},
			"s: new as(one-old)\ns: old named(one-53c) gate(waits: add-on \"new\" of the same AddonSet had this name before (movedFrom), and would take this add-on over if it came first)",
		},
		"RenamedAndItsSetHasTheOldNameAgainOnANewCluster": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", with(object("new"), func(o *flux.Object) {
				o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
			}), object("old"))}},
			"s: new\ns: old gate(waits: add-on \"new\" of the same AddonSet had this name before (movedFrom), and would take this add-on over if it came first)",
		},
		"RenamedAndItsSetHasTheOldNameAgainAndTheNewOneIsThere": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("new"), func(o *flux.Object) {
					o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
				}), object("old"))},
				Live: []assembly.Live{live("s", object("new"), false)},
			},
			"s: new\ns: old",
		},
		"TwoSwapTheirNamesOnANewCluster": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", with(object("new"), func(o *flux.Object) {
				o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
			}), with(object("old"), func(o *flux.Object) {
				o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "new"}}
			}))}},
			"s: new\ns: old",
		},
		"RenamedAndAfterTheOneThatHasTheOldNameAgain": {
			assembly.Input{Deliveries: []assembly.Delivery{delivery("s", with(object("new", "between"), func(o *flux.Object) {
				o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
			}), object("ks between", "old"), object("old"))}},
			"s: between gate(waits for add-on \"old\" (HelmRelease) to be Ready)\ns: new gate(waits for add-on \"between\" (Kustomization) to be Ready)\ns: old",
		},
		"WhatDeliversTheSameComesFirst": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("ks new"), func(o *flux.Object) {
					o.TargetNamespace, o.MovedFrom = "elsewhere", []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
				})), delivery("t", object("ks old"))},
				Live: []assembly.Live{live("s", object("ks old"), true)},
			},
			"s: new\nt: old",
		},
		"ManifestsAreLostWhole": {
			assembly.Input{Deliveries: []assembly.Delivery{
				delivery("s", with(object("a-crds"), func(o *flux.Object) { o.Form = "Manifests" }), with(object("a"), func(o *flux.Object) { o.Form = "Manifests" })),
				with(delivery("t", object("ks a")), func(d *assembly.Delivery) { d.Priority = 5 }),
			}},
			"s: lost a-crds: AddonSet flux-system/t delivers add-on \"a\": its priority is 5, and this set's is 0\n" +
				"s: lost a: AddonSet flux-system/t delivers add-on \"a\": its priority is 5, and this set's is 0\nt: a",
		},
		"AnAddonIsEditedBesideOneThatDoesNotComeOut": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s", with(object("ks a"), func(o *flux.Object) { o.Path = "other" })), failed)},
				Live:       []assembly.Live{live("s", object("ks a"), true)},
			},
			"s: a",
		},
		"AnotherKindHasANameOfItsOwn": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", object("a"))},
				Live:       []assembly.Live{with(live("s", object("ks a"), true), func(l *assembly.Live) { l.Key.Name = "one-before" })},
			},
			"s: a",
		},
		"ATenantsObjectOfThatNameIsAnother": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", object("a"))},
				Live:       []assembly.Live{with(live("s", object("a"), true), func(l *assembly.Live) { ofTenants(l); l.Key.Name = "one-before" })},
			},
			"s: a",
		},
		"RenamedAndOfAnotherKind": {
			assembly.Input{
				Deliveries: []assembly.Delivery{renamed(delivery("s", object("new")))},
				Live:       []assembly.Live{live("s", object("ks old"), true)},
			},
			"s: new",
		},
		"ARenamedAddonThatIsThereKeepsNothingOfItsOldName": {
			assembly.Input{
				Deliveries: []assembly.Delivery{renamed(with(delivery("s"), func(d *assembly.Delivery) { d.Result.Failed["new"] = render.Errors{{Addon: "new", Message: "x"}} }))},
				Live:       []assembly.Live{live("s", object("old"), true), live("s", object("new"), true)},
			},
			"",
		},
		"MovedFromAnotherNamespace": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s", with(object("new"), func(o *flux.Object) {
					o.MovedFrom, o.Release = []hubv1.MovedAddon{{Namespace: "tenants", AddonSet: "t", Name: "old"}}, object("old").Release
				})), func(d *assembly.Delivery) {
					d.Moves = map[string][]hubv1.MovedAddon{"new": {{Namespace: "tenants", AddonSet: "t", Name: "old"}}}
				})},
				Live: []assembly.Live{with(live("t", object("old"), true), ofTenants)},
			},
			"s: new for(HelmRelease tenants/one-old)",
		},
		"WhatATenantKeepsIsInNoPlatformSetsWay": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					tenants(with(delivery("s"), func(d *assembly.Delivery) {
						d.Result.Failed["new"] = render.Errors{{Addon: "new", Message: "x"}}
						d.Moves = map[string][]hubv1.MovedAddon{"new": {{Namespace: "tenants", AddonSet: "s", Name: "old"}}}
					})),
					delivery("t", with(object("old"), func(o *flux.Object) { o.Release.StorageNamespace = "other" })),
				},
				Live: []assembly.Live{with(live("s", object("old"), true), ofTenants)},
			},
			"s: one-old stays: add-on \"new\" of AddonSet tenants/s is to take it over, and cannot be delivered here now\nt: old",
		},
		"WhatASetKeepsIsInAnotherSetsWay": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					renamed(with(delivery("s"), func(d *assembly.Delivery) { d.Result.Failed["new"] = render.Errors{{Addon: "new", Message: "x"}} })),
					delivery("t", object("ks old")),
				},
				Live: []assembly.Live{live("s", object("old"), true)},
			},
			"s: one-old stays: add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now\n" +
				"t: old gate(waits: what has this name stays, since add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now)",
		},
		"WhatASetKeepsIsNotInTheWayOfWhatIsThere": {
			assembly.Input{
				Deliveries: []assembly.Delivery{
					renamed(with(delivery("s"), func(d *assembly.Delivery) { d.Result.Failed["new"] = render.Errors{{Addon: "new", Message: "x"}} })),
					delivery("t", object("ks old")),
				},
				Live: []assembly.Live{live("s", object("old"), true), live("t", object("ks old"), true)},
			},
			"s: one-old stays: add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now\n" +
				"t: old",
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
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, tc.want, describe(tc.in))
		})
	}
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
