// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// What users want is known to the model from what they did, and from nothing that the hub says.

// selects returns whether a set is to be on a cluster.
func (w *World) selects(s *set, c *cluster) bool {
	if s.deleted || c.gone || s.namespace != "flux-system" && s.namespace != c.namespace {
		return false
	}
	labels := w.labelsOf(c)
	if labels == nil {
		return false
	}
	for k, v := range s.selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// labelsOf returns the labels that a cluster's origin has, or had last; nil if the cluster is not to be registered.
func (w *World) labelsOf(c *cluster) map[string]string {
	o := w.server.Get(c.origin())
	if o != nil && nested(o, "metadata", "deletionTimestamp") == nil {
		c.labels = apiserver.Labels(o)
	} else if c.provider == "Hand" {
		return nil // whoever deletes a registration that has no origin unregisters the cluster
	}
	if c.provider != "Hand" && c.labels[hubv1.RegisterLabel] != "true" {
		return nil
	}
	return c.labels
}

// wanted returns whether somebody wants what a workload is: a set that selects the cluster has its add-on, or one that was moved from it.
func (w *World) wanted(c *cluster, work *workload) bool {
	for _, s := range w.sets {
		if !w.selects(s, c) {
			continue
		}
		for _, a := range s.addons {
			if !a.fits(work) || a.name != work.addon && a.movedFrom != work.addon && !strings.HasSuffix(a.movedFrom, "/"+work.addon) {
				continue
			}
			if !a.optional() || !w.excluded(c, a.name) {
				return true
			}
		}
	}
	return false
}

// fits returns whether a workload is what an add-on brings, so that Flux has no reason to take it away and bring another.
func (a addon) fits(work *workload) bool {
	switch a.form {
	case "kustomization":
		return slices.Contains(objectsOf("./"+a.chart, a.release), work.name)
	case "manifests":
		return work.chart == manifestchart.Name
	}
	release := a.release
	if release == "" && a.movedFrom == "" { // what was moved keeps the release that it had
		release = a.name
	}
	return work.chart == a.chart && (release == "" || strings.HasSuffix(work.name, "/"+release))
}

func (w *World) excluded(c *cluster, addon string) bool {
	overrides, _ := nested(w.server.Get(c.registration()), "spec", "overrides").([]any)
	return slices.ContainsFunc(overrides, func(o any) bool { return nested(o, "name") == addon && nested(o, "exclude") == true })
}

// noteWishes marks what nobody wants any more, or wants in another place, after an edit.
func (w *World) noteWishes() {
	for _, c := range w.clusters {
		for _, work := range c.workloads {
			if !w.wanted(c, work) {
				work.unwanted = true
			}
			if _, name, ok := strings.Cut(work.set, "/"); ok && work.unwanted && w.sets[name] != nil && w.sets[name].off {
				work.approved = true
			}
		}
	}
}

// lost is told of every workload that Flux takes off a cluster that lives.
func (w *World) lost(c *cluster, work *workload, why string) {
	if c.gone {
		return
	}
	if !work.unwanted && !work.approved {
		w.violated("loss", "%s on %s was taken away (%s), and everybody has wanted it all the time", work.name, c.name, why)
		return
	}
	if work.approved {
		return
	}
	namespace, name, _ := strings.Cut(work.set, "/")
	uid, _ := nested(w.server.Get(keyOf("AddonSet", namespace, name)), "metadata", "uid").(string)
	now := w.clock.Now()
	w.losses = append(w.losses, loss{at: now, cluster: c.name, set: work.set, setUID: uid, addon: work.addon})
	clusters := map[string]bool{}
	for _, l := range w.losses {
		if l.setUID == uid && l.set == work.set && l.addon == work.addon && now.Sub(l.at) < time.Hour {
			clusters[l.cluster] = true
		}
	}
	if limit := max(3, len(w.clusters)/10); len(clusters) > limit {
		w.violated("guard", "%d clusters have lost add-on %s of %s within an hour, nobody has approved that, and %d may", len(clusters), work.addon, work.set, limit)
	}
}

// approve is what a user does who has read what a set's status says is held.
func (w *World) approve(s *set) {
	held, _ := nested(w.server.Get(s.key()), "status", "heldRemovals", "hash").(string)
	if held == "" {
		return
	}
	for _, c := range w.clusters {
		for _, work := range c.workloads {
			if work.set == s.namespace+"/"+s.name && work.unwanted {
				work.approved = true
			}
		}
	}
	w.patch(s.key(), `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ApproveRemovalAnnotation, held)
}

// checkWrite looks at each write of the hub.
func (w *World) checkWrite(write apiserver.Write) {
	if write.New == nil || !write.Changed && write.Verb != "delete" {
		return
	}
	switch {
	case write.Key.Kind == "Secret":
		w.checkSecret(write)
	case isFlux(write.Key):
		w.checkPaused(write)
	case write.Key.Group == "chandler.dev":
		w.checkBounds(write)
	}
}

// checkSecret: a kubeconfig lies beside its cluster and in platform namespaces, and nowhere else.
func (w *World) checkSecret(write apiserver.Write) {
	data, _ := nested(write.New, "data").(map[string]any)
	for _, v := range data {
		text, _ := v.(string)
		raw, _ := base64.StdEncoding.DecodeString(text)
		address := serverLine.FindSubmatch(raw)
		if address == nil {
			continue
		}
		for _, c := range w.clusters {
			if ns := write.Key.Namespace; c.address == string(address[1]) && ns != c.namespace && ns != "flux-system" {
				w.violated("secrets", "the kubeconfig of %s lies in namespace %s", c.name, ns)
			}
		}
	}
}

// checkPaused: from the moment at which the rooms can know it, nothing is written to a paused cluster's objects but what suspends them.
func (w *World) checkPaused(write apiserver.Write) {
	text, _ := nested(write.New, "metadata", "annotations", hubv1.RegistrationAnnotation).(string)
	key, ok := index.Registration(text)
	if !ok || w.hub == nil {
		return
	}
	reg := &hubv1.ClusterRegistration{}
	if w.hub.cache.Get(context.Background(), key, reg) != nil || status.Reason(reg, hubv1.SuspendedCondition) != hubv1.PausedReason || reg.Spec.Pause == nil {
		return
	}
	if unregisters := status.Reason(reg, hubv1.UnregisteringCondition); reg.DeletionTimestamp != nil && unregisters != "" && !hubv1.Waits(unregisters) {
		return // whoever unregisters a paused cluster wants its add-ons gone
	}
	if hubv1.LetsGo(status.Reason(reg, hubv1.UnregisteringCondition)) || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan {
		return
	}
	if _, name, ok := strings.Cut(setNameOf(write.New), "/"); ok && w.sets[name] != nil && w.sets[name].orphan {
		return
	}
	if made := nested(write.New, "metadata", "annotations", hubv1.ClusterUIDAnnotation); made != nil && made != string(reg.Status.ClusterUID) {
		return // what Flux remembers of a cluster that was replaced must not meet the new one
	}
	suspends := write.Old != nil && nested(write.Old, "spec", "suspend") != true && nested(write.New, "spec", "suspend") == true
	if !suspends {
		w.violated("pause", "cluster %s is paused, and the hub wrote: %s %s%s", key, write.Verb, write.Key, difference(write.Old, write.New))
	}
}

func setNameOf(o apiserver.Object) string {
	ns, _ := nested(o, "metadata", "namespace").(string)
	return ns + "/" + apiserver.Labels(o)[hubv1.AddonSetLabel]
}

// checkBounds: a status is bounded.
func (w *World) checkBounds(write apiserver.Write) {
	conditions, _ := nested(write.New, "status", "conditions").([]any)
	for _, c := range conditions {
		if m, _ := nested(c, "message").(string); len(m) > 32768 {
			w.violated("bounded", "a message in the status of %s has %d characters", write.Key, len(m))
		}
	}
}

// checkAlways is called after each step.
func (w *World) checkAlways() {}

// registered returns a cluster's registration, or nil.
func (w *World) registered(c *cluster) *hubv1.ClusterRegistration {
	o := w.server.Get(c.registration())
	if o == nil {
		return nil
	}
	reg := &hubv1.ClusterRegistration{}
	must(apiserver.Into(o, reg))
	return reg
}

func (w *World) deliveries() []*hubv1.AddonDelivery {
	var out []*hubv1.AddonDelivery
	for _, o := range w.server.List(kinds["AddonDelivery"].GroupKind(), "") {
		d := &hubv1.AddonDelivery{}
		must(apiserver.Into(o, d))
		out = append(out, d)
	}
	return out
}

// end heals all faults, waits until the hub is at rest, and looks at everything.
func (w *World) end() {
	if len(w.violations) > 0 {
		return
	}
	w.say("%s the end: all faults are healed", w.clock.Now().Sub(start))
	w.heal()
	for range 8 {
		w.wait(30 * time.Minute)
		held := false
		for _, name := range sortedKeys(w.sets) {
			s := w.sets[name]
			if nested(w.server.Get(s.key()), "status", "heldRemovals") != nil {
				held = true
				w.noteWishes()
				w.approve(s)
			}
		}
		if len(w.violations) > 0 {
			return
		}
		if !held {
			break
		}
	}
	w.wait(90 * time.Minute)
	if len(w.violations) > 0 {
		return
	}
	w.quiet = true
	w.wait(25 * time.Minute)
	w.quiet = false
	w.checkRest()
}

func (w *World) heal() {
	w.fault = fault{}
	clear(w.broken)
	for _, c := range w.clusters {
		c.down, c.hung = false, false
		if nested(w.server.Get(c.registration()), "spec", "pause") != nil {
			w.patch(c.registration(), `{"spec":{"pause":null}}`)
		}
	}
	for _, kind := range []string{"Secret", "TenantControlPlane"} {
		for _, o := range w.server.List(kinds[kind].GroupKind(), "") {
			w.dropFinalizer(keyOf(kind, nested(o, "metadata", "namespace").(string), nested(o, "metadata", "name").(string)), "foregroundDeletion")
		}
	}
	for k := range w.flux.due {
		o := w.server.Get(k)
		if o != nil && nested(o, "spec", "suspend") == true && nested(o, "metadata", "annotations", hubv1.SuspendedAnnotation) == nil {
			w.patch(k, `{"spec":{"suspend":null}}`)
		}
	}
	if w.hub == nil {
		w.startHub()
	}
}

// checkRest looks at a world in which nothing is to be done any more.
func (w *World) checkRest() {
	w.checkDeletions()
	w.checkDelivered()
	w.checkLeft()
	w.checkMirrors()
	w.checkStatuses()
}

func (w *World) checkDeletions() {
	for _, gk := range w.server.Kinds() {
		for _, o := range w.server.List(gk, "") {
			if _, mirror := apiserver.Labels(o)[hubv1.MirrorLabel]; mirror && w.mirrorServes(o) {
				continue // one that somebody has deleted serves until Flux does not need it any more
			}
			if keptOpen(o) || keptOpen(w.registrationOf(o)) {
				continue
			}
			if nested(o, "metadata", "deletionTimestamp") != nil {
				w.violated("deletion", "%s %v/%v does not go: finalizers %v", gk.Kind, nested(o, "metadata", "namespace"), nested(o, "metadata", "name"), nested(o, "metadata", "finalizers"))
			}
		}
	}
}

// keptOpen returns whether the hub keeps a deletion open on purpose: a registration, or the deliveries of one, that would be made again without
// what somebody has written to it.
func keptOpen(o apiserver.Object) bool {
	conditions, _ := nested(o, "status", "conditions").([]any)
	return nested(o, "kind") == "ClusterRegistration" && slices.ContainsFunc(conditions, func(c any) bool {
		return nested(c, "type") == hubv1.ReadyCondition && nested(c, "reason") == hubv1.SpecWouldBeLostReason
	})
}

// registrationOf returns the registration that a delivery is for; nil of anything else.
func (w *World) registrationOf(o apiserver.Object) apiserver.Object {
	namespace, _ := nested(o, "spec", "registrationRef", "namespace").(string)
	name, _ := nested(o, "spec", "registrationRef", "name").(string)
	return w.server.Get(keyOf("ClusterRegistration", namespace, name))
}

// mirrorServes returns whether a Flux object uses a mirror.
func (w *World) mirrorServes(mirror apiserver.Object) bool {
	for k := range w.flux.due {
		if k.Namespace == nested(mirror, "metadata", "namespace") && secretOf(w.server.Get(k)) == nested(mirror, "metadata", "name") {
			return true
		}
	}
	return false
}

// serves returns whether a cluster's access is in place.
func (w *World) serves(c *cluster) bool {
	return !c.gone && w.server.Get(c.secret()) != nil && w.labelsOf(c) != nil
}

// checkDelivered: what is selected is there, Ready, and of one owner.
func (w *World) checkDelivered() {
	for _, name := range sortedKeys(w.sets) {
		s := w.sets[name]
		if s.deleted {
			continue
		}
		for _, c := range w.clusters {
			if !w.serves(c) || !w.selects(s, c) {
				continue
			}
			for _, a := range s.addons {
				if a.optional() && w.excluded(c, a.name) {
					continue
				}
				if !w.runs(c, a.name) {
					w.violated("convergence", "add-on %s of %s is not on %s", a.name, name, c.name)
				}
			}
		}
	}
	for k := range w.flux.due {
		o := w.server.Get(k)
		conditions, _ := nested(o, "status", "conditions").([]any)
		ready := len(conditions) > 0 && nested(conditions[0], "status") == "True"
		key, _ := index.Registration(fmt.Sprint(nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation)))
		if c := w.cluster(key.Name); c != nil && w.serves(c) && !ready {
			w.violated("convergence", "%s is not Ready: %v", k, conditions)
		}
	}
}

// runs returns whether an add-on's workload is on a cluster, with an owner that is there.
func (w *World) runs(c *cluster, addon string) bool {
	for _, work := range c.workloads {
		if work.addon == addon && w.lives(work.ownerUID) {
			return true
		}
	}
	return false
}

// checkLeft: what runs on a cluster without an owner has been told.
func (w *World) checkLeft() {
	for _, c := range w.clusters {
		if c.gone {
			continue
		}
		for _, name := range sortedKeys(c.workloads) {
			work := c.workloads[name]
			if !w.lives(work.ownerUID) && !w.told(c, work) {
				w.violated("orphans", "%s stays on %s without an owner (add-on %s of %s), and nothing says so", name, c.name, work.addon, work.set)
			}
			if w.lives(work.ownerUID) && !w.wanted(c, work) && w.serves(c) && !(w.excluded(c, work.addon) && w.frozen(c, work.set)) {
				w.violated("convergence", "%s is still delivered to %s, and nobody wants it", name, c.name)
			}
		}
	}
}

// frozen returns whether a set's delivery to a cluster is of an older epoch: what is there stays, whatever is excluded, until the set changes.
func (w *World) frozen(c *cluster, set string) bool {
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		return d.SetKey().String() == set && d.Spec.RegistrationRef.Name == c.name && !strings.HasSuffix(d.Spec.RevisionName, fmt.Sprintf("-e%d", render.Epoch))
	})
}

// told returns whether an event or a status names an add-on as left on a cluster.
func (w *World) told(c *cluster, work *workload) bool {
	for _, e := range w.events {
		if e.reason == hubv1.AddonOrphanedEvent && strings.Contains(e.words, fmt.Sprintf("%q", work.addon)) && strings.Contains(e.words, c.namespace+"/"+c.name) {
			return true
		}
	}
	if reg := w.registered(c); reg != nil {
		return slices.ContainsFunc(reg.Status.Orphans, func(o hubv1.Orphan) bool { return o.Addon == work.addon })
	}
	return false
}

// checkMirrors: a mirror is as new as its source.
func (w *World) checkMirrors() {
	for _, o := range w.server.List(kinds["Secret"].GroupKind(), "") {
		if apiserver.Labels(o)[hubv1.MirrorLabel] == "" {
			continue
		}
		key, _ := index.Registration(fmt.Sprint(nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation)))
		c := w.cluster(key.Name)
		if c == nil || !w.serves(c) {
			continue
		}
		raw, _ := base64.StdEncoding.DecodeString(nested(o, "data", "value").(string))
		if !strings.Contains(string(raw), c.bearer()) {
			w.violated("mirror", "the mirror %v/%v does not hold the kubeconfig that %s accepts", nested(o, "metadata", "namespace"), nested(o, "metadata", "name"), c.name)
		}
	}
}

// checkStatuses: what tables say is so.
func (w *World) checkStatuses() {
	for _, d := range w.deliveries() {
		if d.Namespace == "stranger" {
			if status.IsTrue(d, hubv1.ReadyCondition) {
				w.violated("status", "forged delivery %s says that it is Ready", d.Name)
			}
			continue
		}
		c := w.cluster(d.Spec.RegistrationRef.Name)
		s := w.sets[d.Spec.AddonSetRef.Name]
		if c == nil || s == nil || !w.serves(c) {
			continue
		}
		if !status.IsTrue(d, hubv1.ReadyCondition) && !lostAll(d) {
			w.violated("status", "delivery %s is not Ready at rest: %s", d.Name, conditionOf(d))
		}
		for _, a := range d.Status.Addons {
			if a.State == hubv1.AddonReady && !w.runs(c, a.Name) {
				w.violated("status", "delivery %s says that add-on %s is Ready, and it is not on the cluster", d.Name, a.Name)
			}
		}
		if status.IsTrue(d, hubv1.ReadyCondition) && len(d.Status.Addons) == 0 {
			w.violated("status", "delivery %s is Ready without an add-on", d.Name)
		}
	}
	for _, c := range w.clusters {
		reg := w.registered(c)
		if reg == nil {
			if w.serves(c) {
				w.violated("convergence", "%s is not registered", c.name)
			}
			continue
		}
		lost := w.someLostAll(func(d *hubv1.AddonDelivery) bool { return d.Spec.RegistrationRef.Name == c.name })
		if w.serves(c) && !status.IsTrue(reg, hubv1.ReadyCondition) && !keptOpen(w.server.Get(c.registration())) && !lost {
			w.violated("status", "registration %s is not Ready at rest: %s", c.name, conditionOf(reg))
		}
	}
	for _, name := range sortedKeys(w.sets) {
		w.checkSet(w.sets[name])
	}
}

// lostAll returns whether other sets deliver every add-on of a delivery, which then says so, and so may its registration and its set.
func lostAll(d *hubv1.AddonDelivery) bool {
	return len(d.Status.Addons) > 0 && !slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.State != hubv1.AddonLostTo })
}

// someLostAll returns whether that is so of one of these deliveries.
func (w *World) someLostAll(of func(*hubv1.AddonDelivery) bool) bool {
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool { return of(d) && lostAll(d) })
}

func (w *World) checkSet(s *set) {
	o := w.server.Get(s.key())
	if o == nil {
		if !s.deleted {
			w.violated("convergence", "AddonSet %s is gone, and nobody has deleted it", s.name)
		}
		return
	}
	there := &hubv1.AddonSet{}
	must(apiserver.Into(o, there))
	matched := 0
	for _, c := range w.clusters {
		if w.selects(s, c) && w.server.Get(c.registration()) != nil {
			matched++
		}
	}
	if there.Status.Clusters == nil || int(there.Status.Clusters.Matched) != matched {
		w.violated("status", "AddonSet %s says that it matches %+v clusters, and it matches %d", s.name, there.Status.Clusters, matched)
	}
	lost := w.someLostAll(func(d *hubv1.AddonDelivery) bool {
		return d.Namespace == s.namespace && d.Spec.AddonSetRef.Name == s.name
	})
	if !status.IsTrue(there, hubv1.ReadyCondition) && !lost {
		w.violated("status", "AddonSet %s is not Ready at rest: %s", s.name, conditionOf(there))
	}
}

func conditionOf(o status.Object) string {
	c := status.Find(o, hubv1.ReadyCondition)
	if c == nil {
		return "there is no condition"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}
