// SPDX-License-Identifier: Apache-2.0

// Package version reports which build a program is.
package version

import (
	"fmt"
	"runtime/debug"
)

// release is the version of a release, such as v0.1.0. The linker sets it: -ldflags "-X
// github.com/chandler-hub/chandler/internal/version.release=v0.1.0".
var release string

// image is the hub's image of the release, by tag and digest. The linker sets it in the command line.
var image string

// Image returns the hub's image of this release, by tag and digest; "" in a build from a checkout.
func Image() string { return image }

// Released returns whether this is a release.
func Released() bool { return release != "" }

// unreleased is the version of a build from a checkout.
const unreleased = "v0.0.0-dev"

// Info describes a build.
type Info struct {
	// Version is the version of the release, or v0.0.0-dev.
	Version string `json:"version"`
	// Revision is the commit, with "-modified" if the checkout had changes; "unknown" if Go did not see a checkout.
	Revision string `json:"revision"`
	// Go is the version of Go that built it.
	Go string `json:"go"`
}

// Get returns the build info of this program.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return of(release, build)
}

func of(release string, build *debug.BuildInfo) Info {
	i := Info{Version: release, Revision: "unknown", Go: build.GoVersion}
	if i.Version == "" {
		i.Version = unreleased
	}
	modified := false
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified {
		i.Revision += "-modified"
	}
	return i
}

// String returns one line for people.
func (i Info) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", i.Version, i.Revision, i.Go)
}
