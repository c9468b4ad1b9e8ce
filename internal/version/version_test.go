// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	setting := func(pairs ...string) (out []debug.BuildSetting) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	for name, c := range map[string]struct {
		release  string
		settings []debug.BuildSetting
		want     string
	}{
		"a release":              {"v0.1.0", setting("vcs.revision", "abc", "vcs.modified", "false"), "v0.1.0 (revision abc, go1.26.1)"},
		"a checkout":             {"", setting("vcs.revision", "abc"), "v0.0.0-dev (revision abc, go1.26.1)"},
		"a changed checkout":     {"", setting("vcs.modified", "true", "vcs.revision", "abc"), "v0.0.0-dev (revision abc-modified, go1.26.1)"},
		"no checkout to be seen": {"", nil, "v0.0.0-dev (revision unknown, go1.26.1)"},
	} {
		if got := of(c.release, &debug.BuildInfo{GoVersion: "go1.26.1", Settings: c.settings}).String(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
