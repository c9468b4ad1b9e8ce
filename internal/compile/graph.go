// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/nearest"
)

// Graph checks what a set says about the other sets of its namespace. It returns Errors for a set that does not exist, for
// an add-on that another set does not have, and for sets and add-ons that would wait for each other forever.
func Graph(set string, specs map[string]*hubv1.AddonSetSpec) error {
	spec := specs[set]
	if spec == nil {
		return nil
	}
	var errs Errors
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(specs)), func(name string) bool { return name == set })
	absent := func(addon, name string) {
		if name != "" && name != set && specs[name] == nil {
			errs = append(errs, Error{Addon: addon, Path: "dependsOn", Absent: true,
				Message: fmt.Sprintf("there is no AddonSet %q in this namespace", name) + nearest.Meant(name, others)})
		}
	}
	for _, d := range spec.DependsOn {
		absent("", d.Name)
	}
	for i := range spec.Addons {
		for _, d := range spec.Addons[i].DependsOn {
			absent(spec.Addons[i].Name, d.AddonSet)
			other := specs[d.AddonSet]
			if other == nil || d.AddonSet == set {
				continue
			}
			if !slices.ContainsFunc(other.Addons, func(a hubv1.Addon) bool { return a.Name == d.Name }) {
				errs = append(errs, Error{Addon: spec.Addons[i].Name, Path: "dependsOn",
					Message: fmt.Sprintf("AddonSet %q has no add-on %q", d.AddonSet, d.Name) + nearest.Meant(d.Name, addonNames(other))})
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

// Split parts the errors of what is absent, and may come from elsewhere, from the others.
func Split(err error) (absent Errors, others error) {
	var errs, rest Errors
	if !errors.As(err, &errs) {
		return nil, err
	}
	for _, e := range errs {
		if e.Absent {
			absent = append(absent, e)
		} else {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		return absent, nil
	}
	return absent, rest
}

func addonNames(spec *hubv1.AddonSetSpec) []string {
	names := make([]string, len(spec.Addons))
	for i := range spec.Addons {
		names[i] = spec.Addons[i].Name
	}
	return names
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
