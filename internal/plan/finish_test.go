// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// TestFinish: what Flux is done with goes when nothing of it is left that is nobody's: another object has it, or it has been told.
func TestFinish(t *testing.T) {
	release := hubv1.HelmReleaseIdentity{Name: "r", Namespace: "n", StorageNamespace: "n"}
	left := []string{plan.ReleasePrefix + "n/r"}
	done := func(change ...func(*plan.Observed)) plan.Observed {
		return have("old", append([]func(*plan.Observed){func(o *plan.Observed) {
			o.Release, o.Deleting, o.Finished, o.Suspended, o.Left = release, true, true, true, left
		}}, change...)...)
	}
	heir := func(change ...func(*plan.Observed)) plan.Observed {
		return have("new", append([]func(*plan.Observed){func(o *plan.Observed) { o.Release = release }}, change...)...)
	}
	nothing := func(o *plan.Observed) { o.Left = nil }
	toNew := func(o *plan.Observed) { o.Heir = key("HelmRelease", "new") }
	noted := func(o *plan.Observed) { o.Noted = true }
	goes := func(o *plan.Observed) { o.Deleting = true }
	same, next := want("old"), want("new")
	same.Release, next.Release = release, release
	gated, changed, another := same, same, next
	gated.Gate = "waits for x"
	changed.Gate, changed.Hash = "waits for x", "changed"
	another.Release.Name = "other"
	later, edited := next, next
	later.Gate = "waits for x"
	edited.Gate, edited.Hash = "waits for x", "changed"
	hold := teardown.Decision{Mode: teardown.Hold, Reason: "not yet"}
	all := func(o ...plan.Observed) []plan.Observed { return o }
	for name, tc := range map[string]struct {
		desired  []plan.Desired
		observed []plan.Observed
		frozen   bool
		suspend  string
		removal  teardown.Decision
		want     string
	}{
		"NothingIsLeft":                {observed: all(done(nothing)), want: "Finish old"},
		"NothingIsLeftWhilePaused":     {desired: []plan.Desired{same}, observed: all(done(nothing)), suspend: "paused", want: "Finish old, AwaitResume old"},
		"MadeAgain":                    {desired: []plan.Desired{same}, observed: all(done()), want: "Create old"},
		"MadeAgainAfterAPause":         {desired: []plan.Desired{same}, observed: all(done()), suspend: "paused", want: "AwaitResume old"},
		"MadeAgainThoughItsGateIsShut": {desired: []plan.Desired{gated}, observed: all(done()), want: "Create old"},
		"ChangedAndItsGateIsShut":      {desired: []plan.Desired{changed}, observed: all(done()), want: "LetGo old, AwaitDependency old"},
		"NobodyWantsIt":                {observed: all(done()), want: "LetGo old"},
		"NobodyKnows":                  {observed: all(done()), frozen: true, removal: hold, want: "LetGo old"},
		"NotYet":                       {observed: all(done()), removal: hold, want: "Hold old"},
		"OfAnotherCluster":             {desired: []plan.Desired{next}, observed: all(done(func(o *plan.Observed) { o.Replaced = plan.ReplacedReason })), want: "LetGo old, AwaitRemoval new"},
		"TheHeirIsNotNamedYet":         {desired: []plan.Desired{next}, observed: all(done()), want: "HandOver old, AwaitRemoval new"},
		"TheHeirIsMade":                {desired: []plan.Desired{next}, observed: all(done(toNew)), want: "HandOver old, Create new"},
		"TheHeirWaitsForAPause":        {desired: []plan.Desired{next}, observed: all(done(toNew)), suspend: "paused", want: "Hold old, AwaitResume new"},
		"TheHeirsGateIsShut":           {desired: []plan.Desired{later}, observed: all(done(toNew)), want: "LetGo old, AwaitDependency new"},
		"TheHeirsGateIsShutForAChange": {desired: []plan.Desired{edited}, observed: all(done(toNew), heir()), want: "LetGo old, AwaitDependency new"},
		"TheHeirIsThereAsItIsToBe":     {desired: []plan.Desired{later}, observed: all(done(toNew), heir()), want: "HandOver old, Keep new"},
		"FluxHasNotNotedTheHeir":       {desired: []plan.Desired{next}, observed: all(done(toNew), heir()), want: "HandOver old, Keep new"},
		"FluxHasNotedTheHeir":          {desired: []plan.Desired{next}, observed: all(done(toNew), heir(noted)), want: "Finish old, Keep new"},
		"TheHeirIsSomethingElseNow":    {desired: []plan.Desired{another}, observed: all(done(toNew), heir(func(o *plan.Observed) { o.Release.Name = "other" })), want: "LetGo old, Keep new"},
		"TheHeirIsDroppedAndNotNoted":  {observed: all(done(toNew), heir()), want: "Uninstall new, HandOver old"},
		"TheHeirIsDroppedAndNoted":     {observed: all(done(toNew), heir(noted)), want: "Uninstall new, Finish old"},
		"TheHeirGoesAsWell":            {observed: all(done(toNew), heir(goes)), want: "Uninstall new, LetGo old"},
		"TheHeirHasAnHeir": {observed: all(done(func(o *plan.Observed) { o.Heir = key("HelmRelease", "mid") }),
			have("mid", goes, toNew), heir()), want: "Uninstall mid, Uninstall new, HandOver old"},
	} {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{Desired: tc.desired, Observed: tc.observed, MayCreate: true, Suspend: tc.suspend, Frozen: map[plan.Key]bool{}}
			in.Frozen[key("HelmRelease", "old")] = tc.frozen
			in.Removal = func(o plan.Observed) teardown.Decision {
				if tc.removal.Mode == "" {
					return teardown.Decision{Mode: teardown.Uninstall}
				}
				return tc.removal
			}
			var got []string
			for _, s := range plan.Compute(in) {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Key.Name))
			}
			if is := strings.Join(got, ", "); is != tc.want {
				t.Errorf("%s, want %s", is, tc.want)
			}
		})
	}
}

// TestLeaves: what an object leaves is what Flux has noted, or has tried, and has not removed.
func TestLeaves(t *testing.T) {
	o := plan.Observed{Key: key("Kustomization", "old"), Content: plan.Content{Folder: "/a"}}
	a := o.Has()[0]
	marked := o
	marked.AppliedAs = "b"
	for name, tc := range map[string]struct {
		of                 plan.Observed
		noted, tried, none bool
		want               []string
	}{
		"removed":                   {of: o},
		"suspended":                 {of: o, noted: true, want: []string{a}},
		"half applied":              {of: o, tried: true, none: true, want: []string{a, "inherited"}},
		"half moved, and removed":   {of: marked, want: []string{a}},
		"half moved, and suspended": {of: marked, noted: true, want: []string{a, "content b"}},
		"never looked at":           {of: o, none: true, want: []string{"inherited"}},
	} {
		got := tc.of.Leaves(tc.noted, tc.tried, tc.none, []string{"inherited"})
		slices.Sort(tc.want)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestFinishForged: what the platform's has left waits for no object of a tenant's that nobody delivers and that Flux has noted nothing of.
func TestFinishForged(t *testing.T) {
	release := hubv1.HelmReleaseIdentity{Name: "r", Namespace: "n", StorageNamespace: "n"}
	platforms := have("old", func(o *plan.Observed) { o.Release = release })
	tenants := have("new", func(o *plan.Observed) { o.Key.Namespace, o.Release = "tenant", release })
	done, noted, delivered := platforms, tenants, want("new")
	done.Deleting, done.Finished, done.Suspended, done.Left = true, true, true, platforms.Has()
	noted.Noted = true
	named := done
	named.Heir = tenants.Key
	delivered.Key, delivered.Release = tenants.Key, release
	for name, tc := range map[string]struct {
		observed []plan.Observed
		desired  []plan.Desired
		want     string
	}{
		"ItGoes":         {[]plan.Observed{platforms, tenants}, nil, "Uninstall old"},
		"ItIsFinished":   {[]plan.Observed{done, tenants}, nil, "LetGo old"},
		"AndNamesIt":     {[]plan.Observed{named, tenants}, nil, "LetGo old"},
		"FluxHasNotedIt": {[]plan.Observed{done, noted}, nil, "Finish old"},
		"ItIsDelivered":  {[]plan.Observed{platforms, tenants}, []plan.Desired{delivered}, "HandOver old, Keep new"},
		"AndNotNoted":    {[]plan.Observed{done, tenants}, []plan.Desired{delivered}, "HandOver old, Keep new"},
		"ATenantsKeepsHisOwn": {[]plan.Observed{have("old", func(o *plan.Observed) { o.Key.Namespace, o.Release = "tenant", release }), tenants}, nil,
			"HandOver old"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range plan.Compute(plan.Input{
				Desired: tc.desired, Observed: tc.observed, MayCreate: true, Frozen: map[plan.Key]bool{tenants.Key: true},
				Platform: func(namespace string) bool { return namespace == platforms.Key.Namespace },
				Removal:  func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} },
			}) {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Key.Name))
			}
			if is := strings.Join(got, ", "); is != tc.want {
				t.Errorf("%s, want %s", is, tc.want)
			}
		})
	}
}

// TestHeirsOfMany: somebody forges any number of objects with the release of what the platform's have left, also in a chain of heirs. What is
// done for each finished object does not grow with them.
func TestHeirsOfMany(t *testing.T) {
	const many = 1000
	release := hubv1.HelmReleaseIdentity{Name: "r", Namespace: "n", StorageNamespace: "n"}
	for name, chained := range map[string]bool{"Loose": false, "Chained": true} {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{MayCreate: true, Frozen: map[plan.Key]bool{},
				Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} }}
			looks := 0
			in.Platform = func(namespace string) bool { looks++; return namespace != "tenant" }
			for i := range many {
				forged := have(fmt.Sprint("forged", i), func(o *plan.Observed) { o.Key.Namespace, o.Release = "tenant", release })
				done := have(fmt.Sprint("done", i), func(o *plan.Observed) {
					o.Release, o.Deleting, o.Finished, o.Suspended = release, true, true, true
					o.Left = o.Has()
				})
				if chained {
					forged.Heir, done.Heir = plan.Key{Kind: "HelmRelease", Namespace: "tenant", Name: fmt.Sprint("forged", i+1)}, plan.Key{Kind: "HelmRelease", Namespace: "tenant", Name: "forged0"}
				}
				in.Frozen[forged.Key] = true
				in.Observed = append(in.Observed, forged, done)
			}
			steps := plan.Compute(in)
			if len(steps) != many || slices.ContainsFunc(steps, func(s plan.Step) bool { return s.Verb != plan.LetGo }) {
				t.Errorf("%d steps, such as %+v", len(steps), steps[0])
			}
			if looks > 100*many {
				t.Errorf("%d objects were looked at for %d that are finished", looks, many)
			}
		})
	}
}
