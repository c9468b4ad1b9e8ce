// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render"
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
	// deleted is true when the author has removed it.
	deleted bool
}

// addon is one of a set. form is helm, kustomization or manifests.
type addon struct {
	name, form, chart, version, release, account string
	movedFrom                                    string
	dependsOn                                    string
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
			body := apiserver.Object{"path": "./" + a.chart, "prune": true, "interval": "10m", "sourceRef": apiserver.Object{"kind": "GitRepository", "name": "git"}}
			if a.account != "" {
				body["serviceAccountName"] = a.account
			}
			if a.release != "" {
				body["targetNamespace"] = a.release
			}
			o["kustomization"] = body
		case "manifests":
			o["manifests"] = apiserver.Object{"objects": []any{apiserver.Object{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": apiserver.Object{"name": a.name, "namespace": "default"}, "data": apiserver.Object{"version": a.version},
			}}}
		default:
			body := apiserver.Object{"chart": apiserver.Object{"spec": apiserver.Object{"chart": a.chart, "version": a.version, "sourceRef": apiserver.Object{"name": "charts"}}}}
			if a.release != "" {
				body["releaseName"] = a.release
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
		"sources": []any{apiserver.Object{"name": "charts", "kind": "HelmRepository", "spec": apiserver.Object{"url": "https://charts.example.org"}}},
		"addons":  addons,
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
	return apiserver.Object{
		"apiVersion": "chandler.dev/v1alpha1", "kind": "AddonSet", "metadata": apiserver.Object{"namespace": s.namespace, "name": s.name}, "spec": spec,
	}
}

// write applies the set as GitOps does.
func (w *World) write(s *set) {
	s.deleted = nested(w.server.Get(s.key()), "metadata", "deletionTimestamp") != nil // what is on its way out goes, whatever is written
	_, err := w.server.Apply("user", s.key(), s.object(), true)
	w.refused(err)
}

func (w *World) refused(err error) {
	if err != nil {
		w.say("  (refused: %v)", err)
	}
}

// patch is what a user does with kubectl patch or edit.
func (w *World) patch(k apiserver.Key, change string, args ...any) {
	_, err := w.server.Patch("user", k, fmt.Appendf(nil, change, args...), false)
	w.refused(err)
}

// kinds by the words that scripts use.
var kinds = map[string]apiserver.Key{
	"AddonSet": {Group: "chandler.dev", Kind: "AddonSet"}, "AddonDelivery": {Group: "chandler.dev", Kind: "AddonDelivery"},
	"ClusterRegistration": {Group: "chandler.dev", Kind: "ClusterRegistration"}, "Secret": {Kind: "Secret"}, "ServiceAccount": {Kind: "ServiceAccount"},
	"HelmRelease": {Group: helmGroup, Kind: "HelmRelease"}, "Kustomization": {Group: kustomizeGroup, Kind: "Kustomization"},
	"HelmChart": {Group: sourceGroup, Kind: "HelmChart"}, "HelmRepository": {Group: sourceGroup, Kind: "HelmRepository"},
	"TenantControlPlane": {Group: "kamaji.clastix.io", Kind: "TenantControlPlane"}, "ControllerRevision": {Group: "apps", Kind: "ControllerRevision"},
}

func keyOf(kind, namespace, name string) apiserver.Key {
	k := kinds[kind]
	k.Namespace, k.Name = namespace, name
	return k
}

// do carries out one line of a script. A step whose object is not there does nothing, so that a script may lose lines.
func (w *World) do(line string) error {
	f := strings.Fields(line)
	if len(f) == 0 || strings.HasPrefix(f[0], "#") {
		return nil
	}
	w.say("%s %s", w.clock.Now().Sub(start), line)
	verb, ok := verbs[f[0]]
	if !ok {
		return fmt.Errorf("%q: no such step", line)
	}
	if len(f)-1 < verb.least {
		return fmt.Errorf("%q: write %s %s", line, f[0], verb.usage)
	}
	if c := verb.of(w, f[1:]); c != "" {
		return fmt.Errorf("%q: %s", line, c)
	}
	w.noteWishes()
	w.checkAlways()
	return nil
}

type verb struct {
	usage string
	least int
	of    func(w *World, f []string) string
}

// named makes of a function for a cluster one of a verb.
func named(usage string, least int, do func(w *World, c *cluster, f []string)) verb {
	return verb{"CLUSTER " + usage, least + 1, func(w *World, f []string) string {
		if c := w.cluster(f[0]); c != nil {
			do(w, c, f[1:])
		}
		return ""
	}}
}

// ofSet is for a verb that edits a set.
func ofSet(usage string, least int, do func(w *World, s *set, f []string)) verb {
	return verb{"SET " + usage, least + 1, func(w *World, f []string) string {
		if s := w.sets[f[0]]; s != nil {
			do(w, s, f[1:])
		}
		return ""
	}}
}

func (s *set) addon(name string) *addon {
	for i := range s.addons {
		if s.addons[i].name == name {
			return &s.addons[i]
		}
	}
	return nil
}

// ofAddon is for a verb that edits an add-on of a set.
func ofAddon(usage string, least int, do func(s *set, a *addon, f []string)) verb {
	return ofSet("ADDON "+usage, least+1, func(w *World, s *set, f []string) {
		if a := s.addon(f[0]); a != nil && !s.deleted {
			do(s, a, f[1:])
			w.write(s)
		}
	})
}

var verbs map[string]verb

func init() {
	verbs = map[string]verb{
		"cluster": {"NAME PROVIDER [LABEL=VALUE...]", 2, func(w *World, f []string) string {
			if w.cluster(f[0]) == nil {
				labels := map[string]string{}
				for _, l := range f[2:] {
					k, v, _ := strings.Cut(l, "=")
					labels[k] = v
				}
				w.addCluster(f[0], f[1], labels)
			}
			return ""
		}},
		"set": {"NAMESPACE NAME LABEL=VALUE|all ADDON:FORM[:DEPENDENCY]...", 4, func(w *World, f []string) string {
			s := &set{namespace: f[0], name: f[1], selector: selector(f[2])}
			for _, a := range f[3:] {
				s.addons = append(s.addons, newAddon(a))
			}
			w.sets[s.name] = s
			w.write(s)
			return ""
		}},
		"run": {"UNITS SEED", 2, func(w *World, f []string) string {
			n, _ := strconv.Atoi(f[0])
			seed, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				return err.Error()
			}
			w.run(n, seed)
			return ""
		}},
		"wait": {"DURATION", 1, func(w *World, f []string) string {
			d, err := time.ParseDuration(f[0])
			if err != nil {
				return err.Error()
			}
			w.wait(d)
			return ""
		}},
		"label": named("KEY VALUE|-", 2, func(w *World, c *cluster, f []string) {
			w.patch(c.origin(), `{"metadata":{"labels":{%q:%s}}}`, f[0], valueOrNull(f[1]))
		}),
		"register": named("true|false|-", 1, func(w *World, c *cluster, f []string) {
			if c.provider != "Hand" {
				w.patch(c.origin(), `{"metadata":{"labels":{%q:%s}}}`, hubv1.RegisterLabel, valueOrNull(f[0]))
			}
		}),
		"pause": named("", 0, func(w *World, c *cluster, _ []string) {
			w.patch(c.registration(), `{"spec":{"pause":{"reason":"maintenance"}}}`)
		}),
		"unpause": named("", 0, func(w *World, c *cluster, _ []string) { w.patch(c.registration(), `{"spec":{"pause":null}}`) }),
		"exclude": named("ADDON", 1, func(w *World, c *cluster, f []string) {
			w.patch(c.registration(), `{"spec":{"overrides":[{"name":%q,"exclude":true}]}}`, f[0])
		}),
		"include": named("", 0, func(w *World, c *cluster, _ []string) { w.patch(c.registration(), `{"spec":{"overrides":null}}`) }),
		"rotate": named("", 0, func(w *World, c *cluster, _ []string) {
			c.token++
			w.rewrite(c)
		}),
		"down":    named("", 0, func(_ *World, c *cluster, _ []string) { c.down = true }),
		"hang":    named("", 0, func(_ *World, c *cluster, _ []string) { c.hung = true }),
		"up":      named("", 0, func(_ *World, c *cluster, _ []string) { c.down, c.hung = false, false }),
		"rebuild": named("", 0, func(w *World, c *cluster, _ []string) { w.rebuild(c) }),
		"select": ofSet("LABEL=VALUE|all", 1, func(w *World, s *set, f []string) {
			s.selector = selector(f[0])
			w.write(s)
		}),
		"add": ofSet("ADDON:FORM[:DEPENDENCY]", 1, func(w *World, s *set, f []string) {
			if a := newAddon(f[0]); s.addon(a.name) == nil {
				s.addons = append(s.addons, a)
				w.write(s)
			}
		}),
		"drop": ofSet("ADDON", 1, func(w *World, s *set, f []string) {
			if len(s.addons) > 1 {
				s.addons = slices.DeleteFunc(s.addons, func(a addon) bool { return a.name == f[0] })
				w.write(s)
			}
		}),
		"version": ofAddon("VERSION", 1, func(_ *set, a *addon, f []string) { a.version = f[0] }),
		"chart":   ofAddon("CHART", 1, func(_ *set, a *addon, f []string) { a.chart = f[0] }),
		"release": ofAddon("NAME", 1, func(_ *set, a *addon, f []string) { a.release = f[0] }),
		"form":    ofAddon("FORM", 1, func(_ *set, a *addon, f []string) { a.form = f[0] }),
		"account": ofAddon("NAME", 1, func(_ *set, a *addon, f []string) { a.account = f[0] }),
		"rename": ofAddon("NAME", 1, func(s *set, a *addon, f []string) {
			if s.addon(f[0]) == nil {
				a.movedFrom, a.name = a.name, f[0]
			}
		}),
		"move": {"SET ADDON SET", 3, func(w *World, f []string) string {
			from, to := w.sets[f[0]], w.sets[f[2]]
			if from == nil || to == nil || from == to || from.deleted || to.deleted || from.addon(f[1]) == nil || to.addon(f[1]) != nil || len(from.addons) < 2 {
				return ""
			}
			a := *from.addon(f[1])
			a.movedFrom = from.name + "/" + a.name
			a.dependsOn = ""
			to.addons = append(to.addons, a)
			w.write(to)
			from.addons = slices.DeleteFunc(from.addons, func(b addon) bool { return b.name == f[1] })
			w.write(from)
			return ""
		}},
		"priority": ofSet("NUMBER", 1, func(w *World, s *set, f []string) {
			s.priority, _ = strconv.ParseInt(f[0], 10, 64)
			w.write(s)
		}),
		"guard": ofSet("off|on", 1, func(w *World, s *set, f []string) {
			s.off = f[0] == "off"
			w.write(s)
		}),
		"policy": ofSet("Orphan|Delete", 1, func(w *World, s *set, f []string) {
			s.orphan = f[0] == "Orphan"
			w.write(s)
		}),
		"reapply": ofSet("", 0, func(w *World, s *set, _ []string) { w.write(s) }),
		"approve": ofSet("", 0, func(w *World, s *set, _ []string) { w.approve(s) }),
		"break":   {"ADDON", 1, func(w *World, f []string) string { w.broken[f[0]] = true; return "" }},
		"mend":    {"ADDON", 1, func(w *World, f []string) string { delete(w.broken, f[0]); return "" }},
		"delete": {"KIND NAMESPACE NAME", 3, func(w *World, f []string) string {
			w.remove(keyOf(f[0], f[1], f[2]))
			return ""
		}},
		"delete-all": {"KIND NAMESPACE", 2, func(w *World, f []string) string {
			for _, o := range w.server.List(keyOf(f[0], "", "").GroupKind(), f[1]) {
				w.remove(keyOf(f[0], f[1], nested(o, "metadata", "name").(string)))
			}
			return ""
		}},
		"foreground": {"KIND NAMESPACE NAME", 3, func(w *World, f []string) string {
			k := keyOf(f[0], f[1], f[2])
			if o := w.server.Get(k); o != nil {
				next := apiserver.Clone(o)
				m := next["metadata"].(map[string]any)
				list, _ := m["finalizers"].([]any)
				m["finalizers"] = append(slices.Clone(list), "foregroundDeletion")
				_, err := w.server.Update("user", "finalizer", k, next, false)
				w.refused(err)
				w.remove(k)
			}
			return ""
		}},
		"collect": {"KIND NAMESPACE NAME", 3, func(w *World, f []string) string { // garbage collection finishes a foreground deletion
			w.dropFinalizer(keyOf(f[0], f[1], f[2]), "foregroundDeletion")
			return ""
		}},
		"origin": named("", 0, func(w *World, c *cluster, _ []string) { // it is there again
			if w.server.Get(c.secret()) == nil {
				w.make(c.secret(), apiserver.Object{"apiVersion": "v1", "data": c.data(), "metadata": apiserver.Object{"labels": apiserver.Object{hubv1.RegisterLabel: "true", "tier": "prod"}}})
			}
		}),
		"destroy": named("", 0, func(w *World, c *cluster, _ []string) { // the cluster itself
			c.gone = true
			w.remove(c.origin())
		}),
		"crash": {"WRITES before|after", 2, func(w *World, f []string) string {
			return w.plan(f, map[string]string{"before": "crash", "after": "crashed"})
		}},
		"apierror": {"WRITES before|after", 2, func(w *World, f []string) string {
			return w.plan(f, map[string]string{"before": "before", "after": "after"})
		}},
		"restart": {"", 0, func(w *World, _ []string) string { w.stopHub(); w.startHub(); return "" }},
		"stop":    {"", 0, func(w *World, _ []string) string { w.stopHub(); return "" }},
		"start":   {"", 0, func(w *World, _ []string) string { w.stopHub(); w.startHub(); return "" }},
		"relist":  {"", 0, func(w *World, _ []string) string { w.relist(); return "" }},
		"upgrade": {"", 0, func(w *World, _ []string) string { w.upgrade(); return "" }},
		"backup":  {"", 0, func(w *World, _ []string) string { w.takeBackup(); return "" }},
		"restore": {"KIND NAMESPACE NAME", 3, func(w *World, f []string) string { w.restore(keyOf(f[0], f[1], f[2])); return "" }},
		"forge":   named("", 0, func(w *World, c *cluster, _ []string) { w.forge(c) }),
		"suspended": {"KIND NAMESPACE NAME true|false", 4, func(w *World, f []string) string {
			w.patch(keyOf(f[0], f[1], f[2]), `{"spec":{"suspend":%s}}`, f[3])
			return ""
		}},
	}
}

func valueOrNull(v string) string {
	if v == "-" {
		return "null"
	}
	return strconv.Quote(v)
}

func selector(s string) map[string]any {
	if s == "all" {
		return nil
	}
	k, v, _ := strings.Cut(s, "=")
	return map[string]any{k: v}
}

func newAddon(text string) addon {
	parts := append(strings.Split(text, ":"), "", "")
	a := addon{name: parts[0], form: parts[1], chart: parts[0], version: "1.0.0", dependsOn: parts[2]}
	return a
}

func (w *World) remove(k apiserver.Key) {
	if w.server.Get(k) == nil {
		return
	}
	if k.Kind == "AddonSet" {
		if s := w.sets[k.Name]; s != nil && s.namespace == k.Namespace {
			s.deleted = true
		}
	}
	if isFlux(k) { // whoever deletes a Flux object has Flux uninstall, and not the hub
		for _, c := range w.clusters {
			for _, work := range c.workloads {
				if work.owner == k.String() {
					work.unwanted, work.approved = true, true
				}
			}
		}
	}
	w.refused(w.server.Delete("user", k, apiserver.Preconditions{}))
}

// rewrite writes the Secret of a cluster's kubeconfig anew, as its controller does.
func (w *World) rewrite(c *cluster) {
	o := w.server.Get(c.secret())
	if o == nil {
		return
	}
	next := apiserver.Clone(o)
	next["data"] = c.data()
	_, err := w.server.Update("user", "rotate", c.secret(), next, false)
	w.refused(err)
}

// rebuild makes another cluster of the same name and address.
func (w *World) rebuild(c *cluster) {
	c.life++
	c.workloads = map[string]*workload{}
	for k, o := range w.orphans {
		if o.cluster == c {
			delete(w.orphans, k)
		}
	}
	w.rewrite(c)
}

func (w *World) plan(f []string, kinds map[string]string) string {
	n, err := strconv.Atoi(f[0])
	if err != nil || kinds[f[1]] == "" {
		return "write a number, and before or after"
	}
	w.fault = fault{in: n, kind: kinds[f[1]]}
	return ""
}

func (w *World) relist() {
	if w.hub != nil {
		for _, i := range w.hub.cache.Informers() {
			i.Relist()
		}
	}
}

// upgrade makes the present state one that an older renderer has left: its revisions are of another epoch.
func (w *World) upgrade() {
	w.stopHub()
	now, before := fmt.Sprintf("-e%d", render.Epoch), fmt.Sprintf("-e%d", render.Epoch-1)
	older := func(v any) string {
		s, _ := v.(string)
		if strings.HasSuffix(s, now) {
			return strings.TrimSuffix(s, now) + before
		}
		return s
	}
	for _, o := range w.server.List(kinds["ControllerRevision"].GroupKind(), "") {
		name, ns := nested(o, "metadata", "name").(string), nested(o, "metadata", "namespace").(string)
		if to := older(name); to != name && w.server.Get(keyOf("ControllerRevision", ns, to)) == nil {
			next := apiserver.Clone(o)
			next["metadata"].(map[string]any)["name"] = to
			_, err := w.server.Create("flux", keyOf("ControllerRevision", ns, to), next)
			w.refused(err)
			w.refused(w.server.Delete("flux", keyOf("ControllerRevision", ns, name), apiserver.Preconditions{}))
		}
	}
	for _, kind := range []string{"AddonDelivery", "AddonSet"} {
		for _, o := range w.server.List(kinds[kind].GroupKind(), "") {
			k := keyOf(kind, nested(o, "metadata", "namespace").(string), nested(o, "metadata", "name").(string))
			next := apiserver.Clone(o)
			if spec, ok := next["spec"].(map[string]any); ok && spec["revisionName"] != nil {
				spec["revisionName"] = older(spec["revisionName"])
				next, _ = w.server.Update("chandler", "older", k, next, false)
				next = apiserver.Clone(next)
			}
			if st, ok := next["status"].(map[string]any); ok {
				for _, f := range []string{"revision", "observedRevision", "readyRevision"} {
					if st[f] != nil {
						st[f] = older(st[f])
					}
				}
				_, err := w.server.Update("flux", "older", k, next, true)
				w.refused(err)
			}
		}
	}
	w.startHub()
}

func (w *World) takeBackup() {
	w.backup = map[apiserver.Key]apiserver.Object{}
	for kind, k := range kinds {
		for _, o := range w.server.List(k.GroupKind(), "") {
			ns, _ := nested(o, "metadata", "namespace").(string)
			w.backup[keyOf(kind, ns, nested(o, "metadata", "name").(string))] = o
		}
	}
}

// restore brings an object back as Velero does: without its status and UID, unless it is there.
func (w *World) restore(k apiserver.Key) {
	o := w.backup[k]
	if o == nil || w.server.Get(k) != nil {
		return
	}
	next := apiserver.Clone(o)
	delete(next, "status")
	_, err := w.server.Create("user", k, next)
	w.refused(err)
	if k.Kind == "AddonSet" && err == nil && w.sets[k.Name] != nil {
		w.sets[k.Name].deleted = false
	}
}

// forge makes a delivery of a stranger's for a cluster.
func (w *World) forge(c *cluster) {
	w.make(keyOf("AddonDelivery", "stranger", "forged-"+c.name), apiserver.Object{
		"apiVersion": "chandler.dev/v1alpha1",
		"spec": apiserver.Object{
			"registrationRef": apiserver.Object{"namespace": c.namespace, "name": c.name}, "addonSetRef": apiserver.Object{"name": "base"}, "revisionName": "base-0123456789-e2",
		},
	})
}
