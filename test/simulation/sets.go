// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// set is an AddonSet as its author keeps it in Git.
type set struct {
	namespace, name string
	selector        map[string]any
	addons          []addon
	priority        int64
	off             bool
	orphan          bool
	// orphaned is true if it has ever been so.
	orphaned bool
	// variables are the set's own; a cluster's variables take precedence.
	variables map[string]string
	// home is the namespace on clusters of the Team whose set it is; "" if it is no Team's.
	home string
	// rollout names its strategy; "" for all clusters at once. held is until when its new revisions are held back; "-" without end.
	rollout, held string
	// deleted is true when the author has removed it.
	deleted bool
}

// addon is one of a set. form is helm, kustomization or manifests.
type addon struct {
	name, form, chart, version, release, account string
	movedFrom                                    string
	dependsOn                                    string
	// needs is what an expression of its body reads: vars.NAME, cluster.labels.KEY or origin; "" for no expression.
	needs string
	// reads is true if it reads what lies beside its cluster.
	reads bool
	// after is the last workload that there was when the add-on was added: it is none of the add-on's, whatever that is called.
	after int
}

// optional returns whether a cluster may exclude an add-on: its name says it.
func (a addon) optional() bool { return strings.HasPrefix(a.name, "optional") }

func (s *set) key() apiserver.Key {
	return apiserver.Key{Group: "chandler.dev", Kind: "AddonSet", Namespace: s.namespace, Name: s.name}
}

// object is the AddonSet.
func (s *set) object() apiserver.Object {
	var addons []any
	for _, a := range s.addons {
		o := apiserver.Object{"name": a.name}
		if a.optional() {
			o["optional"] = true
		}
		switch a.form {
		case "kustomization":
			body := apiserver.Object{"path": "./" + a.chart, "prune": true, "interval": "10m",
				"sourceRef": apiserver.Object{"kind": "GitRepository", "name": "git"}}
			if a.account != "" {
				body["serviceAccountName"] = a.account
			}
			if a.release != "" {
				body["targetNamespace"] = a.release
			}
			if a.needs != "" {
				body["postBuild"] = apiserver.Object{"substitute": a.reading()}
			}
			o["kustomization"] = body
		case "manifests":
			data := a.reading()
			data["version"] = a.version
			o["manifests"] = apiserver.Object{"objects": []any{apiserver.Object{
				"apiVersion": "v1", "kind": "ConfigMap", "data": data,
				"metadata": apiserver.Object{"name": a.name, "namespace": cmp.Or(s.home, "default")},
			}}}
		default:
			body := apiserver.Object{"chart": apiserver.Object{"spec": apiserver.Object{"chart": a.chart, "version": a.version,
				"sourceRef": apiserver.Object{"name": "charts"}}}}
			if a.release != "" {
				body["releaseName"] = a.release
			}
			if a.needs != "" {
				body["values"] = a.reading()
			}
			if a.reads {
				body["valuesFrom"] = a.readsValues()
			}
			o["helmRelease"] = body
		}
		if a.movedFrom != "" {
			from := apiserver.Object{"name": a.movedFrom}
			if set, name, ok := strings.Cut(a.movedFrom, "/"); ok {
				from = apiserver.Object{"addonSet": set, "name": name}
			}
			o["movedFrom"] = []any{from}
		}
		if a.dependsOn != "" && slices.ContainsFunc(s.addons, func(b addon) bool { return b.name == a.dependsOn }) {
			o["dependsOn"] = []any{apiserver.Object{"name": a.dependsOn}}
		}
		addons = append(addons, o)
	}
	spec := apiserver.Object{
		"sources": []any{apiserver.Object{"name": "charts", "kind": "HelmRepository",
			"spec": apiserver.Object{"url": "https://charts.example.org"}}},
		"addons": addons,
	}
	if len(s.variables) > 0 {
		variables := apiserver.Object{}
		for k, v := range s.variables {
			variables[k] = v
		}
		spec["variables"] = variables
	}
	if len(s.selector) == 0 {
		spec["selectAll"] = true
	} else {
		spec["clusterSelector"] = apiserver.Object{"matchLabels": maps.Clone(s.selector)}
	}
	if s.priority != 0 {
		spec["priority"] = s.priority
	}
	if s.off {
		spec["removalGuard"] = apiserver.Object{"mode": "Off"}
	}
	if s.orphan {
		spec["deletionPolicy"] = "Orphan"
	}
	s.staging(spec)
	return apiserver.Object{
		"apiVersion": "chandler.dev/v1alpha1", "kind": "AddonSet",
		"metadata": apiserver.Object{"namespace": s.namespace, "name": s.name}, "spec": spec,
	}
}

// nameless is what an expression that asks carefully makes of an origin that is not there.
const nameless = "nameless"

// reading returns what an add-on's body has with an expression in it. If a variable is missing, or is no text, the
// expression fails.
func (a addon) reading() apiserver.Object {
	if a.needs == "" {
		return apiserver.Object{}
	}
	if a.needs == "origin" { // which never fails
		return apiserver.Object{"read": "<< origin.?metadata.?name.orValue('" + nameless + "') + ' ' + " +
			"origin.?metadata.?labels.?tier.orValue('none') >>"}
	}
	return apiserver.Object{"read": "<< " + a.needs + ".upperAscii() >>"}
}

// write applies the set as GitOps does.
func (w *World) write(s *set) {
	s.deleted = nested(w.server.Get(s.key()), "metadata", "deletionTimestamp") != nil // what is on its way out goes, whatever is written
	_, err := w.server.Apply("user", s.key(), s.object(), true)
	w.refused(err)
}

func (s *set) addon(name string) *addon {
	for i := range s.addons {
		if s.addons[i].name == name {
			return &s.addons[i]
		}
	}
	return nil
}

// sharesFolder returns whether a Kustomization of another name applies the same folder into the same namespace: then
// their users have asked for two owners of the same objects. If both have one name, the hub decides who delivers it.
func (w *World) sharesFolder(a addon) bool {
	if a.form != "kustomization" {
		return false
	}
	for _, other := range w.sets {
		if slices.ContainsFunc(other.addons, func(b addon) bool { return a.sameFolder(b) && b.name != a.name }) {
			return true
		}
	}
	return false
}

// lingers returns whether a Kustomization of another name that applies the same folder still exists, even if no set
// has it any more.
func (w *World) lingers(a addon) bool {
	for k := range w.flux.due {
		o := w.server.Get(k)
		name := apiserver.Label(o, hubv1.AddonLabel)
		into, _ := nested(o, "spec", "targetNamespace").(string)
		if a.form == "kustomization" && nested(o, "spec", "path") == "./"+a.chart && into == a.release && name != a.name &&
			name != path.Base(a.movedFrom) {
			return true
		}
	}
	return false
}

// lingersElsewhere returns whether one of another set does: an add-on that is renamed before it has moved from that
// one does not go on with it any more.
func (w *World) lingersElsewhere(s *set, a addon) bool {
	for k := range w.flux.due {
		o := w.server.Get(k)
		of := &workload{set: setNameOf(o), addon: apiserver.Label(o, hubv1.AddonLabel)}
		into, _ := nested(o, "spec", "targetNamespace").(string)
		if a.form == "kustomization" && nested(o, "spec", "path") == "./"+a.chart && into == a.release && of.addon != a.name &&
			of.set != s.namespace+"/"+s.name && !(claim{s, a}).goesOnWith(of) {
			return true
		}
	}
	return false
}

func (a addon) sameFolder(b addon) bool {
	return a.form == b.form && a.chart == b.chart && a.release == b.release
}

func selector(s string) map[string]any {
	if s == "all" {
		return nil
	}
	k, v, _ := strings.Cut(s, "=")
	return map[string]any{k: v}
}

func (s *set) newAddon(text string) addon {
	parts := append(strings.Split(text, ":"), "", "")
	a := addon{name: parts[0], form: parts[1], chart: parts[0], version: "1.0.0", dependsOn: parts[2]}
	s.settle(&a)
	return a
}

// settle has a Kustomization of a team write into the team's namespace: for these the hub fills in no namespace.
func (s *set) settle(a *addon) {
	switch {
	case a.form == "kustomization" && a.release == "":
		a.release = s.home
	case a.form != "kustomization" && a.release == s.home:
		a.release = ""
	}
}
