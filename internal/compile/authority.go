// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// openPaths are the paths of an add-on that a cluster's owner may decide.
type openPaths struct {
	// Overrides may change the paths in overrides. Expressions at the paths in variables may use a cluster's
	// variables.
	overrides, variables [][]string
}

// closed are paths that no set can open. Through them a cluster's owner could decide what the platform delivers, with
// whose rights and with whose secrets, or have Flux reinstall it.
var closed = map[string][]string{
	fluxspec.HelmReleaseKind: {
		"chart", "chartRef", "valuesFrom", "serviceAccountName", "targetNamespace", "storageNamespace", "releaseName", "kubeConfig", "dependsOn",
		"suspend",
	},
	fluxspec.KustomizationKind: {
		"sourceRef", "postBuild.substituteFrom", "decryption", "serviceAccountName", "targetNamespace", "kubeConfig", "dependsOn", "suspend",
	},
	fluxspec.ManifestsKind: {"manifestsFrom", "targetNamespace"},
}

// overridable is what overrides may change if the set does not say.
var overridable = map[string][]string{
	fluxspec.HelmReleaseKind:   {"values"},
	fluxspec.KustomizationKind: {"postBuild.substitute"},
}

// insertable is where a cluster's variables may be inserted. A set opens such a path by writing vars.x there. Values
// cannot inject structure.
var insertable = map[string][]string{
	fluxspec.HelmReleaseKind:   {"values"},
	fluxspec.KustomizationKind: {"postBuild.substitute", "commonMetadata"},
	fluxspec.ManifestsKind:     {"objects"},
}

func (c *compiler) overridable(in *hubv1.Addon, kind string) openPaths {
	open := openPaths{overrides: split(overridable[kind])}
	if in.Overridable != nil {
		open.overrides = split(*in.Overridable)
		for i, p := range open.overrides {
			for _, never := range split(closed[kind]) {
				if !isPrefix(p, never) && !isPrefix(never, p) {
					continue
				}
				c.fail("", in.Name, "overridable", "%q cannot be opened: only the set may decide %s", (*in.Overridable)[i], strings.Join(never, "."))
				break
			}
			if why := fluxspec.Lacks(kind, p, c.author); why != "" {
				c.fail("", in.Name, "overridable", "%q %s", (*in.Overridable)[i], why+begins(kind, p))
			}
		}
	}
	open.variables = append(split(insertable[kind]), open.overrides...)
	return open
}

// begins says how a path is meant that begins elsewhere.
func begins(kind string, path []string) string {
	switch {
	case path[0] == Field(kind) && len(path) > 1:
		return "; paths begin within it: write " + strings.Join(path[1:], ".")
	case kind == fluxspec.HelmReleaseKind && len(path) == 1:
		return "; one of the chart's values is opened as values." + path[0]
	}
	return ""
}

// MayOverride returns whether a cluster's override may change a path of the add-on's body.
func (a *Addon) MayOverride(path []string) bool { return isWithin(path, a.open.overrides) }

// MayInsert returns whether an expression at a path of the add-on's body may depend on a cluster's variables.
func (a *Addon) MayInsert(path []string) bool { return isWithin(path, a.open.variables) }

// Opens returns the paths that overrides may change, for messages.
func (a *Addon) Opens() string {
	if len(a.open.overrides) == 0 {
		return "nothing"
	}
	out := make([]string, len(a.open.overrides))
	for i, p := range a.open.overrides {
		out[i] = strings.Join(p, ".")
	}
	return strings.Join(out, ", ")
}

// IsClosed returns whether a path is one that no set can open.
func (a *Addon) IsClosed(path []string) bool { return isWithin(path, split(closed[a.Kind])) }

func split(paths []string) [][]string {
	out := make([][]string, len(paths))
	for i, p := range paths {
		out[i] = strings.Split(p, ".")
	}
	return out
}

func isWithin(path []string, open [][]string) bool {
	return slices.ContainsFunc(open, func(p []string) bool { return isPrefix(p, path) })
}

func isPrefix(prefix, path []string) bool {
	return len(prefix) <= len(path) && slices.Equal(prefix, path[:len(prefix)])
}
