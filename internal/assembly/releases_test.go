// SPDX-License-Identifier: Apache-2.0

package assembly_test

import (
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
)

func TestReleases(t *testing.T) {
	id := func(name string) hubv1.HelmReleaseIdentity { return object(name).Release }
	p := &compile.Program{Addons: []compile.Addon{{Name: "new", MovedFrom: []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "t", Name: "old"}}}, {Name: "plain"}}}
	kept := func(l assembly.Live, release string) assembly.Live { l.Kept = id(release); return l }
	cases := map[string]struct {
		live   []assembly.Live
		status []hubv1.AddonStatus
		want   map[string]render.Kept
	}{
		"Nothing": {nil, nil, map[string]render.Kept{}},
		"Moved, with its definitions": {
			[]assembly.Live{live("t", object("old"), true), live("t", object("old-crds"), true), live("t", object("other"), true)}, nil,
			map[string]render.Kept{
				"new":      {HelmReleaseIdentity: id("old"), From: "HelmRelease flux-system/one-old"},
				"new-crds": {HelmReleaseIdentity: id("old-crds"), From: "HelmRelease flux-system/one-old-crds"},
			},
		},
		"A Kustomization has none": {[]assembly.Live{live("t", object("ks old"), true)}, nil, map[string]render.Kept{}},
		"On the way": {nil, []hubv1.AddonStatus{{Name: "new", Release: &hubv1.HelmReleaseIdentity{Name: "r"}}},
			map[string]render.Kept{"new": {HelmReleaseIdentity: hubv1.HelmReleaseIdentity{Name: "r"}, From: "what it takes over"}}},
		"Long since": {[]assembly.Live{kept(live("s", object("new"), true), "old"), live("t", object("old"), true)}, []hubv1.AddonStatus{{Name: "new", Release: &hubv1.HelmReleaseIdentity{Name: "r"}}},
			map[string]render.Kept{"new": {HelmReleaseIdentity: id("old")}}},
		"It has its own": {[]assembly.Live{live("s", object("new"), true), live("t", object("old"), true)}, nil, map[string]render.Kept{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, tc.want, assembly.Releases(p, "flux-system", "s-one", tc.live, tc.status))
		})
	}
}
