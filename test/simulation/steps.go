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
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// do carries out one line of a script. A step whose object does not exist does nothing, so that lines can be left out
// of a script.
func (w *World) do(line string) error {
	w.changes++
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
	if f[0] != "wait" && f[0] != "run" {
		w.edited = w.clock.Now()
	}
	w.noteAnswers()
	if c := verb.of(w, f[1:]); c != "" {
		return fmt.Errorf("%q: %s", line, c)
	}
	w.noteAnswers()
	w.noteWishes()
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

// ofAddon is for a verb that edits an add-on of a set.
func ofAddon(usage string, least int, do func(s *set, a *addon, f []string)) verb {
	return ofSet("ADDON "+usage, least+1, func(w *World, s *set, f []string) {
		if a := s.addon(f[0]); a != nil && !s.deleted {
			before := *a
			do(s, a, f[1:])
			if w.sharesFolder(*a) || !a.sameFolder(before) && w.lingers(*a) || a.name != before.name && w.lingersElsewhere(s, *a) {
				w.say("  (left out: another add-on applies the same folder)")
				*a = before
				return
			}
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
			if t := w.teamOf(s.namespace); t != nil {
				s.home = t.home
			}
			for _, a := range f[3:] {
				s.addons = append(s.addons, s.newAddon(a))
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
			if a := s.newAddon(f[0]); s.addon(a.name) == nil && !s.deleted { // a set that goes gets no revision any more
				if w.sharesFolder(a) || w.lingers(a) {
					a.chart += "-of-" + s.name
				}
				if w.sharesFolder(a) {
					return
				}
				a.after = w.ids
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
		"form":    ofAddon("FORM", 1, func(s *set, a *addon, f []string) { a.form = f[0]; s.settle(a) }),
		"account": ofAddon("NAME", 1, func(_ *set, a *addon, f []string) { a.account = f[0] }),
		"needs": ofAddon("vars.NAME|cluster.labels.KEY|origin|-", 1,
			func(_ *set, a *addon, f []string) { a.needs = strings.TrimPrefix(f[0], "-") }),
		"variables": ofSet("NAME VALUE|-", 2, func(w *World, s *set, f []string) {
			s.variables = maps.Clone(s.variables) // what a backup has stays as it was
			if s.variables == nil {
				s.variables = map[string]string{}
			}
			if s.variables[f[0]] = f[1]; f[1] == "-" {
				delete(s.variables, f[0])
			}
			w.write(s)
		}),
		"variable": named("NAME VALUE|NUMBER|-", 2, func(w *World, c *cluster, f []string) {
			value := valueOrNull(f[1])
			if _, err := strconv.Atoi(f[1]); err == nil {
				value = f[1]
			}
			w.patch(c.registration(), `{"spec":{"variables":{%q:%s}}}`, f[0], value)
		}),
		"annotate": named("NAME VALUE|-", 2, func(w *World, c *cluster, f []string) { // variables in an annotation of the origin
			value := "null"
			if f[1] != "-" {
				value = fmt.Sprintf("%q", fmt.Sprintf("{%q: %q}", f[0], f[1]))
			}
			if c.provider != "Hand" {
				w.patch(c.origin(), `{"metadata":{"annotations":{%q:%s}}}`, hubv1.VariablesAnnotation, value)
			}
		}),
		"rename": ofAddon("NAME", 1, func(s *set, a *addon, f []string) {
			if s.addon(f[0]) == nil {
				a.movedFrom, a.name = a.name, f[0]
			}
		}),
		"move": {"SET ADDON SET", 3, func(w *World, f []string) string {
			from, to := w.sets[f[0]], w.sets[f[2]]
			if from == nil || to == nil || from == to || from.deleted || to.deleted || from.addon(f[1]) == nil ||
				to.addon(f[1]) != nil || len(from.addons) < 2 {
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
			if s.off { // whoever turns the guard off approves of what has gone as well, and of what is held
				delete(w.heldAtRest, s.key())
				w.losses = slices.DeleteFunc(w.losses, func(l loss) bool { return l.set == s.namespace+"/"+s.name })
			}
			w.write(s)
		}),
		"policy": ofSet("Orphan|Delete", 1, func(w *World, s *set, f []string) {
			s.orphan = f[0] == "Orphan"
			s.orphaned = s.orphaned || s.orphan
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
			w.removeAll(keyOf(f[0], "", "").GroupKind(), f[1])
			return ""
		}},
		"terminate": {"NAMESPACE", 1, func(w *World, f []string) string { // nothing is made in it any more; step empty deletes what is there
			w.terminate(f[0])
			return ""
		}},
		"empty": {"KIND NAMESPACE", 2, func(w *World, f []string) string { // what the namespace controller does, which no policy denies
			w.empty(keyOf(f[0], "", "").GroupKind(), f[1])
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
				if w.refused(err); err == nil {
					w.remove(k)
				}
			}
			return ""
		}},
		"collect": {"KIND NAMESPACE NAME", 3, func(w *World, f []string) string { // garbage collection finishes a foreground deletion
			w.dropFinalizer(keyOf(f[0], f[1], f[2]), "foregroundDeletion")
			return ""
		}},
		"origin": named("", 0, func(w *World, c *cluster, _ []string) { // it is there again
			w.restoreSecret(c)
		}),
		"uncopy": named("NAMESPACE", 1, func(w *World, c *cluster, f []string) { // a user deletes the hub's own copy of the kubeconfig
			for _, o := range w.server.List(kinds["Secret"].GroupKind(), f[0]) {
				if label := apiserver.Label(o, hubv1.CopyLabel); label != "" && label != identity.ValuesCopy &&
					nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation) == c.namespace+"/"+c.name {
					w.remove(keyOf("Secret", f[0], nested(o, "metadata", "name").(string)))
				}
			}
		}),
		"twin":  named("", 0, func(w *World, c *cluster, _ []string) { w.twin(c) }),
		"adopt": named("", 0, func(w *World, c *cluster, _ []string) { w.adopt(c) }),
		"repoint": named("CLUSTER", 1, func(w *World, c *cluster, f []string) {
			if to := w.cluster(f[0]); to != nil {
				w.repoint(c, to)
			}
		}),
		"recreate": named("", 0, func(w *World, c *cluster, _ []string) { w.recreate(c) }),
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
		"overlap": {"WRITES", 1, func(w *World, f []string) string {
			n, err := strconv.Atoi(f[0])
			if err != nil {
				return err.Error()
			}
			w.overlap(n)
			return ""
		}},
		"restart":     {"", 0, func(w *World, _ []string) string { w.stopHub(); w.startHub(); return "" }},
		"relist":      {"", 0, func(w *World, _ []string) string { w.relist(); return "" }},
		"upgrade":     {"", 0, func(w *World, _ []string) string { w.upgrade(); return "" }},
		"backup":      {"", 0, func(w *World, _ []string) string { w.takeBackup(); return "" }},
		"restore":     {"KIND NAMESPACE NAME", 3, func(w *World, f []string) string { w.restore(keyOf(f[0], f[1], f[2])); return "" }},
		"interleave":  {"EVERY SEED", 2, func(w *World, f []string) string { return w.interleaves(f[0], f[1]) }},
		"knob":        {"NAME VALUE", 2, func(w *World, f []string) string { return w.knob(f[0], f[1]) }},
		"break-glass": {"", 0, func(w *World, _ []string) string { w.brokeGlass = true; return "" }},
		"forge":       named("", 0, func(w *World, c *cluster, _ []string) { w.forge(c, "stranger", "base") }),
		"forge-as": named("NAMESPACE SET", 2, func(w *World, c *cluster, f []string) {
			if w.teamOf(f[0]) != nil {
				w.forge(c, f[0], f[1])
			}
		}),
		"team": {"NAME HUB-NAMESPACE LABEL=VALUE|all", 3, func(w *World, f []string) string {
			w.writeTeam(f[0], f[1], selector(f[2]))
			return ""
		}},
		"expect": named("SET ADDON", 2, func(w *World, c *cluster, f []string) { // not only at the end
			if s := w.sets[f[0]]; s != nil && !w.runs(c, s, f[1]) {
				w.violated("convergence", "add-on %s of %s is not on %s%s", f[1], f[0], c.name, w.said(s, c, f[1]))
			}
		}),
		"tokens": named("given|refused", 1, func(_ *World, c *cluster, f []string) { c.refuses = f[0] == "refused" }),
		"suspend": named("ADDON true|false", 2, func(w *World, c *cluster, f []string) {
			if k, ok := w.fluxObject(c, f[0]); ok {
				w.patch(k, `{"spec":{"suspend":%s}}`, f[1])
			}
		}),
		"suspended": {"KIND NAMESPACE NAME true|false", 4, func(w *World, f []string) string {
			w.patch(keyOf(f[0], f[1], f[2]), `{"spec":{"suspend":%s}}`, f[3])
			return ""
		}},
	}
	maps.Copy(verbs, rolloutVerbs())
	maps.Copy(verbs, outageVerbs())
	maps.Copy(verbs, besideVerbs())
}

func valueOrNull(v string) string {
	if v == "-" {
		return "null"
	}
	return strconv.Quote(v)
}
