// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// An edit that Flux answers with a reinstall waits for the removal guard, and with it everything else about that add-on.
func TestReinstall(t *testing.T) {
	release := func(name string) hubv1.HelmReleaseIdentity {
		return hubv1.HelmReleaseIdentity{Name: name, Namespace: "n", StorageNamespace: "n"}
	}
	desired := func(f func(*plan.Desired)) plan.Desired {
		d := want("a")
		d.Hash, d.Release = "h2", release("new")
		if f != nil {
			f(&d)
		}
		return d
	}
	old := func(o *plan.Observed) { o.Release = release("old") }
	written := func(more func(*plan.Observed)) func(*plan.Observed) { // for another release than Flux has installed
		return func(o *plan.Observed) { o.Release, o.InstalledAs = release("new"), release("old"); more(o) }
	}
	down := func(o *plan.Observed) { o.Held, o.Suspended = true, true }
	chart := func(name string) plan.Desired { return desired(func(d *plan.Desired) { d.Chart = name }) }
	runs := func(chart, installed string) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Release, o.Chart, o.Installed = release("new"), chart, installed }
	}
	cases := map[string]struct {
		desired  plan.Desired
		observed func(*plan.Observed)
		want     plan.Verb
		anew     bool
	}{
		"Asks":              {desired(nil), old, plan.Ask, true},
		"MayNow":            {desired(func(d *plan.Desired) { d.MayReinstall = true }), old, plan.Update, true},
		"SamePlace":         {desired(nil), func(o *plan.Observed) { o.Release = release("new") }, plan.Update, false},
		"Suspended":         {desired(nil), func(o *plan.Observed) { old(o); o.Held, o.Suspended = true, true }, plan.Resume, false},
		"WaitsForItsTurn":   {desired(func(d *plan.Desired) { d.Gate = "waits" }), old, plan.AwaitDependency, true},
		"AppliedOnce":       {desired(func(d *plan.Desired) { d.Once = true }), old, plan.Keep, false},
		"TargetNamespace":   {desired(func(d *plan.Desired) { d.Release, d.Namespace = hubv1.HelmReleaseIdentity{}, "x" }), func(o *plan.Observed) { o.Namespace = "y" }, plan.Ask, true},
		"AnotherChart":      {chart("b"), runs("a", "a"), plan.Ask, true},
		"AnotherChartMay":   {desired(func(d *plan.Desired) { d.Chart, d.MayReinstall = "b", true }), runs("a", "a"), plan.Update, true},
		"TheSameChart":      {chart("a"), runs("a", "a"), plan.Update, false},
		"InPlace":           {chart(""), runs("a", "a"), plan.Update, false},
		"NotInstalledYet":   {chart("b"), runs("a", ""), plan.Ask, true},
		"BackAgain":         {chart("a"), runs("b", "a"), plan.Update, false},
		"AnotherName":       {chart("mirrored"), runs("mirrored", "a"), plan.Update, false},
		"FromChartRef":      {chart("b"), runs("", "a"), plan.Ask, true},
		"FromChartRefSame":  {chart("a"), runs("", "a"), plan.Update, false},
		"NothingKnown":      {chart("a"), runs("", ""), plan.Update, false},
		"Names":             {desired(func(d *plan.Desired) { d.Release, d.Names = hubv1.HelmReleaseIdentity{}, "x-*" }), func(o *plan.Observed) {}, plan.Ask, true},
		"WrittenWhileDown":  {desired(nil), written(down), plan.Ask, true},
		"WrittenAndMayGoOn": {desired(func(d *plan.Desired) { d.MayReinstall = true }), written(down), plan.Update, true},
		"WrittenOnce":       {desired(func(d *plan.Desired) { d.Once = true }), written(down), plan.Resume, false},
		"WrittenAndAtIt":    {desired(func(d *plan.Desired) { d.Hash, d.MayReinstall = "h1", true }), written(func(*plan.Observed) {}), plan.Keep, true},
		"WrittenAndBack":    {desired(func(d *plan.Desired) { d.Release = release("old") }), written(down), plan.Update, false},
		"NoTargetNamespace": {desired(func(d *plan.Desired) { d.Release = hubv1.HelmReleaseIdentity{} }), func(o *plan.Observed) { o.Namespace = "y" }, plan.Ask, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			steps := plan.Compute(plan.Input{Desired: []plan.Desired{tc.desired}, Observed: []plan.Observed{have("a", tc.observed)}, MayCreate: true})
			if len(steps) != 1 || steps[0].Verb != tc.want || (steps[0].Reinstall != nil) != tc.anew {
				t.Errorf("got %+v, want %s", steps, tc.want)
			}
			if steps[0].Leaving() {
				t.Error("what is reinstalled is not on its way out")
			}
		})
	}
}

// A message says what is uninstalled, and what is installed in its stead; and what was granted for one chart is not for another.
func TestReinstallSays(t *testing.T) {
	installed := map[string]string{"installed": "installed"}
	step := func(chart, release string) plan.Step {
		d := want("a")
		d.Hash, d.Chart, d.Release = "h2", chart, hubv1.HelmReleaseIdentity{Name: release, Namespace: "n", StorageNamespace: "n"}
		return plan.Compute(plan.Input{Desired: []plan.Desired{d}, MayCreate: true, Observed: []plan.Observed{have("a", func(o *plan.Observed) {
			o.Chart, o.Installed, o.Release = "old", installed[chart], hubv1.HelmReleaseIdentity{Name: "r", Namespace: "n", StorageNamespace: "n"}
		})}})[0]
	}
	for _, tc := range []struct{ chart, release, want string }{
		{"new", "r", `Flux would uninstall release "r" of chart "old" in namespace "n" (records in "n") and install release "r" of chart "new" in namespace "n" (records in "n")`},
		{"installed", "s", `Flux would uninstall release "r" in namespace "n" (records in "n") and install release "s" in namespace "n" (records in "n")`},
		{"old", "s", `Flux would uninstall release "r" in namespace "n" (records in "n") and install release "s" in namespace "n" (records in "n")`},
	} {
		if s := step(tc.chart, tc.release); !strings.HasPrefix(s.Reason, tc.want) {
			t.Errorf("%s, want %s", s.Reason, tc.want)
		}
	}
	if a, b := step("new", "r"), step("newer", "r"); a.Reinstall.String() == b.Reinstall.String() {
		t.Errorf("two charts are one place: %s", a.Reinstall)
	}
}

// What is to go asks the guard, all of it at once, and whatever depends on it too: the order comes after.
func TestAsk(t *testing.T) {
	ask := func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Ask, Reason: "r"} }
	after := func(o *plan.Observed) { o.DependsOn = []string{"a"} }
	var got []string
	for _, s := range plan.Compute(plan.Input{Observed: []plan.Observed{have("a"), have("b", after)}, MayCreate: true, Removal: ask}) {
		got = append(got, string(s.Verb)+" "+s.Addon)
		if !s.Leaving() {
			t.Errorf("%s is on its way out", s.Addon)
		}
	}
	must.Equal(t, []string{"Ask a", "Ask b"}, got)
}

// What a Kustomization has applied is noted when it is to apply something else, and forgotten when Flux has succeeded with that.
func TestMark(t *testing.T) {
	wants := func(folder string) plan.Desired {
		return plan.Desired{Key: key("Kustomization", "a"), Content: plan.Content{Folder: folder}}
	}
	has := func(folder string) plan.Observed {
		return plan.Observed{Key: key("Kustomization", "a"), Content: plan.Content{Folder: folder}, Generation: 3}
	}
	noted := func(d plan.Desired, o plan.Observed) string { return d.Mark(&o) }
	if m := noted(wants("/a"), has("/a")); m != "" {
		t.Errorf("of one that stays: %q", m)
	}
	mark := noted(wants("/b"), has("/a"))
	if plan.ReadMark(mark, 3) == "" || plan.ReadMark(mark, 4) != "" {
		t.Errorf("%q: at generation 3 it says %q, at 4 %q", mark, plan.ReadMark(mark, 3), plan.ReadMark(mark, 4))
	}
	later := has("/b")
	later.Generation, later.Mark, later.AppliedAs = 4, mark, plan.ReadMark(mark, 3)
	if m := noted(wants("/c"), later); plan.ReadMark(m, 4) != later.AppliedAs || plan.ReadMark(m, 5) != "" {
		t.Errorf("of one that has not come to what it was to apply: %q, want the same as in %q, at the generation that it has", m, mark)
	}
	if m := noted(wants("/b"), later); m != mark {
		t.Errorf("of one that is written once more as it is: %q, want %q", m, mark)
	}
	resumed := later
	resumed.Suspended = true
	if m := noted(wants("/b"), resumed); plan.ReadMark(m, 4) != later.AppliedAs || plan.ReadMark(m, 5) != "" {
		t.Errorf("of one that is resumed, after Flux has observed the suspension: %q", m)
	}
	// Flux observes the suspension, at 5, and its Ready=True may name generation 4, though it is of 3.
	if m := later.MarkSuspended(); plan.ReadMark(m, 5) != later.AppliedAs || plan.ReadMark(m, 6) != "" {
		t.Errorf("of one that is about to be suspended: %q", m)
	}
	if m := resumed.MarkSuspended(); plan.ReadMark(m, 4) != later.AppliedAs || plan.ReadMark(m, 5) != "" || m != resumed.MarkResumed() {
		t.Errorf("of one that somebody has suspended: %q, and about to be resumed: %q", m, resumed.MarkResumed())
	}
	if m := new(has("/a")).MarkSuspended(); m != "" {
		t.Errorf("of one that has come to what it was to apply, and is about to be suspended: %q", m)
	}
	if m := noted(wants("/a"), later); m != "" {
		t.Errorf("of one that goes back: %q", m)
	}
	if m := noted(plan.Desired{Key: key("HelmRelease", "a"), Release: hubv1.HelmReleaseIdentity{Name: "a"}}, has("/a")); m != "" {
		t.Errorf("of a HelmRelease: %q", m)
	}
	for want, o := range map[bool]plan.Observed{false: has("/a"), true: has("/b")} {
		if d := wants("/a"); d.Moves(&o) != want {
			t.Errorf("from %s to %s: it moves: %t", o.Folder, d.Folder, !want)
		}
	}
	for _, bad := range []string{"", "x", "x y", "3"} {
		if got := plan.ReadMark(bad, 0); got != "" {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
