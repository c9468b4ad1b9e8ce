// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// In an outage no process of the hub is at work. Users, clusters and Flux go on, and time passes. What the statuses say is old when the
// next process begins: it must not decide by what it has not seen itself.

// outageVerbs are the steps about outages.
func outageVerbs() map[string]verb {
	return map[string]verb{
		"stop": {"", 0, func(w *World, _ []string) string { w.stopHub(); return "" }},
		"start": {"", 0, func(w *World, _ []string) string {
			w.stopHub()
			if strings.HasPrefix(w.fault.kind, "kill") { // it was to end an earlier process
				w.fault = fault{}
			}
			w.startHub()
			return ""
		}},
		"hold-flux":   named("", 0, func(_ *World, c *cluster, _ []string) { c.holds = true }),
		"answer-flux": named("", 0, func(w *World, c *cluster, _ []string) { w.goOn(c) }),
		"force": named("", 0, func(w *World, c *cluster, _ []string) {
			w.patch(c.registration(), `{"metadata":{"annotations":{%q:"true"}}}`, hubv1.ForceUnregisterAnnotation)
		}),
		"kamaji": {"served|unserved", 1, func(w *World, f []string) string { w.serve(f[0] == "served"); return "" }},
		"state":  named("WORD", 1, func(w *World, c *cluster, f []string) { w.enter(c, f[0]) }),
		"drain":  named("TIMEOUT|-", 1, func(w *World, c *cluster, f []string) { w.drain(c, f[0]) }),
		"kill": {"WRITES before|after", 2, func(w *World, f []string) string {
			return w.plan(f, map[string]string{"before": "kill", "after": "killed"})
		}},
	}
}

// enter has Kamaji say in which state a cluster is.
func (w *World) enter(c *cluster, state string) {
	o := w.server.Get(c.origin())
	if c.provider != "Kamaji" || o == nil {
		return
	}
	next := apiserver.Clone(o)
	next["status"] = apiserver.Object{"kubeconfig": apiserver.Object{"admin": apiserver.Object{"secretName": c.secret().Name}},
		"kubernetesResources": apiserver.Object{"version": apiserver.Object{"status": state}}}
	_, err := w.server.Update("user", "status", c.origin(), next, true)
	w.refused(err)
}

// outages draws from a lot when the hub stops, what time passes until it starts, and what may come to an end meanwhile.
func (d *draw) outages() func() string {
	stopped := false
	return func() string {
		switch n := d.IntN(10); {
		case stopped && n < 2:
			stopped = false
			return "start"
		case stopped && n < 5:
			return d.one("up ", "up ", "down ", "hang ") + d.cluster()
		case stopped:
			return "wait " + d.one("3m", "20m", "70m", "3h")
		case n < 3:
			stopped = true
			return "stop"
		case n == 3:
			stopped = true
			return fmt.Sprintf("kill %d %s", 1+d.IntN(8), d.one("before", "after"))
		case n == 4:
			return "down " + d.cluster()
		case n == 5:
			return d.one("label "+d.cluster()+" tier test", "register "+d.cluster()+" false")
		}
		return "wait " + d.one("1m", "5m", "20m")
	}
}

// noteAnswers is called before and after each step and at the end, since nothing else changes whether a cluster answers and where a
// registration leads, and when a process begins.
func (w *World) noteAnswers() {
	for _, r := range w.clusters {
		if !w.answers(r) {
			r.mute = w.clock.Now()
		}
		to := w.there(r)
		if !to.down {
			r.silent = time.Time{} // without its Secret, the hub probes with its copy
		} else if r.silent.IsZero() {
			r.silent = w.clock.Now()
		}
		if r.leadsTo != to {
			if r.leadsTo != nil {
				r.turned = w.clock.Now()
			}
			r.leadsTo = to
		}
	}
}

// answers returns whether a cluster answers to the kubeconfig that its registration names, or, once that is being deleted, has named.
func (w *World) answers(r *cluster) bool {
	reg, to := w.registered(r), w.there(r)
	if reg == nil {
		return false
	}
	secret := to.secret()
	if reg.DeletionTimestamp != nil && reg.Status.Credential != nil {
		secret.Name = reg.Status.Credential.SecretName
	}
	for _, key := range []string{"value", "admin.conf"} {
		if text, ok := nested(w.server.Get(secret), "data", key).(string); ok {
			raw, err := base64.StdEncoding.DecodeString(text)
			reached, _, failed := w.reach(string(raw))
			return err == nil && failed == nil && reached == to
		}
	}
	return false
}

// checkSilence: what a process orphans on a cluster because that has not answered, it has asked before, and has had no answer. For that
// it has the time in which it looks at all clusters.
func (w *World) checkSilence(d *hubv1.AddonDelivery) {
	h, r := w.at, w.cluster(d.Spec.RegistrationRef.Name)
	if h == nil || r == nil {
		return
	}
	for _, a := range d.Status.Addons {
		k := keyOf(a.Kind, d.Namespace, a.Object)
		// An earlier process has orphaned it, or this one, and a write of it may have failed. Its set may have gone on with it and left it again
		// before it had an object.
		told := [2]string{d.Name, k.String()}
		known := w.announced[told]
		w.announced[told] = a.State == hubv1.AddonOrphaned || known && (a.State == hubv1.AddonRemoving || w.server.Get(k) == nil)
		if known || a.State != hubv1.AddonOrphaned || !strings.HasPrefix(a.Message, "the cluster has not answered for") {
			continue
		}
		reg, _ := w.registrationAt(d.Spec.RegistrationRef.Key())
		switch {
		case w.clock.Now().Sub(h.began) < tenure.Looks:
			w.violated("silence", "add-on %s of %s is orphaned on %s for its silence, and the process that does so has been at work for %s",
				a.Name, d.SetKey(), r.name, w.clock.Now().Sub(h.began))
		case w.answers(r) && r.mute.Before(h.began) && reg != nil && reg.CreationTimestamp.Time.Before(h.began):
			w.violated("silence", "add-on %s of %s is orphaned on %s for its silence, and it has answered since %s, before this "+
				"process began at %s", a.Name, d.SetKey(), r.name, r.mute.UTC().Format(time.TimeOnly), h.began.UTC().Format(time.TimeOnly))
		}
	}
}

// checkAsked: a process suspends a cluster that does not answer when it has asked it.
func (w *World) checkAsked(write apiserver.Write) {
	h, r := w.at, w.cluster(write.Key.Name)
	if h == nil || r == nil || write.Old == nil || h.asked[w.there(r).address] {
		return
	}
	before, reg := typed(w, write.Old, &hubv1.ClusterRegistration{}), typed(w, write.New, &hubv1.ClusterRegistration{})
	secret, _ := nested(w.server.Get(w.there(r).secret()), "metadata", "creationTimestamp").(string)
	made, err := time.Parse(time.RFC3339, secret)
	if err != nil || !made.Before(h.began) || hubv1.Tripped(status.Reason(before, hubv1.SuspendedCondition)) {
		return // there is nothing to ask it with, as far as the process may know
	}
	if !r.turned.Before(h.began) || reg.DeletionTimestamp != nil && !r.turned.IsZero() {
		return // what the process has asked is the cluster that the registration led to before; one that goes keeps to that
	}
	if hubv1.Tripped(status.Reason(reg, hubv1.SuspendedCondition)) {
		w.violated("silence", "%s is suspended since it does not answer, and the process that does so has not asked it", r.name)
	}
}

// recorded is for how long a delivery that goes waits until others name what it has orphaned.
const recorded = time.Minute

// checkRecorded: what a delivery that goes has orphaned is named by its set, unless another one takes it over, and its registration. A
// process that begins takes as long for that as it would have had.
func (w *World) checkRecorded(write apiserver.Write) {
	h := w.at
	if h == nil || write.Key.Kind != "AddonDelivery" || write.New != nil {
		return
	}
	d, set, reg := typed(w, write.Old, &hubv1.AddonDelivery{}), &hubv1.AddonSet{}, &hubv1.ClusterRegistration{}
	key, ctx, now := d.Spec.RegistrationRef.Key(), context.Background(), w.clock.Now()
	if t := w.teamOf(d.Namespace); t != nil && t.deleted {
		return // without its Team, a set is out of the hub's reach, and events alone tell what is left
	}
	bySet := h.cache.Get(ctx, d.SetKey(), set) == nil && set.DeletionTimestamp == nil
	byRegistration := h.cache.Get(ctx, key, reg) == nil && !status.Goes(reg)
	for _, a := range d.Status.Addons {
		if a.State != hubv1.AddonOrphaned || a.Since == nil || now.Sub(a.Since.Time) > recorded && now.Sub(h.began) > recorded {
			continue
		}
		names := func(o hubv1.Orphan) bool {
			return o.Addon == a.Name && o.Cluster == key.String() && o.AddonSet == d.SetKey().String()
		}
		if bySet && a.TakenOverBy == nil && !slices.ContainsFunc(set.Status.Orphans, names) ||
			byRegistration && !slices.ContainsFunc(reg.Status.Orphans, names) {
			w.violated("orphans", "delivery %s goes, and what it orphaned of %s is not named by its set and its registration", d.Name, a.Name)
		}
	}
}

// overdue returns whether a cluster that was started with a revision should be Ready by now. The time before the process that is at work
// began does not count: nobody may have looked.
func (w *World) overdue(started time.Time, spec *hubv1.Rollout) bool {
	h := w.at
	if h == nil {
		h = w.hub
	}
	if h == nil {
		return false
	}
	if started.Before(h.began) {
		started = h.began
	}
	return w.clock.Now().Sub(started) >= deadlineOf(spec)
}

// checkUnseen: no further cluster gets a revision on a soak that ended while no hub was at work, if one of the wave has failed in it.
func (w *World) checkUnseen(s *set, r *rolling, o *rolled, other, key types.NamespacedName, to string) {
	wave := &r.specs[0].Waves[o.wave]
	passed := r.expedited[to] || r.passed[wave.Name] || r.passed[""] || r.wentBack[wave.Name]
	soaks := o.revision == to && !o.readyAt.IsZero() && !o.lapsed && !o.excused && o.start != nil && o.start.Healthy
	if w.at == nil || wave.Soak == nil || wave.MaxFailures != nil || passed || !soaks {
		return
	}
	at, failed := w.failedOn(s, other)
	if failed && at.After(o.readyAt) && at.Before(w.at.began) && at.Before(o.readyAt.Add(wave.Soak.Duration)) {
		w.violated("rollout", "%s gets %s, and %s of wave %s has failed on it at %s in its soak, before this process began",
			key, to, other, wave.Name, at.UTC().Format(time.TimeOnly))
	}
}

// failedOn returns whether Flux says that something of a set fails on a cluster that it reaches, and since when.
func (w *World) failedOn(s *set, key types.NamespacedName) (at time.Time, failed bool) {
	for k := range w.flux.due {
		o := w.server.Get(k)
		if o == nil || setNameOf(o) != s.namespace+"/"+s.name || registrationIn(o) != key.String() || nested(o, "spec", "suspend") == true ||
			nested(o, "metadata", "deletionTimestamp") != nil {
			continue
		}
		conditions, _ := nested(o, "status", "conditions").([]any)
		if len(conditions) != 1 || nested(conditions[0], "status") != string(metav1.ConditionFalse) ||
			nested(conditions[0], "reason") != "UpgradeFailed" {
			continue
		}
		text, _ := nested(conditions[0], "lastTransitionTime").(string)
		if since, err := time.Parse(time.RFC3339, text); err == nil && (!failed || since.Before(at)) {
			at, failed = since, true
		}
	}
	return at, failed
}

// drain has somebody drain a cluster, or, with "-", call that off.
func (w *World) drain(c *cluster, timeout string) {
	if timeout == "-" {
		c.drained = time.Time{}
		w.patch(c.origin(), `{"metadata":{"annotations":{%q:null}}}`, hubv1.DrainAnnotation)
		return
	}
	if c.provider != "Kamaji" || w.server.Get(c.registration()) == nil || w.server.Get(c.origin()) == nil {
		return // what it comes from is no cluster, or it is not there
	}
	c.drained = w.clock.Now()
	w.patch(c.registration(), `{"spec":{"drainBeforeDeletion":{"timeout":%q}}}`, timeout)
	w.patch(c.origin(), `{"metadata":{"annotations":{%q:"true"}}}`, hubv1.DrainAnnotation)
}

// checkDrained: an origin is marked as drained when nothing is left that Flux delivers to its cluster, or when a process has tried for the
// timeout to uninstall it.
func (w *World) checkDrained(write apiserver.Write) {
	h, c := w.at, w.cluster(write.Key.Name)
	marked := func(o apiserver.Object) bool {
		return nested(o, "metadata", "annotations", hubv1.DrainedAnnotation) == "true"
	}
	if h == nil || c == nil || c.drained.IsZero() || write.Key != c.origin() || marked(write.Old) || !marked(write.New) {
		return
	}
	reg := w.registered(c)
	if reg == nil || reg.Spec.DrainBeforeDeletion == nil || reg.Spec.DrainBeforeDeletion.Timeout == nil {
		return
	}
	since := c.drained
	if since.Before(h.began) {
		since = h.began
	}
	if w.clock.Now().Sub(since) >= reg.Spec.DrainBeforeDeletion.Timeout.Duration {
		return
	}
	for _, name := range sortedKeys(c.workloads) {
		if work := c.workloads[name]; w.object(work.ownerUID) != nil {
			w.violated("drain", "%s is marked as drained, and %s is there; this process has drained it for %s of %s", c.name, name,
				w.clock.Now().Sub(since), reg.Spec.DrainBeforeDeletion.Timeout.Duration)
		}
	}
}

// checkUnread: a process orphans what a registration has, since its origin could not be read for the grace, if that was so for so long
// since the process began.
func (w *World) checkUnread(write apiserver.Write) {
	unread := func(o apiserver.Object) bool {
		c := status.Find(typed(w, o, &hubv1.ClusterRegistration{}), hubv1.UnregisteringCondition)
		return c != nil && strings.HasPrefix(c.Message, "its origin could not be read for")
	}
	if w.at == nil || write.Old == nil || unread(write.Old) || !unread(write.New) {
		return
	}
	since := w.unread
	if since.Before(w.at.began) {
		since = w.at.began
	}
	if w.unread.IsZero() || w.clock.Now().Sub(since) < w.config.TeardownGrace {
		w.violated("silence", "%s is orphaned since its origin could not be read, which is so since %s, and this process began at %s",
			write.Key.Name, w.unread.UTC().Format(time.TimeOnly), w.at.began.UTC().Format(time.TimeOnly))
	}
}

// serve has the API server serve Kamaji's kind, or not, as while its CRD is made anew.
func (w *World) serve(serves bool) {
	k := apiserver.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "tenantcontrolplanes.kamaji.clastix.io"}
	is := map[bool]string{true: "True", false: "False"}[serves]
	_, err := w.server.Update("user", "status", k, apiserver.Object{"status": apiserver.Object{"conditions": []any{
		apiserver.Object{"type": "Established", "status": is}}}}, true)
	must(err)
	if w.unread = w.clock.Now(); serves {
		w.unread = time.Time{}
	}
}
