// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// drawnFleet is a fleet that TestPreviewIsWhatHappens draws.
type drawnFleet struct {
	number int
	// first are the clusters that it begins with, and last those that come later; the same for sets.
	first, last []*drawnCluster
	early, late []*drawnSet
	// theirs are HelmReleases that people wrote: each is for a cluster, and has a Helm release.
	theirs []theirs
}

type theirs struct{ name, cluster, release string }

// drawnCluster is a registration. is names the cluster behind it.
type drawnCluster struct {
	name, is        string
	region, tier    string
	size            int
	override        string
	capi            bool
	paused, drained bool
	edit            func(*drawnCluster)
}

// drawnSet is an AddonSet.
type drawnSet struct {
	namespace, name, selector, dependsOn string
	priority                             int
	addons                               []drawnAddon
	overlay                              string
	edit                                 func(*drawnSet)
}

// drawnAddon is an add-on: what it is called, and the rest of its fields.
type drawnAddon struct{ name, form, more string }

var regions, tiers = []string{"eu", "us"}, []string{"gold", "free"}

func pick[T any](dice *rand.Rand, from []T) T { return from[dice.IntN(len(from))] }

func drawFleet(dice *rand.Rand, number int) *drawnFleet {
	f := &drawnFleet{number: number}
	for i := range 6 + dice.IntN(4) {
		c := &drawnCluster{name: fmt.Sprintf("c%d", i), region: pick(dice, regions), tier: pick(dice, tiers), size: 1 + dice.IntN(5)}
		c.is = c.name
		switch {
		case i == 0:
			c.capi, c.drained = true, dice.IntN(2) == 0
		case i == 2 && dice.IntN(2) == 0:
			c.is = "c1" // two registrations of one cluster
		}
		if dice.IntN(3) == 0 {
			c.override = drawOverride(dice)
		}
		c.edit = drawEdit(dice, c)
		if i > 0 && i%4 == 0 {
			f.last = append(f.last, c)
		} else {
			f.first = append(f.first, c)
		}
	}
	ground := &drawnSet{namespace: "flux-system", name: "ground", selector: "selectAll: true",
		addons: []drawnAddon{{name: "ground", form: "kustomize", more: ", kustomization: {path: ./ground, sourceRef: {name: fleet}}"}}}
	names := dice.Perm(9)
	for i := range 1 + dice.IntN(5) {
		s := drawSet(dice, fmt.Sprintf("s%d", names[i]))
		if s.namespace == "flux-system" && dice.IntN(3) == 0 {
			s.dependsOn = ground.name // nobody else has its add-on
		}
		if i > 0 && dice.IntN(3) == 0 {
			f.late = append(f.late, s)
		} else {
			f.early = append(f.early, s)
		}
	}
	if dice.IntN(2) == 0 {
		f.move(dice)
	}
	f.adopt(dice)
	f.early = append(f.early, ground)
	return f
}

func drawOverride(dice *rand.Rand) string {
	name := pick(dice, addonNames)
	return pick(dice, []string{
		fmt.Sprintf("{name: %s, helmRelease: {values: {more: %d}}}", name, dice.IntN(100)),
		fmt.Sprintf("{name: %s, exclude: true}", name),
		fmt.Sprintf("{name: %s, kustomization: {timeout: %dm}}", name, 1+dice.IntN(9)),
	})
}

// drawEdit returns what somebody does to a cluster later; nil for nothing.
func drawEdit(dice *rand.Rand, c *drawnCluster) func(*drawnCluster) {
	if c.drained {
		return nil
	}
	size, region, override := 1+dice.IntN(5), pick(dice, regions), drawOverride(dice)
	switch dice.IntN(6) {
	case 0:
		return func(c *drawnCluster) { c.paused = true }
	case 1:
		return func(c *drawnCluster) { c.paused, c.size = true, size }
	case 2:
		return func(c *drawnCluster) { c.size = size }
	case 3:
		return func(c *drawnCluster) { c.region = region }
	case 4:
		return func(c *drawnCluster) { c.override = override }
	}
	return nil
}

var addonNames = []string{"alpha", "beta", "gamma", "delta", "omega"}

func drawSet(dice *rand.Rand, name string) *drawnSet {
	s := &drawnSet{name: name, namespace: pick(dice, []string{"flux-system", "flux-system", "fleet"}), priority: pick(dice, []int{0, 0, 0, 5})}
	s.selector = pick(dice, []string{"selectAll: true", "selectAll: true", "clusterSelector: {matchLabels: {region: eu}}",
		"clusterSelector: {matchExpressions: [{key: tier, operator: In, values: [gold]}]}"})
	order := dice.Perm(len(addonNames))
	for i := range 1 + dice.IntN(3) {
		a := drawAddon(dice, addonNames[order[i]])
		if i > 0 && dice.IntN(3) == 0 {
			a.more += fmt.Sprintf(", dependsOn: [{name: %s}]", s.addons[0].name)
		}
		s.addons = append(s.addons, a)
	}
	if first := s.addons[0]; dice.IntN(2) == 0 {
		body := map[string]string{"helm": "helmRelease: {values: {tuned: << vars.size * 10 >>}}", "kustomize": "kustomization: {timeout: 7m}",
			"manifests": "exclude: false"}[first.form]
		if dice.IntN(3) == 0 {
			body = "exclude: true"
		}
		s.overlay = fmt.Sprintf("{name: tune, when: \"<< cluster.labels.region == 'eu' >>\", addons: [{name: %s, %s}]}", first.name, body)
	}
	return s
}

func drawAddon(dice *rand.Rand, name string) drawnAddon {
	a := drawnAddon{name: name, form: pick(dice, []string{"helm", "helm", "kustomize", "manifests"})}
	if dice.IntN(3) == 0 {
		a.more += `, when: "<< cluster.labels.tier == 'gold' >>"`
	}
	if dice.IntN(2) == 0 {
		a.more += ", optional: true"
	}
	switch a.form {
	case "helm":
		release := ""
		if dice.IntN(4) == 0 {
			release = "releaseName: common, targetNamespace: apps, " // which two sets may want
		}
		a.more += fmt.Sprintf(", helmRelease: {%sinterval: 1h, chart: {spec: {chart: %s, version: %d.x, sourceRef: {name: charts}}}, "+
			"values: {of: << cluster.name >>, size: << vars.size >>}}", release, pick(dice, []string{"web", "db"}), 1+dice.IntN(3))
	case "kustomize":
		a.more += fmt.Sprintf(", kustomization: {interval: 1h, path: ./%s, sourceRef: {name: fleet}, postBuild: {substitute: {region: << cluster.labels.region >>}}}",
			pick(dice, []string{"one", "two"}))
	case "manifests":
		a.more += fmt.Sprintf(", manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {of: << cluster.name >>, "+
			"a: \"%d\"}}]}", name, dice.IntN(9))
	}
	return a
}

// move has an add-on go on under another name later: in its own set, or in one that comes late.
func (f *drawnFleet) move(dice *rand.Rand) {
	from := pick(dice, f.early)
	at := dice.IntN(len(from.addons))
	old := from.addons[at]
	moved := drawnAddon{name: old.name + "-moved", form: old.form}
	if dice.IntN(2) == 0 {
		moved.more = old.more + fmt.Sprintf(", movedFrom: [{name: %s}]", old.name)
		from.edit = func(s *drawnSet) { s.addons = slices.Clone(s.addons); s.addons[at], s.overlay = moved, "" }
		return
	}
	moved.more = old.more + fmt.Sprintf(", movedFrom: [{addonSet: %s, name: %s}]", from.name, old.name)
	if len(from.addons) == 1 {
		return
	}
	to := &drawnSet{namespace: from.namespace, name: "mover", selector: from.selector, priority: from.priority, addons: []drawnAddon{moved}}
	f.late = append(f.late, to)
	from.edit = func(s *drawnSet) { s.addons, s.overlay = slices.Delete(slices.Clone(s.addons), at, at+1), "" }
}

// adopt has people deliver something by hand before the sets come: one add-on takes it over, or does not.
func (f *drawnFleet) adopt(dice *rand.Rand) {
	for i, s := range f.early {
		a := &s.addons[0]
		if a.form != "helm" || dice.IntN(2) == 0 {
			continue
		}
		c := pick(dice, f.first)
		name := fmt.Sprintf("hand-%d", i)
		release := pick(dice, []string{"of-old", a.name})
		f.theirs = append(f.theirs, theirs{name, c.name, release})
		if dice.IntN(3) > 0 && !strings.Contains(a.more, "releaseName") {
			a.more += fmt.Sprintf(", adopt: {namespace: fleet, name: %s-<< cluster.name >>}", name)
		}
	}
}

func (f *drawnFleet) cluster(name string) *drawnCluster {
	return f.first[slices.IndexFunc(f.first, func(c *drawnCluster) bool { return c.name == name })]
}

// foreign returns what people wrote by hand.
func (f *drawnFleet) foreign() string {
	var b strings.Builder
	for _, x := range f.theirs {
		login := x.cluster + "-login"
		if f.cluster(x.cluster).capi {
			login = x.cluster + "-kubeconfig"
		}
		fmt.Fprintf(&b, `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s-%s, namespace: fleet}
spec: {interval: 1h, releaseName: %s, targetNamespace: default, chartRef: {kind: OCIRepository, name: theirs}, kubeConfig: {secretRef: {name: %s, key: value}}}
`, x.name, x.cluster, x.release, login)
	}
	return b.String()
}

func (c *drawnCluster) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\nmetadata: {name: %s, namespace: fleet, labels: {region: %s, tier: %s}}\nspec:\n",
		c.name, c.region, c.tier)
	if c.capi {
		fmt.Fprintf(&b, "  originRef: {apiGroup: cluster.x-k8s.io, kind: Cluster, name: %s}\n  drainBeforeDeletion: {timeout: 10m}\n", c.name)
	} else {
		fmt.Fprintf(&b, "  kubeConfig: {secretRef: {name: %s-login, key: value}}\n", c.name)
	}
	fmt.Fprintf(&b, "  variables: {size: %d}\n", c.size)
	if c.override != "" {
		fmt.Fprintf(&b, "  overrides: [%s]\n", c.override)
	}
	if c.paused {
		b.WriteString("  pause: {reason: a test}\n")
	}
	return b.String()
}

func (f *drawnFleet) sets(sets []*drawnSet) string {
	var b strings.Builder
	for _, s := range sets {
		fmt.Fprintf(&b, `---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: %s, namespace: %s}
spec:
  %s
  priority: %d
  removalGuard: {mode: "Off"}
  rollout: {strategy: AllAtOnce}
  variables: {size: 0}
  sources:
    - {name: charts, kind: HelmRepository, spec: {url: "https://charts-<< cluster.labels.region >>.example.org"}}
    - {name: fleet, kind: GitRepository, spec: {url: "https://git.example.org/fleet", ref: {branch: main}}}
`, s.name, s.namespace, s.selector, s.priority)
		if s.dependsOn != "" {
			fmt.Fprintf(&b, "  dependsOn: [{name: %s}]\n", s.dependsOn)
		}
		if s.overlay != "" {
			fmt.Fprintf(&b, "  overlays: [%s]\n", s.overlay)
		}
		b.WriteString("  addons:\n")
		for _, a := range s.addons {
			fmt.Fprintf(&b, "    - {name: %s%s}\n", a.name, a.more)
		}
	}
	return b.String()
}

func (f *drawnFleet) String() string {
	var b strings.Builder
	for _, c := range append(slices.Clone(f.first), f.last...) {
		b.WriteString(c.yaml())
	}
	return b.String() + f.foreign() + f.sets(f.early) + "# later\n" + f.sets(f.late)
}
