// SPDX-License-Identifier: Apache-2.0

package assembly_test

import (
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// TestNames: which object an add-on goes on with, under which name, and what stays until an add-on can take it over.
func TestNames(t *testing.T) {
	cases{
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
		"Moved": {
			assembly.Input{
				Deliveries: []assembly.Delivery{delivery("s", with(object("new"), func(o *flux.Object) {
					o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old"}}
				}))},
				Live: []assembly.Live{live("s", object("old"), true)},
			},
			"s: new as(one-old)",
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
				Deliveries: []assembly.Delivery{renamed(with(delivery("s"), failing("new")))},
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
		"AnAddonIsEditedBesideOneThatDoesNotComeOut": {
			assembly.Input{
				Deliveries: []assembly.Delivery{with(delivery("s", with(object("ks a"), func(o *flux.Object) { o.Path = "other" })), failing("b"))},
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
				Deliveries: []assembly.Delivery{renamed(with(delivery("s"), failing("new")))},
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
						failing("new")(d)
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
					renamed(with(delivery("s"), failing("new"))),
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
					renamed(with(delivery("s"), failing("new"))),
					delivery("t", object("ks old")),
				},
				Live: []assembly.Live{live("s", object("old"), true), live("t", object("ks old"), true)},
			},
			"s: one-old stays: add-on \"new\" of AddonSet flux-system/s is to take it over, and cannot be delivered here now\n" +
				"t: old",
		},
	}.run(t)
}
