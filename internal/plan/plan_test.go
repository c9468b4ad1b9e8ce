// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

func key(kind, name string) plan.Key {
	return plan.Key{Kind: kind, Namespace: "flux-system", Name: name}
}

func want(addon string) plan.Desired {
	return plan.Desired{Key: key("HelmRelease", addon), Addon: addon, Hash: "h1", Labels: map[string]string{"l": "1"}}
}

func have(addon string, with ...func(*plan.Observed)) plan.Observed {
	o := plan.Observed{Key: key("HelmRelease", addon), Addon: addon, Hash: "h1", Labels: map[string]string{"l": "1", "foreign": "x"}, Generation: 3, Applied: 3}
	for _, f := range with {
		f(&o)
	}
	return o
}

func after(names ...string) func(*plan.Observed) {
	return func(o *plan.Observed) { o.DependsOn = names }
}

func TestCompute(t *testing.T) {
	uninstall := teardown.Decision{Mode: teardown.Uninstall}
	cases := map[string]struct {
		reason   string
		desired  []plan.Desired
		observed []plan.Observed
		offline  bool
		removal  teardown.Decision
		frozen   map[plan.Key]bool
		want     string
	}{
		"Create":         {"it is not there", []plan.Desired{want("a")}, nil, false, uninstall, nil, "Create a"},
		"NotBeforeProbe": {"the cluster has not answered", []plan.Desired{want("a")}, nil, true, uninstall, nil, "AwaitCluster a"},
		"Keep":           {"nothing changed", []plan.Desired{want("a")}, []plan.Observed{have("a")}, false, uninstall, nil, "Keep a"},
		"KeepOffline":    {"what runs is left alone", []plan.Desired{want("a")}, []plan.Observed{have("a")}, true, uninstall, nil, "Keep a"},
		"ChangeOffline":  {"nobody knows which cluster it is", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Hash = "h0" })}, true, uninstall, nil, "AwaitCluster a"},
		"ResumeOffline":  {"what may not be changed is resumed as it is", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Hash, o.Held, o.Suspended = "h0", true, true })}, true, uninstall, nil, "Resume a"},
		"Changed":        {"the hash differs", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Hash = "h0" })}, false, uninstall, nil, "Update a"},
		"ForeignEdit":    {"somebody edited the spec", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Generation = 4 })}, false, uninstall, nil, "Update a"},
		"LaggingCache":   {"our own write has not come back yet", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Generation = 2 })}, false, uninstall, nil, "Keep a"},
		"StatusLost":     {"the applied generation is not known", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Applied = 0 })}, false, uninstall, nil, "Update a"},
		"LabelRemoved":   {"somebody removed our label", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Labels = nil })}, false, uninstall, nil, "Update a"},
		"BeingDeleted":   {"it is made again when it is gone", []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Deleting = true })}, false, uninstall, nil, "AwaitRemoval a"},
		"Dropped":        {"no longer wanted", nil, []plan.Observed{have("a")}, false, uninstall, nil, "Uninstall a"},
		"DroppedHeld":    {"may not go yet", nil, []plan.Observed{have("a")}, false, teardown.Decision{Mode: teardown.Hold, Reason: "r"}, nil, "Hold a (r)"},
		"Released":       {"orphaned, in no order", nil, []plan.Observed{have("a"), have("b", after("a"))}, false, teardown.Decision{Mode: teardown.Orphan, Reason: "r"}, nil, "Orphan a (r), Orphan b (r)"},
		"ReverseOrder": {"b depends on a, c on b", nil, []plan.Observed{have("a"), have("b", after("a")), have("c", after("b"))}, false, uninstall, nil,
			"AwaitDependants a (waits for add-on b, which depends on it, to be gone), AwaitDependants b (waits for add-on c, which depends on it, to be gone), Uninstall c"},
		"DependantStays":  {"b is desired and depends on a no longer", []plan.Desired{want("b")}, []plan.Observed{have("a"), have("b", after("a"))}, false, uninstall, nil, "Uninstall a, Keep b"},
		"CycleOfHandEdit": {"nothing hangs for ever", nil, []plan.Observed{have("a", after("b")), have("b", after("a"))}, false, uninstall, nil, "Uninstall a (the dependencies form a cycle), Uninstall b (the dependencies form a cycle)"},
		"KindChanged": {"the old form goes first", []plan.Desired{{Key: key("Kustomization", "a"), Addon: "a"}}, []plan.Observed{have("a")}, false, uninstall, nil,
			"Uninstall a, AwaitRemoval a (waits for HelmRelease flux-system/a, which delivered this add-on before, to be gone)"},
		"Frozen": {"the hub does not know what it should be", nil, []plan.Observed{have("a")}, false, uninstall, map[plan.Key]bool{key("HelmRelease", "a"): true}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			steps := plan.Compute(plan.Input{
				Desired: tc.desired, Observed: tc.observed, MayCreate: !tc.offline, Frozen: tc.frozen,
				Removal: func(plan.Observed) teardown.Decision { return tc.removal },
			})
			var got []string
			for _, s := range steps {
				line := fmt.Sprintf("%s %s", s.Verb, s.Addon)
				if s.Reason != "" && s.Verb != plan.AwaitCluster && !strings.Contains(s.Reason, "made again") {
					line += " (" + s.Reason + ")"
				}
				got = append(got, line)
			}
			if d := cmp.Diff(tc.want, strings.Join(got, ", ")); d != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, d)
			}
		})
	}
}
