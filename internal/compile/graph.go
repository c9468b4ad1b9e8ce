// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Graph checks what a set says about the other sets of its namespace. It returns Errors for an add-on that another
// set does not have, and for sets and add-ons that would wait for each other forever. A set that does not exist is
// not an error: it may be created later, and is ignored until then.
func Graph(set string, specs map[string]*hubv1.AddonSetSpec) error {
	spec := specs[set]
	if spec == nil {
		return nil
	}
	var errs Errors
	for i := range spec.Addons {
		for _, d := range spec.Addons[i].DependsOn {
			other := specs[d.AddonSet]
			if other == nil || d.AddonSet == set {
				continue
			}
			if !slices.ContainsFunc(other.Addons, func(a hubv1.Addon) bool { return a.Name == d.Name }) {
				errs = append(errs, Error{Addon: spec.Addons[i].Name, Path: "dependsOn",
					Message: fmt.Sprintf("AddonSet %q has no add-on %q", d.AddonSet, d.Name)})
			}
		}
	}
	// A set is told only about cycles that it reaches itself.
	cycle := findCycle([]string{set}, waits(specs))
	own := func(node string) bool { return strings.HasPrefix(node, set+"/") }
	if slices.ContainsFunc(cycle, func(n string) bool { return !own(n) }) { // one within the set itself Compile has told of
		errs = append(errs, Error{Path: "dependsOn", Message: "sets wait for each other: " + strings.Join(cycle, " -> ")})
	}
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// SetsNamed returns the other sets that the dependsOn of a set or of its add-ons name.
func SetsNamed(spec *hubv1.AddonSetSpec) []string {
	var out []string
	for _, d := range spec.DependsOn {
		out = append(out, d.Name)
	}
	for i := range spec.Addons {
		for _, d := range spec.Addons[i].DependsOn {
			if d.AddonSet != "" {
				out = append(out, d.AddonSet)
			}
		}
	}
	return out
}

// waits returns the wait graph: a set waits for its add-ons, named set/add-on, and each add-on waits for what it and
// its set depend on.
func waits(specs map[string]*hubv1.AddonSetSpec) map[string][]string {
	needs := map[string][]string{}
	for name, spec := range specs {
		for i := range spec.Addons {
			a := &spec.Addons[i]
			node := name + "/" + a.Name
			needs[name] = append(needs[name], node)
			for _, d := range a.DependsOn {
				other := d.AddonSet
				if other == "" {
					other = name
				}
				needs[node] = append(needs[node], other+"/"+d.Name)
			}
			for _, d := range spec.DependsOn {
				if specs[d.Name] != nil {
					needs[node] = append(needs[node], d.Name)
				}
			}
		}
	}
	return needs
}
