// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/pin"
)

const commit = "8a0a69e0f0910bb3e11b0a4789781ee4f11f8990"

func TestRead(t *testing.T) {
	sha := strings.Repeat("ab", 32)
	for _, tc := range []struct {
		kind, revision string
		valuesFiles    bool
		want           string // empty for an error
	}{
		{"HelmChart", "1.2.3", false, "1.2.3"},
		{"HelmChart", "v1.2.3-rc.1+build", false, "v1.2.3-rc.1+build"},
		{"HelmChart", "1.2.3+4", true, "1.2.3"},
		{"HelmChart", "1.2.3; rm", false, ""},
		{"HelmChart", "latest", false, ""},
		{"HelmChart", "1.2.3-" + strings.Repeat("a", 200), false, ""},
		{"HelmChart", "", false, ""},
		{"GitRepository", "main@sha1:" + commit, false, commit},
		{"GitRepository", "refs/heads/a@b@sha1:" + commit, false, commit},
		{"GitRepository", "sha1:" + commit, false, commit},
		{"GitRepository", "main@sha256:" + sha, false, sha},
		{"GitRepository", "main@sha1:" + sha, false, ""},
		{"GitRepository", "main/" + commit, false, ""},
		{"GitRepository", "main@sha1:" + strings.ToUpper(commit), false, ""},
		{"OCIRepository", "v1@sha256:" + sha, false, "sha256:" + sha},
		{"OCIRepository", "sha256:" + sha, false, "sha256:" + sha},
		{"OCIRepository", "v1@sha256:" + commit, false, ""},
		{"Bucket", "sha256:" + sha, false, ""},
	} {
		got, err := pin.Read(tc.kind, tc.revision, tc.valuesFiles)
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s %q: %q, %v; want %q", tc.kind, tc.revision, got, err, tc.want)
		}
	}
}

func TestNext(t *testing.T) {
	const chart = "HelmChart/flux-system/x"
	has := func(version string) *compile.Pins { return &compile.Pins{Sources: map[string]string{chart: version}} }
	float := func(upstream, why string) pin.Float {
		return pin.Float{Key: chart, What: "chart x", Used: true, Needed: true, Upstream: upstream, Why: why}
	}
	unneeded := func(f pin.Float) pin.Float { f.Needed = false; return f }
	colors := func(data map[string]string) pin.Float {
		return pin.Float{Key: "colors", ConfigMap: true, What: "ConfigMap colors", Needed: true, Known: true, Data: data}
	}
	for name, tc := range map[string]struct {
		in   pin.Input
		want pin.Output
	}{
		"First":          {pin.Input{Floats: []pin.Float{float("1.0.0", "")}}, pin.Output{Pins: has("1.0.0")}},
		"FluxIsAtWork":   {pin.Input{Floats: []pin.Float{float("", "")}}, pin.Output{Pins: &compile.Pins{}, Waits: "Flux to read chart x"}},
		"DoesNotExist":   {pin.Input{Floats: []pin.Float{float("", "no such chart")}}, pin.Output{Pins: &compile.Pins{}, Waits: "chart x: no such chart", Broken: true}},
		"NobodyNeedsIt":  {pin.Input{Floats: []pin.Float{unneeded(float("", "no such chart"))}}, pin.Output{Pins: &compile.Pins{}}},
		"UnneededAtWork": {pin.Input{Floats: []pin.Float{unneeded(float("", ""))}}, pin.Output{Pins: &compile.Pins{}}},
		"UnneededNews":   {pin.Input{Present: has("1.0.0"), SameSpec: true, Floats: []pin.Float{unneeded(float("1.1.0", ""))}}, pin.Output{Pins: has("1.0.0")}},
		"UnneededNewsWithOthers": {pin.Input{Present: has("1.0.0"), SameSpec: true, Floats: []pin.Float{unneeded(float("1.1.0", "")), colors(map[string]string{"a": "b"})}},
			pin.Output{Pins: &compile.Pins{Sources: has("1.1.0").Sources, ConfigMaps: map[string]map[string]string{"colors": {"a": "b"}}}}},
		"MapGotTooLarge":            {pin.Input{Present: &compile.Pins{ConfigMaps: map[string]map[string]string{"colors": {"a": "b"}}}, SameSpec: true}, pin.Output{Pins: &compile.Pins{}}},
		"NothingHeldDuringARollout": {pin.Input{Present: &compile.Pins{}, SameSpec: true, Hold: true, Floats: []pin.Float{float("1.1.0", "")}}, pin.Output{Pins: &compile.Pins{}}},
		"BrokenComesLast":           {pin.Input{Floats: []pin.Float{unneeded(float("", "")), {Key: "a", What: "a", Needed: true, Why: "broken"}}}, pin.Output{Pins: &compile.Pins{}, Waits: "a: broken", Broken: true}},
		"News":                      {pin.Input{Present: has("1.0.0"), SameSpec: true, Floats: []pin.Float{float("1.1.0", "")}}, pin.Output{Pins: has("1.1.0")}},
		"NewsDuringARollout": {pin.Input{Present: has("1.0.0"), SameSpec: true, Hold: true, Floats: []pin.Float{float("1.1.0", "")}},
			pin.Output{Pins: has("1.0.0"), News: []string{"chart x"}}},
		"NoNewsDuringARollout": {pin.Input{Present: has("1.0.0"), SameSpec: true, Hold: true, Floats: []pin.Float{float("1.0.0", "")}}, pin.Output{Pins: has("1.0.0")}},
		"AnEditDuringARollout": {pin.Input{Present: has("1.0.0"), Hold: true, Floats: []pin.Float{float("1.1.0", "")}}, pin.Output{Pins: has("1.1.0")}},
		"UpstreamIsDown":       {pin.Input{Present: has("1.0.0"), Floats: []pin.Float{float("", "503")}}, pin.Output{Pins: has("1.0.0")}},
		"ItsClusterLeft":       {pin.Input{Present: has("1.0.0"), SameSpec: true}, pin.Output{Pins: has("1.0.0")}},
		"AnEditDropsIt":        {pin.Input{Present: has("1.0.0")}, pin.Output{Pins: &compile.Pins{}}},
		"Map": {pin.Input{Floats: []pin.Float{colors(map[string]string{"a": "b"})}},
			pin.Output{Pins: &compile.Pins{ConfigMaps: map[string]map[string]string{"colors": {"a": "b"}}}}},
		"OptionalMap": {pin.Input{Floats: []pin.Float{colors(nil)}}, pin.Output{Pins: &compile.Pins{ConfigMaps: map[string]map[string]string{"colors": nil}}}},
		"MapIsDeleted": {pin.Input{Present: &compile.Pins{ConfigMaps: map[string]map[string]string{"colors": {"a": "b"}}}, SameSpec: true,
			Floats: []pin.Float{{Key: "colors", ConfigMap: true, What: "ConfigMap colors", Needed: true, Why: "is not there"}}},
			pin.Output{Pins: &compile.Pins{ConfigMaps: map[string]map[string]string{"colors": {"a": "b"}}}}},
		"OptionalMapComes": {pin.Input{Present: &compile.Pins{ConfigMaps: map[string]map[string]string{"colors": nil}}, SameSpec: true, Hold: true,
			Floats: []pin.Float{colors(map[string]string{})}},
			pin.Output{Pins: &compile.Pins{ConfigMaps: map[string]map[string]string{"colors": nil}}, News: []string{"ConfigMap colors"}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.in.Present.Clone()
			got := pin.Next(tc.in)
			must.Equal(t, tc.want, got, cmp.Comparer(func(a, b *compile.Pins) bool { return a.Equal(b) }))
			if !before.Equal(tc.in.Present) {
				t.Errorf("the present pins have changed: %+v", tc.in.Present)
			}
		})
	}
}

func TestUnheld(t *testing.T) {
	floats := []pin.Float{{Key: "HelmChart/a/b", What: "used", Used: true}, {Key: "HelmChart/a/c", What: "held", Used: true}, {Key: "HelmChart/a/d", What: "unused"},
		{Key: "m", ConfigMap: true, What: "map"}}
	got := pin.Unheld(floats, &compile.Pins{Sources: map[string]string{"HelmChart/a/c": "1.0.0"}})
	must.Equal(t, []string{"used", "map"}, got)
}

// TestRecorded: what a status tells of pins gives them again, but for ConfigMaps.
func TestRecorded(t *testing.T) {
	pins := &compile.Pins{Sources: map[string]string{"HelmChart/a/b": "1.0.0"}, ConfigMaps: map[string]map[string]string{"m": {"a": "b"}}}
	chart, colors := pin.Float{Key: "HelmChart/a/b", Upstream: "1.1.0"}, pin.Float{Key: "m", ConfigMap: true, Known: true}
	a, b := chart.Status("ns", pins), colors.Status("ns", pins)
	if a.Kind != "HelmChart" || a.Namespace != "a" || a.Name != "b" || a.Pinned != "1.0.0" || a.Upstream != "1.1.0" {
		t.Errorf("the chart: %+v", a)
	}
	if b.Kind != "ConfigMap" || b.Namespace != "ns" || b.Name != "m" || len(b.Pinned) != 12 || b.Upstream != "absent" {
		t.Errorf("the ConfigMap: %+v", b)
	}
	pins.ConfigMaps = nil
	if got := pin.Recorded([]hubv1.FollowedSource{a, b}); !got.Equal(pins) {
		t.Errorf("recorded: %+v", got)
	}
}
