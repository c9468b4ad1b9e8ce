// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// A workload changes hands without being uninstalled, or does not change hands at all.
func TestHandOver(t *testing.T) {
	release := hubv1.HelmReleaseIdentity{Name: "r", Namespace: "n", StorageNamespace: "n"}
	old := func(change ...func(*plan.Observed)) plan.Observed {
		return have("old", append([]func(*plan.Observed){func(o *plan.Observed) { o.Release = release }}, change...)...)
	}
	takes := func(change ...func(*plan.Desired)) plan.Desired {
		d := want("new")
		d.Release, d.Recorded = release, true
		for _, f := range change {
			f(&d)
		}
		return d
	}
	const waits = "AwaitRemoval new (waits for HelmRelease flux-system/old, which delivered this add-on before, to be gone)"
	cases := map[string]struct {
		desired  plan.Desired
		observed plan.Observed
		offline  bool
		want     string
	}{
		"SameRelease":    {takes(), old(), false, "HandOver old (HelmRelease flux-system/new takes it over), " + waits},
		"NotRecordedYet": {takes(func(d *plan.Desired) { d.Recorded = false }), old(), false, "HandOver old (HelmRelease flux-system/new takes it over), " + waits},
		"HandWrittenAndNotRecordedYet": {takes(func(d *plan.Desired) { d.Recorded = false }), old(func(o *plan.Observed) { o.Foreign = true }), false,
			"Hold old (HelmRelease flux-system/new takes it over when that is written down), " + waits},
		"ClusterHasNotAnswered": {takes(), old(), true,
			"Hold old (HelmRelease flux-system/new takes it over when the cluster has answered), AwaitCluster new (nothing is made before the cluster has answered)"},
		"Paused": {takes(), old(func(o *plan.Observed) { o.Set = "paused" }), false,
			"Hold old (HelmRelease flux-system/new takes it over when that is over: the cluster is paused), Suspend, AwaitResume new (the cluster is paused)"},
		"GateIsClosed": {takes(func(d *plan.Desired) { d.Gate = "waits for x" }), old(), false,
			"Hold old (HelmRelease flux-system/new takes it over; it waits for x), AwaitDependency new (waits for x)"},
		"AnotherTarget": {takes(func(d *plan.Desired) { d.Release.Namespace = "other" }), old(), false, "Uninstall old, " + waits},
		"AnotherRelease": {takes(func(d *plan.Desired) { d.Release.Name = "other" }), old(), false,
			"Uninstall old, Create new"},
		"TheSameNameElsewhere":      {takes(func(d *plan.Desired) { d.Release.StorageNamespace = "other" }), old(), false, "Uninstall old, Create new"},
		"InstalledUnderAnotherName": {takes(), old(func(o *plan.Observed) { o.InstalledAs = release; o.InstalledAs.Name = "before" }), false, "Uninstall old, " + waits},
		"InstalledAsItIsAskedFor":   {takes(), old(func(o *plan.Observed) { o.InstalledAs = release }), false, "HandOver old (HelmRelease flux-system/new takes it over), " + waits},
		"AnotherIsToHaveWhatIsInstalled": {takes(), old(func(o *plan.Observed) { o.Release.Name, o.InstalledAs = "later", release }), false,
			"Uninstall old, " + waits},
		"AKustomizationByMove": {
			plan.Desired{Key: key("Kustomization", "new"), Addon: "new", Predecessors: []plan.Key{key("Kustomization", "old")}},
			plan.Observed{Key: key("Kustomization", "old"), Addon: "old"}, false,
			"HandOver old (Kustomization flux-system/new takes it over), AwaitRemoval new (waits for Kustomization flux-system/old, which delivered this add-on before, to be gone)",
		},
		"AKustomizationThatIsNoSuccessor": {
			plan.Desired{Key: key("Kustomization", "new"), Addon: "new"}, plan.Observed{Key: key("Kustomization", "old"), Addon: "old"}, false,
			"Uninstall old, Create new",
		},
		"AReleaseBesideAKustomizationWithAForgedMark": { // which names what all HelmReleases have: no content
			plan.Desired{Key: key("HelmRelease", "new"), Addon: "new", Release: release, Hash: "h1"},
			plan.Observed{Key: key("Kustomization", "old"), Addon: "old", AppliedAs: plan.ReadMark(
				(&plan.Desired{Content: plan.Content{Folder: "/a"}}).Mark(&plan.Observed{}), 0)}, false,
			"Uninstall old, Create new",
		},
		"AKustomizationIntoAnotherNamespace": {
			plan.Desired{Key: key("Kustomization", "new"), Addon: "new", Content: plan.Content{Namespace: "elsewhere"}, Predecessors: []plan.Key{key("Kustomization", "old")}},
			plan.Observed{Key: key("Kustomization", "old"), Addon: "old"}, false,
			"Uninstall old, AwaitRemoval new (waits for Kustomization flux-system/old, which delivered this add-on before, to be gone)",
		},
		"AKustomizationWithOtherNames": {
			plan.Desired{Key: key("Kustomization", "new"), Addon: "new", Content: plan.Content{Names: "a-*"}, Predecessors: []plan.Key{key("Kustomization", "old")}},
			plan.Observed{Key: key("Kustomization", "old"), Addon: "old"}, false,
			"Uninstall old, AwaitRemoval new (waits for Kustomization flux-system/old, which delivered this add-on before, to be gone)",
		},
		"AKustomizationOfAnotherFolder": {
			plan.Desired{Key: key("Kustomization", "new"), Addon: "new", Content: plan.Content{Folder: "/b"}, Predecessors: []plan.Key{key("Kustomization", "old")}},
			plan.Observed{Key: key("Kustomization", "old"), Addon: "old", Content: plan.Content{Folder: "/a"}}, false,
			"Uninstall old, AwaitRemoval new (waits for Kustomization flux-system/old, which delivered this add-on before, to be gone)",
		},
		"FluxHasAppliedAnotherFolderYet": {
			plan.Desired{Key: key("Kustomization", "new"), Addon: "new", Content: plan.Content{Folder: "/a"}, Predecessors: []plan.Key{key("Kustomization", "old")}},
			plan.Observed{Key: key("Kustomization", "old"), Addon: "old", Content: plan.Content{Folder: "/a"}, AppliedAs: "another"}, false,
			"Uninstall old, AwaitRemoval new (waits for Kustomization flux-system/old, which delivered this add-on before, to be gone)",
		},
		"AKustomizationIsNoHelmRelease": {
			takes(func(d *plan.Desired) { d.Predecessors = []plan.Key{key("Kustomization", "old")} }),
			plan.Observed{Key: key("Kustomization", "old"), Addon: "old"}, false,
			"Uninstall old, AwaitRemoval new (waits for Kustomization flux-system/old, which delivered this add-on before, to be gone)",
		},
		"HandWritten": {takes(), old(func(o *plan.Observed) { o.Foreign = true }), false, "HandOver old (HelmRelease flux-system/new takes it over), " + waits},
		"HandWrittenThatDoesNotFit": {takes(func(d *plan.Desired) { d.Release.Namespace = "other" }), old(func(o *plan.Observed) { o.Foreign = true }), false,
			"Hold old (it is not the hub's, and its workload cannot be taken over as it is), " + waits},
		"TheTakerIsThereAlready": {want("old"), old(), false, "Keep old"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			steps := plan.Compute(plan.Input{
				Desired: []plan.Desired{tc.desired}, Observed: []plan.Observed{tc.observed}, MayCreate: !tc.offline,
				Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} },
				Suspend: map[string]string{"paused": "the cluster is paused"}[tc.observed.Set],
			})
			var got []string
			for _, s := range steps {
				line := fmt.Sprintf("%s %s", s.Verb, s.Addon)
				if s.Reason != "" {
					line += " (" + s.Reason + ")"
				}
				if s.Meanwhile != "" {
					line += ", " + string(s.Meanwhile)
				}
				got = append(got, line)
				if s.Verb == plan.HandOver && s.To != tc.desired.Key {
					t.Errorf("it goes to %v", s.To)
				}
			}
			must.Equal(t, tc.want, strings.Join(got, ", "))
		})
	}
}

func TestGatesAndOnce(t *testing.T) {
	gated := func(d plan.Desired) plan.Desired { d.Gate = "waits for x"; return d }
	once := func(d plan.Desired) plan.Desired { d.Once = true; return d }
	other := have("a", func(o *plan.Observed) { o.Hash = "h0" })
	edited := have("a", func(o *plan.Observed) { o.Generation = 4 })
	set := func(o plan.Observed, set string, after ...string) plan.Observed {
		o.Set, o.DependsOn = set, after
		return o
	}
	cases := map[string]struct {
		desired  []plan.Desired
		observed []plan.Observed
		want     string
	}{
		"NotMadeYet":               {[]plan.Desired{gated(want("a"))}, nil, "AwaitDependency a"},
		"AChangeWaits":             {[]plan.Desired{gated(want("a"))}, []plan.Observed{other}, "AwaitDependency a"},
		"AnEditIsUndoneAtOnce":     {[]plan.Desired{gated(want("a"))}, []plan.Observed{edited}, "Update a"},
		"WhatIsThereStays":         {[]plan.Desired{gated(want("a"))}, []plan.Observed{have("a")}, "Keep a"},
		"OnceIsMade":               {[]plan.Desired{once(want("a"))}, nil, "Create a"},
		"OnceIsLeftAlone":          {[]plan.Desired{once(want("a"))}, []plan.Observed{other}, "Keep a"},
		"OnceIsLeftAloneEdited":    {[]plan.Desired{once(want("a"))}, []plan.Observed{edited}, "Keep a"},
		"AWholeSetGoesFirst":       {nil, []plan.Observed{set(have("a"), "base"), set(have("b"), "apps", plan.SetBefore("base"))}, "AwaitDependants a, Uninstall b"},
		"ASetDoesNotWaitForItself": {nil, []plan.Observed{set(have("a"), "base", plan.SetBefore("base"))}, "Uninstall a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			steps := plan.Compute(plan.Input{Desired: tc.desired, Observed: tc.observed, MayCreate: true,
				Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} }})
			var got []string
			for _, s := range steps {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Addon))
			}
			must.Equal(t, tc.want, strings.Join(got, ", "))
		})
	}
}

// Of two objects with one release, the one that goes takes nothing away from the one that stays.
func TestOfTwoWithOneRelease(t *testing.T) {
	release := hubv1.HelmReleaseIdentity{Name: "r", Namespace: "n", StorageNamespace: "n"}
	has := func(o *plan.Observed) { o.Release = release }
	lost, stays := have("lost", has), have("stays", has)
	wanted := want("stays")
	wanted.Release = release
	for name, tc := range map[string]struct {
		desired []plan.Desired
		frozen  map[plan.Key]bool
		change  func(lost, stays *plan.Observed)
		suspend string
		want    string
	}{
		"IsWanted":       {[]plan.Desired{wanted}, nil, nil, "", "HandOver lost, Keep stays"},
		"StaysAsItIs":    {nil, map[plan.Key]bool{stays.Key: true}, nil, "", "HandOver lost"},
		"GoesToo":        {nil, nil, nil, "", "Uninstall lost, Uninstall stays"},
		"IsBeingDeleted": {nil, map[plan.Key]bool{stays.Key: true}, func(_, stays *plan.Observed) { stays.Deleting = true }, "", "Uninstall lost"},
		"AnotherRelease": {[]plan.Desired{wanted}, nil, func(lost, _ *plan.Observed) { lost.Release.StorageNamespace = "m" }, "", "Uninstall lost, Keep stays"},
		"Paused":         {[]plan.Desired{wanted}, nil, nil, "the cluster is paused", "Hold lost, Suspend stays"},
		"AnotherCluster": {[]plan.Desired{wanted}, nil, func(lost, _ *plan.Observed) { lost.Replaced = plan.ReplacedReason }, "", "Orphan lost, Keep stays"},
	} {
		t.Run(name, func(t *testing.T) {
			lost, stays := lost, stays
			if tc.change != nil {
				tc.change(&lost, &stays)
			}
			var got []string
			for _, s := range plan.Compute(plan.Input{
				Desired: tc.desired, Observed: []plan.Observed{lost, stays}, Frozen: tc.frozen, MayCreate: true, Suspend: tc.suspend,
				Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} },
			}) {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Addon))
			}
			must.Equal(t, tc.want, strings.Join(got, ", "))
		})
	}
}

// A tenant's add-on that cannot be made yet, and may never be, keeps nothing of the platform's. One that can be made takes it over.
func TestThePlatformWaitsForNoTenant(t *testing.T) {
	release := hubv1.HelmReleaseIdentity{Name: "r", Namespace: "n", StorageNamespace: "n"}
	old, takes := have("old", func(o *plan.Observed) { o.Release = release }), want("new")
	takes.Release = release
	tenants := takes
	tenants.Key.Namespace = "tenant"
	gated := func(d plan.Desired) plan.Desired { d.Gate = "waits for x"; return d }
	for name, tc := range map[string]struct {
		desired  plan.Desired
		observed []plan.Observed
		want     string
	}{
		"ItCanBeMade":               {tenants, []plan.Observed{old}, "HandOver old, AwaitRemoval new"},
		"ItWaitsForAnAddon":         {gated(tenants), []plan.Observed{old}, "Uninstall old, AwaitDependency new"},
		"ThePlatformsOwnWaits":      {gated(takes), []plan.Observed{old}, "Hold old, AwaitDependency new"},
		"ATenantsOwnWaitsForItself": {gated(tenants), []plan.Observed{have("old", func(o *plan.Observed) { o.Key.Namespace, o.Release = "tenant", release })}, "Hold old, AwaitDependency new"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range plan.Compute(plan.Input{
				Desired: []plan.Desired{tc.desired}, Observed: tc.observed, MayCreate: true,
				Platform: func(namespace string) bool { return namespace == old.Key.Namespace },
				Removal:  func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} },
			}) {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Addon))
			}
			must.Equal(t, tc.want, strings.Join(got, ", "))
		})
	}
}
