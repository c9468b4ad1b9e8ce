// SPDX-License-Identifier: Apache-2.0

package assembly_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// object is a HelmRelease, or with "ks " before its name a Kustomization, after the add-ons named.
func object(addon string, after ...string) flux.Object {
	o := flux.Object{Addon: addon, Kind: "HelmRelease", Namespace: "flux-system", Name: "one-" + addon}
	if name, ok := strings.CutPrefix(addon, "ks "); ok {
		o.Addon, o.Name, o.Kind = name, "one-"+name, "Kustomization"
	} else {
		o.Release = hubv1.HelmReleaseIdentity{Name: addon, Namespace: addon, StorageNamespace: addon}
	}
	for _, a := range after {
		ref := hubv1.AddonReference{Name: a}
		if set, name, ok := strings.Cut(a, "/"); ok {
			ref = hubv1.AddonReference{AddonSet: set, Name: name}
		}
		o.DependsOn = append(o.DependsOn, ref)
	}
	return o
}

func delivery(set string, objects ...flux.Object) assembly.Delivery {
	return assembly.Delivery{
		Namespace: "flux-system", Set: set, Name: set + "-one", Platform: true,
		Result: &render.Result{Objects: objects, Excluded: map[string]string{}, Failed: map[string]render.Errors{}},
	}
}

// live is the object of an add-on that is there, as a delivery of a set made it. Without a dependency its hash is empty.
func live(set string, o flux.Object, ready bool) assembly.Live {
	return assembly.Live{Key: assembly.Key(&o), Addon: o.Addon, Set: set, Delivery: set + "-one", Release: o.Release, Content: assembly.Content(&o), Ready: ready}
}

// tenants makes a delivery that of a set outside the platform's namespaces, and ofTenants an object one of such a set.
func tenants(d assembly.Delivery) assembly.Delivery {
	d.Namespace, d.Platform = "tenants", false
	return d
}

func ofTenants(l *assembly.Live) { l.Key.Namespace = "tenants" }

// cases are inputs, and the outcome of each as describe writes it.
type cases map[string]struct {
	in   assembly.Input
	want string
}

func (c cases) run(t *testing.T) {
	for name, tc := range c {
		t.Run(name, func(t *testing.T) { must.Equal(t, tc.want, describe(tc.in)) })
	}
}

// failing has an add-on of a delivery not come out.
func failing(addon string) func(*assembly.Delivery) {
	return func(d *assembly.Delivery) { d.Result.Failed[addon] = render.Errors{{Addon: addon, Message: "x"}} }
}

// renamed has add-on new of a delivery's set be called old before.
func renamed(d assembly.Delivery) assembly.Delivery {
	d.Moves = map[string][]hubv1.MovedAddon{"new": {{Namespace: "flux-system", AddonSet: "s", Name: "old"}}}
	for i := range d.Result.Objects {
		o := &d.Result.Objects[i]
		if part, ok := strings.CutPrefix(o.Addon, "new"); ok {
			o.MovedFrom = []hubv1.MovedAddon{{Namespace: "flux-system", AddonSet: "s", Name: "old" + part}}
		}
	}
	return d
}

func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

// describe writes an outcome in lines: what is wanted, after what, waiting for what, in place of what.
func describe(in assembly.Input) string {
	var lines []string
	for i, out := range assembly.Assemble(in) {
		set := in.Deliveries[i].Set
		for _, w := range out.Wanted {
			line := set + ": " + w.Addon
			w.Object.Object = nil
			if l := slices.IndexFunc(in.Live, func(l assembly.Live) bool { return l.Key == assembly.Key(&w.Object) }); l >= 0 && in.Live[l].Addon != w.Addon {
				line += " as(" + w.Name + ")"
			}
			if w.Name != "one-"+w.Addon && !strings.Contains(line, " as(") {
				line += " named(" + w.Name + ")"
			}
			if w.Gate != "" {
				line += " gate(" + w.Gate + ")"
			}
			for _, p := range w.Predecessors {
				line += fmt.Sprintf(" for(%s %s/%s)", p.Kind, p.Namespace, p.Name)
			}
			lines = append(lines, line)
		}
		for addon, why := range out.Lost {
			if out.HandedOver[addon] {
				why += " (for now)"
			}
			lines = append(lines, set+": lost "+addon+": "+why)
		}
		for k, why := range out.Keeps {
			lines = append(lines, set+": "+k.Name+" stays: "+why)
		}
		for k := range out.Yields {
			lines = append(lines, set+": "+k.Namespace+"/"+k.Name+" goes")
		}
		for addon, why := range out.NotOwned {
			lines = append(lines, set+": not ours "+addon+": "+why)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
