// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
)

// Downgrades names the charts that go back to an older version if clusters get the content of one revision in place of another's:
// Helm takes back neither their CRDs nor what they have done to their data. It sees versions that are written out or pinned; of
// commits and digests it cannot be told which is older.
func Downgrades(from, to []byte) ([]string, error) {
	var versions [2]map[string]string
	for i, raw := range [][]byte{from, to} {
		spec, pins, err := compile.Content(raw)
		if err != nil {
			return nil, err
		}
		versions[i] = chartVersions(spec, pins)
	}
	var out []string
	for what, is := range versions[0] {
		newer, err := semver.NewVersion(is)
		if err != nil {
			continue
		}
		if older, err := semver.NewVersion(versions[1][what]); err == nil && older.LessThan(newer) {
			out = append(out, fmt.Sprintf("%s from %s to %s", what, is, versions[1][what]))
		}
	}
	slices.Sort(out)
	return out, nil
}

// chartVersions are the versions of charts that a revision names, by where it names them.
func chartVersions(spec *hubv1.AddonSetSpec, pins *compile.Pins) map[string]string {
	out := map[string]string{}
	read := func(where string, body *hubv1.AddonBody) {
		if body.HelmRelease == nil {
			return
		}
		var hr struct {
			Chart struct{ Spec struct{ Version string } }
		}
		_ = json.Unmarshal(body.HelmRelease.Raw, &hr) // compile has checked it
		out[where] = hr.Chart.Spec.Version
	}
	for i := range spec.Addons {
		read(fmt.Sprintf("the chart of add-on %q", spec.Addons[i].Name), &spec.Addons[i].AddonBody)
	}
	for i := range spec.Overlays {
		for j := range spec.Overlays[i].Addons {
			a := &spec.Overlays[i].Addons[j]
			read(fmt.Sprintf("the chart of add-on %q in overlay %q", a.Name, spec.Overlays[i].Name), &a.AddonBody)
		}
	}
	if pins == nil {
		return out
	}
	for key, version := range pins.Sources {
		if kind, name, _ := strings.Cut(key, "/"); kind == sourcev1.HelmChartKind {
			out[kind+" "+name] = version
		}
	}
	return out
}
