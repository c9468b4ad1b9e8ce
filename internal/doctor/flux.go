// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/shard"
)

const (
	helm       = "helm-controller"
	kustomize  = "kustomize-controller"
	source     = "source-controller"
	shardLabel = shard.Label
)

// Components are the controllers of Flux that the hub needs.
func Components() []string { return []string{source, kustomize, helm} }

// oldest are the versions of Flux 2.7's controllers, the oldest that the hub is tested with. whole are those of Flux 2.9's, which have all
// that the hub asks of Flux.
var (
	oldest = map[string]string{source: "v1.7.0", kustomize: "v1.7.0", helm: "v1.4.0"}
	whole  = map[string]string{source: "v1.9.0", kustomize: "v1.9.0", helm: "v1.6.0"}
)

func fluxSummary(f *Facts) string {
	if !f.Flux.Read {
		return "the controllers of Flux"
	}
	var out []string
	for i := range f.Flux.Workloads {
		w := &f.Flux.Workloads[i]
		out = append(out, w.Name+" "+w.Version)
	}
	switch outside := f.served(source) || f.served(helm) || f.served(kustomize); {
	case len(out) == 0 && outside:
		return "its controllers run outside of the cluster: its objects are reconciled"
	case len(out) == 0:
		return "namespace " + f.FluxNamespace
	}
	return list(out)
}

// of returns the controllers of one component.
func (x *Flux) of(component string) (out []*Workload) {
	for i := range x.Workloads {
		if x.Workloads[i].Component == component {
			out = append(out, &x.Workloads[i])
		}
	}
	return out
}

// appliers are the controllers that apply add-ons.
func (x *Flux) appliers() []*Workload { return append(x.of(kustomize), x.of(helm)...) }

func fluxMissing(f *Facts) []Finding {
	var o Objects
	for _, component := range Components() {
		if f.Flux.Read && len(f.Flux.of(component)) == 0 && !f.served(component) {
			o.Add(component)
		}
	}
	return some(o, Finding{Severity: Error, Code: "FluxMissing",
		What: fmt.Sprintf("controllers of Flux are not to be found, in namespace %s or by label app.kubernetes.io/part-of=flux",
			f.FluxNamespace),
		Remedy: fluxRemedy + "; --flux-namespace says where it is"})
}

// served returns whether the objects of a component are reconciled: it runs somewhere, maybe outside of the cluster.
func (f *Facts) served(component string) bool {
	if component == source {
		return f.SourcesReady > 0
	}
	return slices.ContainsFunc(f.Flux.Kinds, func(k Kind) bool { return k.Component == component && k.Observed > 0 })
}

// serves returns which shards a controller serves; "" is what has no shard, and * all.
func serves(w *Workload) []string {
	selector, _ := flag(w.Args, "watch-label-selector")
	return shard.Served(selector)
}

// fluxTwice finds two controllers that serve the same objects.
func fluxTwice(f *Facts) []Finding {
	var out []Finding
	for _, component := range Components() {
		var o Objects
		for _, name := range together(f.Flux.of(component)) {
			o.Add(name)
		}
		out = append(out, some(o, Finding{Severity: Error, Code: "FluxTwice",
			What:   "several " + component + "s serve the same objects, and undo each other's work",
			Remedy: "give each a --watch-label-selector of its own (docs/scale.md#shards), or stop one of them"})...)
	}
	return out
}

// together returns the controllers that serve what another one serves too.
func together(all []*Workload) (out []string) {
	for _, a := range all {
		if slices.ContainsFunc(all, func(b *Workload) bool {
			return a != b && a.everywhere() && b.everywhere() && overlap(serves(a), serves(b))
		}) {
			out = append(out, a.name())
		}
	}
	return out
}

// everywhere returns whether a controller runs, and serves all namespaces.
func (w *Workload) everywhere() bool {
	all, ok := flag(w.Args, "watch-all-namespaces")
	return w.Replicas > 0 && (!ok || all != "false")
}

func overlap(a, b []string) bool {
	return slices.Contains(a, "*") || slices.Contains(b, "*") || slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

func fluxPods(f *Facts) []Finding { return pods(f.Flux.Workloads, "Flux") }

// fluxVersions finds controllers that are older than what the hub is tested with.
func fluxVersions(f *Facts) []Finding {
	var old, older, unknown Objects
	for i := range f.Flux.Workloads {
		w := &f.Flux.Workloads[i]
		switch before, known := olderThan(w.Version, oldest[w.Component]); {
		case !known:
			unknown.Add(w.name() + " " + w.Version)
		case before:
			old.Add(fmt.Sprintf("%s %s, at least %s", w.name(), w.Version, oldest[w.Component]))
		default:
			if before, _ := olderThan(w.Version, whole[w.Component]); before {
				older.Add(fmt.Sprintf("%s %s, at least %s", w.name(), w.Version, whole[w.Component]))
			}
		}
	}
	return slices.Concat(
		some(old, Finding{Severity: Error, Code: "FluxTooOld",
			What: "controllers of Flux are older than the hub supports (Flux 2.7)", Remedy: "upgrade Flux to 2.9 or newer, CRDs first"}),
		some(older, Finding{Severity: Warning, Code: "FluxOlder",
			What: "controllers of Flux are older than Flux 2.9: if a chartRef leads to a chart of another name, they reinstall the release, and " +
				"the removal guard does not hold that; a set may use neither manifestsFrom nor targetPath with from: Cluster",
			Remedy: "upgrade Flux to 2.9 or newer, CRDs first"}),
		some(unknown, Finding{Severity: NotChecked, Code: "FluxVersionUnknown",
			What:   "not checked: the versions of controllers of Flux: the tags of their images are no versions",
			Remedy: "the hub needs Flux 2.7 or newer"}))
}

// olderThan compares versions such as v1.9.5; known is false if v is none.
func olderThan(v, than string) (before, known bool) {
	a, ok := version(v)
	b, _ := version(than)
	return slices.Compare(a, b) < 0, ok
}

func version(v string) ([]int, bool) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "@")
	v, _, _ = strings.Cut(v, "-")
	var out []int
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, len(out) >= 2
}

// without returns the appliers on which a flag is not true.
func (x *Flux) without(name string, of []*Workload) (o Objects) {
	for _, w := range of {
		if v, ok := flag(w.Args, name); !ok || v == "false" {
			o.Add(w.name())
		}
	}
	return o
}

// crossNamespace finds a Flux that lets objects use sources of other namespaces.
func crossNamespace(f *Facts) []Finding {
	return some(f.Flux.without("no-cross-namespace-refs", f.Flux.appliers()), Finding{Severity: Warning, Code: "FluxCrossNamespaceRefs",
		What:   "a user of one namespace may have Flux use the sources of another one, since --no-cross-namespace-refs is not set",
		Remedy: "start kustomize- and helm-controller with --no-cross-namespace-refs=true; the hub works with it (docs/install.md)"})
}

// remoteBases finds a Flux that follows a team's kustomization to other places.
func remoteBases(f *Facts) []Finding {
	if f.Fleet.Teams == 0 {
		return nil
	}
	return some(f.Flux.without("no-remote-bases", f.Flux.of(kustomize)), Finding{Severity: Warning, Code: "FluxRemoteBases",
		What:   "there are Teams, and a team's kustomization may have remote bases, past the sources that its Team allows",
		Remedy: "start kustomize-controller with --no-remote-bases=true (docs/teams.md)"})
}

// defaultAccount finds a Flux that acts on clusters as an account that no add-on names.
func defaultAccount(f *Facts) []Finding {
	var o Objects
	for _, w := range f.Flux.appliers() {
		if v, ok := flag(w.Args, "default-service-account"); ok && v != "" {
			o.Add(w.name() + ": " + v)
		}
	}
	severity := Warning
	if f.Fleet.counts[Class{clusterNotReady, hubv1.DefaultServiceAccountReason}] != nil {
		severity = Error
	}
	return some(o, Finding{Severity: severity, Code: "FluxDefaultServiceAccount",
		What: "Flux runs with --default-service-account, so on every cluster it acts as that ServiceAccount of the set's namespace, unless " +
			"the add-on or " +
			"the registration names another one",
		Remedy: "take the flag off the Flux that serves the hub; it is not needed for Teams (docs/teams.md). Or have every add-on, or " +
			"registration, name a " +
			"serviceAccountName that has the rights"})
}

// gated is the first version that needs no gate for the identity of an object.
var gated = map[string]string{kustomize: "v1.10.0", helm: "v1.7.0"}

// identityGate finds a Flux that cannot log in by workload identity as the hub asks.
func identityGate(f *Facts) []Finding {
	if f.Fleet.WorkloadIdentity == 0 {
		return nil
	}
	var o Objects
	for _, w := range f.Flux.appliers() {
		gates, _ := flag(w.Args, "feature-gates")
		before, known := olderThan(w.Version, gated[w.Component])
		if known && before && !strings.Contains(gates, "ObjectLevelWorkloadIdentity=true") {
			o.Add(w.name())
		}
	}
	return some(o, Finding{Severity: Error, Code: "FluxIdentityGate",
		What: fmt.Sprintf("%d clusters are reached by workload identity, and Flux runs without gate ObjectLevelWorkloadIdentity",
			f.Fleet.WorkloadIdentity),
		Remedy: "start kustomize- and helm-controller with --feature-gates=ObjectLevelWorkloadIdentity=true (docs/workload-identity.md)"})
}

// ownNamespace finds a Flux that looks at its own namespace only.
func ownNamespace(f *Facts) []Finding {
	var o Objects
	for i := range f.Flux.Workloads {
		w := &f.Flux.Workloads[i]
		if v, ok := flag(w.Args, "watch-all-namespaces"); ok && v == "false" {
			o.Add(w.name())
		}
	}
	return some(o, Finding{Severity: Error, Code: "FluxOneNamespace",
		What:   "controllers of Flux serve their own namespace only, so what the hub makes elsewhere stays as it is",
		Remedy: "start them with --watch-all-namespaces=true, or keep every AddonSet in that namespace"})
}

// shardsServed finds shards that the hub gives to clusters and that no controller serves.
func shardsServed(f *Facts) []Finding {
	var o Objects
	for _, component := range []string{kustomize, helm} {
		served := map[string]bool{}
		for _, w := range f.Flux.of(component) {
			for _, s := range serves(w) {
				served[s] = w.Replicas > 0 || served[s]
			}
		}
		if len(served) == 0 || served[shard.Everything] {
			continue
		}
		wanted := f.Shards
		if len(wanted) == 0 {
			wanted = []string{""}
		}
		for _, s := range wanted {
			if !served[s] {
				o.Add(component + " for " + shardName(s))
			}
		}
	}
	return some(o, Finding{Severity: Error, Code: "FluxShardNotServed",
		What:   "the hub gives clusters to shards that no controller of Flux serves, so nothing is applied there",
		Remedy: "start a controller with --watch-label-selector=" + shardLabel + "=<shard>, or take the shard out of the hub's --flux-shards"})
}

func shardName(s string) string {
	if s == "" {
		return "what has no shard (the hub has no --flux-shards)"
	}
	return "shard " + s
}

// shardsIdle finds controllers of shards that no cluster is given to.
func shardsIdle(f *Facts) []Finding {
	var o Objects
	for _, w := range f.Flux.appliers() {
		for _, s := range serves(w) {
			if s != shard.Everything && s != "" && !slices.Contains(f.Shards, s) {
				o.Add(w.name() + " for shard " + s)
			}
		}
	}
	return some(o, Finding{Severity: Warning, Code: "FluxShardIdle",
		What: "controllers of Flux serve shards that the hub gives no cluster to",
		Remedy: "leave --flux-shards out, and the hub learns the shard within minutes if a kustomize- and a helm-controller serve it; or name " +
			"the shard there. A quarter of the clusters moves to a fourth shard (docs/scale.md#shards)"})
}

// shardsShared finds clusters that may hold the workers of Flux that serve the platform's.
func shardsShared(f *Facts) []Finding {
	var o Objects
	for _, namespace := range slices.Sorted(maps.Keys(f.Fleet.In)) {
		if !slices.Contains(f.PlatformNamespaces, namespace) {
			o.Add(namespace)
		}
	}
	if f.TenantShards || o.Count == len(f.Fleet.In) {
		return nil
	}
	return some(o, Finding{Severity: Warning, Code: "FluxSharedByTenants",
		What: "namespaces outside of the platform's register clusters, and one controller of Flux serves these and the platform's: " +
			"each may hold its workers",
		Remedy: "give them shards of their own, by the hub's --flux-tenant-shards (docs/scale.md#shards)"})
}
