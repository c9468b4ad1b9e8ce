// SPDX-License-Identifier: Apache-2.0

package outdated_test

import (
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/outdated"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/floating"
)

const (
	chart   = "spec: {rollout: {}, addons: [{name: web, helmRelease: {chart: {spec: {chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: c}}}}}]}\n"
	pinned  = "{kind: HelmChart, namespace: ns, name: CHART, pinned: 1.0.0, upstream: 1.1.0}"
	running = "clusters: {matched: 3}, rollout: {revision: base-1, phase: Progressing, wave: first, waves: [{name: first, total: 1}, {name: rest, total: 2}]}"
)

// TestOf: the state of one chart, the wave that would get what is new, and what that waits for.
func TestOf(t *testing.T) {
	for name, tc := range map[string]struct{ set, state, wave, message string }{
		"New":         {chart + "status: {clusters: {matched: 3}, sources: [" + pinned + "]}", "Outdated", "first", "the hub makes a revision of it"},
		"UnderWay":    {chart + "status: {" + running + ", sources: [" + pinned + "]}", "Outdated", "first", "waits for the rollout of base-1 to end: Progressing, wave first"},
		"OneCluster":  {chart + "status: {clusters: {matched: 1}, sources: [" + pinned + "]}", "Outdated", "rest", "the hub makes a revision of it"},
		"NoStatusYet": {chart, "Unknown", "", "the hub has not looked at it yet"},
		"Undone": {"metadata: {annotations: {chandler.dev/undo: base-2-e3/base-1-e3}}\n" + chart + "status: {revision: base-2-e3, clusters: {matched: 3}, sources: [" + pinned + "]}",
			"Outdated", "first", "an undo keeps revision base-1-e3: chandler rollout redo ns/base"},
		"OtherIsNotRead": {chart + "status: {clusters: {matched: 3}, sources: [" + pinned + ", {kind: GitRepository, namespace: ns, name: g, what: branch main of GitRepository g}]}",
			"Outdated", "first", "waits for Flux to read branch main of GitRepository g"},
		"UpToDate": {chart + "status: {sources: [{kind: HelmChart, namespace: ns, name: CHART, pinned: 1.1.0, upstream: 1.1.0, message: it fails now}]}",
			"UpToDate", "", "it fails now"},
		"NotReadYet": {chart + "status: {sources: [{kind: HelmChart, namespace: ns, name: CHART, pinned: 1.1.0}]}", "Unknown", "", "Flux is reading it"},
	} {
		t.Run(name, func(t *testing.T) {
			one := only(t, tc.set)
			if one.State != tc.state || one.Wave != tc.wave || one.Message != tc.message {
				t.Errorf("it is %q, the wave %q, and the message %q", one.State, one.Wave, one.Message)
			}
		})
	}
}

// TestPaused: a pause is named, and one that is over is not.
func TestPaused(t *testing.T) {
	for until, want := range map[string]string{
		"{}":                              "the set is paused",
		`{until: "2026-06-02T00:00:00Z"}`: "the set is paused until 2026-06-02T00:00:00Z",
		`{until: "2026-05-31T00:00:00Z"}`: "the hub makes a revision of it",
	} {
		text := "spec: {pause: " + until + ", " + chart[len("spec: {"):] + "status: {clusters: {matched: 3}, sources: [" + pinned + "]}"
		if one := only(t, text); one.Message != want {
			t.Errorf("%s: %q, want %q", until, one.Message, want)
		}
	}
}

// TestFloats: without pins, and all at once, upstream reaches every cluster as Flux brings it.
func TestFloats(t *testing.T) {
	for _, rollout := range []string{"{sources: Follow}", "{strategy: AllAtOnce}"} {
		text := "spec: {rollout: " + rollout + chart[len("spec: {rollout: {}"):]
		if one := only(t, text); one.State != outdated.Floats || one.Current() {
			t.Errorf("%s: %+v", rollout, one)
		}
	}
}

// only returns the only item of a set.
func only(t *testing.T, text string) outdated.Item {
	t.Helper()
	set := &hubv1.AddonSet{}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), set))
	set.Namespace, set.Name = "ns", "base"
	p := must.Get(compile.Compile(&set.Spec, compile.Author{Namespace: "ns", Set: "base", Platform: true})).Or(t)
	found := floating.Find(p, render.Target{HubID: "chandler", Namespace: "ns", Set: "base"}, floating.ChoicesOf(p, nil), nil)
	for i := range set.Status.Sources {
		if s := &set.Status.Sources[i]; s.Name == "CHART" {
			s.Name = found.Objects[0].Object.GetName()
		}
	}
	found.Objects[0].Got, found.Objects[0].Needed = true, true
	items, err := outdated.Of(&outdated.Input{Set: set, Program: p, Found: found, Now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)})
	if err != nil || len(items) != 1 {
		t.Fatalf("%v, %+v", err, items)
	}
	return items[0]
}
