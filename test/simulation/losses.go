// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// sourceMoved says that a Kustomization prunes what its source has no more, or has elsewhere. No guard holds that: it is content.
const sourceMoved = "it is in the source no more, or goes elsewhere"

// reinstalls begins why Flux takes a release away of which it was asked for another one.
const reinstalls = "Flux reinstalls it: "

// lost is called for every workload that Flux removes from a live cluster.
func (w *World) lost(c *cluster, work *workload, why string) {
	if c.gone {
		return
	}
	if !work.unwanted {
		w.violated("loss", "%s on %s was taken away (%s), and everybody has wanted it all the time", work.name, c.name, why)
		return
	}
	_, name, _ := strings.Cut(work.set, "/")
	if why != sourceMoved && w.stillHeld(work, strings.HasPrefix(why, reinstalls)) {
		w.violated("held", "%s on %s was taken away (%s), and the guard of %s holds just that", work.name, c.name, why, name)
		return
	}
	if s := w.sets[name]; work.approved || !work.missed || s != nil && s.off { // whose guard is off is known for good only now: see take
		return
	}
	at, by := w.grantedAt(c, work)
	uid, _ := nested(w.server.Get(by), "metadata", "uid").(string)
	l := loss{at: at, cluster: cmp.Or(work.through, c.name), set: by.Namespace + "/" + by.Name, setUID: uid}
	w.losses = append(w.losses, l)
	if n, limit := w.lostBeside(l), max(1, min(3, len(w.clusters)/3), len(w.clusters)/10); n > limit {
		w.violated("guard", "%d clusters were to lose something of %s within an hour, nobody has approved that, and %d may", n, l.set, limit)
	}
}

// grantedAt returns when a guard has granted the removal of a workload, and of which set, as far as that shows: it counts then, and
// Flux may do it later. If the add-on was moved meanwhile, the guard of the set that had it before has granted it.
func (w *World) grantedAt(c *cluster, work *workload) (at time.Time, by apiserver.Key) {
	through, ok := index.Registration(work.through)
	if !ok {
		through = types.NamespacedName{Namespace: c.namespace, Name: c.name}
	}
	namespace, name, _ := strings.Cut(work.set, "/")
	own := keyOf("AddonSet", namespace, name)
	if at, noted := w.granted[keyOf("AddonDelivery", namespace, identity.Delivery(name, through))]; noted {
		return at, own
	}
	for _, other := range sortedKeys(w.sets) {
		s := w.sets[other]
		if granted, noted := w.granted[keyOf("AddonDelivery", s.namespace, identity.Delivery(s.name, through))]; noted && granted.After(at) {
			at, by = granted, s.key()
		}
	}
	if at.IsZero() {
		return w.clock.Now(), own
	}
	return at, by
}

// noteGranted is called after every write, and notes when a delivery was withdrawn, or may remove more.
func (w *World) noteGranted(write apiserver.Write) {
	if write.Key.Kind != "AddonDelivery" || write.New == nil {
		return
	}
	before, _ := nested(write.Old, "spec", "removals").([]any)
	now, _ := nested(write.New, "spec", "removals").([]any)
	more := slices.ContainsFunc(now, func(r any) bool { return !slices.Contains(before, r) })
	if more || nested(write.Old, "spec", "withdrawal") != nested(write.New, "spec", "withdrawal") {
		w.granted[write.Key] = w.clock.Now()
	}
}

// lostBeside returns how many clusters have lost something of a set in the hour of a loss that has most of them.
func (w *World) lostBeside(of loss) (most int) {
	for _, last := range w.losses {
		if last.setUID != of.setUID || last.set != of.set || last.at.Before(of.at) || last.at.Sub(of.at) >= time.Hour {
			continue
		}
		clusters := map[string]bool{}
		for _, l := range w.losses {
			if l.setUID == of.setUID && l.set == of.set && !l.at.After(last.at) && last.at.Sub(l.at) < time.Hour {
				clusters[l.cluster] = true
			}
		}
		most = max(most, len(clusters))
	}
	return most
}

// nowCalled returns the name of a workload's add-on, or the one that its set gives it now. The old name may be another add-on's.
func (w *World) nowCalled(work *workload) string {
	namespace, name, _ := strings.Cut(work.set, "/")
	s := w.sets[name]
	if s == nil || s.namespace != namespace {
		return work.addon
	}
	if a := s.addon(work.addon); a != nil && work.id > a.after {
		return work.addon
	}
	for _, a := range s.addons {
		if (claim{s, a}).goesOnWith(work) && work.id > a.after {
			return a.name
		}
	}
	return work.addon
}

// forget is called at rest: caches are complete, nothing is queued, and a minute has passed since the last edit. The
// hub has seen what is wanted then. If it is removed later, nobody has asked for that, whatever was wanted before.
// What was leaving before it was wanted again may leave: Flux may already be at it.
func (w *World) forget() {
	if w.hub == nil || w.former != nil {
		return
	}
	maps.DeleteFunc(w.unselected, func(_ [2]string, u unselected) bool { return u.again }) // a process has seen it
	if w.clock.Now().Sub(w.edited) < time.Minute {
		return
	}
	if w.changes == w.forgotten {
		return // nothing has been written or done since
	}
	w.forgotten = w.changes
	w.atOnce(w.forgetWishes)
	w.restRollouts()
	w.restHeld()
	w.restExcluded()
}

func (w *World) forgetWishes() {
	for _, c := range w.clusters {
		for _, work := range c.workloads {
			if !work.unwanted && !work.approved || w.leaves(work) || !w.wantedThere(c, work) || w.outranked(c, work) {
				continue
			}
			if !w.becomesAnother(work) && !w.wasAnother(work) && !w.editedAway(work) {
				work.unwanted, work.approved = false, false
			}
		}
	}
}

// outranked returns whether another set has an add-on of a workload's name on its cluster, and leaves the cluster when a delay is over.
// Until then it has the name.
func (w *World) outranked(c *cluster, work *workload) bool {
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		r := w.cluster(d.Spec.RegistrationRef.Name)
		return d.Spec.WithdrawAfter != nil && r != nil && w.there(r) == c && d.SetKey().String() != work.set &&
			slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.Name == work.addon })
	})
}

// leaves returns whether a workload's Flux object is on its way out, or the delivery that it belongs to.
func (w *World) leaves(work *workload) bool {
	o := w.object(work.ownerUID)
	if o == nil {
		return true // nobody owns it
	}
	namespace, _ := nested(o, "metadata", "namespace").(string)
	name, _ := nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation).(string)
	return nested(o, "metadata", "deletionTimestamp") != nil || nested(w.server.Get(keyOf("AddonDelivery", namespace, name)),
		"spec", "withdrawal") != nil
}

// noteDeselected is called after every write. A mark that a hub left when it was killed may be taken back.
func (w *World) noteDeselected(write apiserver.Write) {
	if uid, _ := nested(write.New, "metadata", "uid").(string); w.deselected[uid] && nested(write.New, "spec", "withdrawal") == nil {
		delete(w.deselected, uid)
	}
	if write.Key.Kind != "AddonDelivery" || nested(write.Old, "spec", "withdrawal") != nil || nested(write.New, "spec", "withdrawal") == nil {
		return
	}
	d := typed(w, write.New, &hubv1.AddonDelivery{})
	s, c := w.sets[d.SetKey().Name], w.cluster(d.Spec.RegistrationRef.Name)
	if s != nil && c != nil && s.namespace == d.Namespace && !w.selects(s, c) {
		w.deselected[string(d.UID)] = true
		w.checkDelay(s, c, d)
	}
}

// unselected is since when a set selects a cluster no more. again is true if it selects it by now, and no process may have seen that.
type unselected struct {
	since time.Time
	again bool
}

// noteUnselected notes since when sets select clusters no more.
func (w *World) noteUnselected() {
	for _, name := range sortedKeys(w.sets) {
		for _, c := range w.clusters {
			pair := [2]string{name, c.name}
			was, noted := w.unselected[pair]
			switch again := w.selects(w.sets[name], c); {
			case !noted && !again:
				w.unselected[pair] = unselected{since: w.clock.Now()}
			case noted:
				w.unselected[pair] = unselected{was.since, again}
			}
		}
	}
}

// checkDelay is called when a delivery is withdrawn whose set does not select the cluster. If labels or a selector alone have
// decided that, they could have come back for --deselection-delay.
func (w *World) checkDelay(s *set, c *cluster, d *hubv1.AddonDelivery) {
	reg := w.registered(c)
	asked := s.deleted || c.gone || w.there(c).gone || !c.drained.IsZero() || reg == nil || reg.DeletionTimestamp != nil ||
		drain.Requested(reg) || w.labelsOf(c) == nil
	if t := w.teamOf(s.namespace); asked || t != nil && t.deleted || t == nil && s.namespace != "flux-system" && s.namespace != c.namespace {
		return
	}
	was, noted := w.unselected[[2]string{s.name, c.name}]
	if waited := w.clock.Now().Sub(was.since); noted && waited < w.config.DeselectionDelay {
		w.violated("delay", "delivery %s is withdrawn %s after AddonSet %s has ceased to select %s", d.Name, waited, s.name, c.name)
	}
}

// wasDeselected returns whether the delivery of a workload's Flux object was withdrawn since its set did not select the cluster then. That
// is not taken back.
func (w *World) wasDeselected(work *workload) bool {
	o := w.object(work.ownerUID)
	namespace, _ := nested(o, "metadata", "namespace").(string)
	name, _ := nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation).(string)
	return w.deselected[nested(w.server.Get(keyOf("AddonDelivery", namespace, name)), "metadata", "uid")]
}

// becomesAnother returns whether the Flux object of a workload asks for another one, and Flux has not done that yet:
// leaving the object as it is does not take such an edit back.
func (w *World) becomesAnother(work *workload) bool {
	o := w.object(work.ownerUID)
	if o == nil {
		return false
	}
	asked := nested(w.server.Get(chartKey(o)), "spec", "chart")
	if kind := chartKey(o).Kind; kind == "OCIRepository" {
		asked = manifestchart.Name
	}
	return !brings(o, work.name) || asked != nil && asked != work.chart
}

// chartKey returns the key of the HelmChart, or OCIRepository, that a HelmRelease refers to.
func chartKey(o apiserver.Object) apiserver.Key {
	kind, _ := nested(o, "spec", "chartRef", "kind").(string)
	name, _ := nested(o, "spec", "chartRef", "name").(string)
	namespace, _ := nested(o, "metadata", "namespace").(string)
	return keyOf(kind, namespace, name)
}

// editedAway returns whether the set that has brought a workload asks for another one under that name, or under the one that it has given
// it since. The edit reaches a paused cluster later, also if somebody else wants the workload by then, who waits for that set to leave.
func (w *World) editedAway(work *workload) bool {
	namespace, name, _ := strings.Cut(work.set, "/")
	s := w.sets[name]
	if s == nil || s.namespace != namespace {
		return false
	}
	if a := s.addon(work.addon); a != nil {
		return !(claim{s, *a}).fits(work)
	}
	return slices.ContainsFunc(s.addons, func(a addon) bool { return (claim{s, a}).goesOnWith(work) && !(claim{s, a}).fits(work) })
}

// wasAnother returns whether an object that is not active, for example of a registration that has not answered since
// it was made again, has a Helm release of another chart than it asks for. The edit has not reached that object yet,
// and then Flux reinstalls.
func (w *World) wasAnother(work *workload) bool {
	for k := range w.flux.due {
		o := w.server.Get(k)
		history, _ := nested(o, "status", "history").([]any)
		r := w.registrationOf(o)
		if k.Kind == "HelmRelease" && nested(o, "metadata", "uid") != work.ownerUID && len(history) > 0 && brings(o, work.name) &&
			nested(history[0], "chartName") != work.chart && r != nil && w.there(r).workloads[work.name] == work {
			return true
		}
	}
	return false
}

// object returns the Flux object of a UID, nil if it is gone.
func (w *World) object(uid string) apiserver.Object {
	if k, ok := w.flux.uids[uid]; ok {
		return w.server.Get(k)
	}
	return nil
}

// takesOver returns whether a set has an add-on that goes on with what another set brought.
func (s *set) takesOver(work *workload) bool {
	namespace, from, _ := strings.Cut(work.set, "/")
	return s.namespace == namespace && slices.ContainsFunc(s.addons, func(a addon) bool { return a.movedFrom == from+"/"+work.addon })
}

// asks returns whether a set's delivery to a cluster asks for the removal of an add-on, or for its reinstallation.
// Another set may have brought it.
func (w *World) asks(s *set, c *cluster, addon string) bool {
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		return d.SetKey().String() == s.namespace+"/"+s.name && d.Spec.RegistrationRef.Key().String() == c.namespace+"/"+c.name &&
			slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.Name == addon && a.Removal != "" })
	})
}

// approve does what a user does who has read in a set's status what is held.
func (w *World) approve(s *set) {
	held, _ := nested(w.server.Get(s.key()), "status", "heldRemovals", "hash").(string)
	if held == "" {
		return
	}
	a := approval{hash: held}
	sample, _ := nested(w.server.Get(s.key()), "status", "heldRemovals", "sample").([]any)
	count, _ := nested(w.server.Get(s.key()), "status", "heldRemovals", "count").(int64)
	a.more = int(count) > len(sample)
	for _, of := range sample { // fleet/w1 (hello, web)
		registration, _, _ := strings.Cut(fmt.Sprint(of), " ")
		a.registrations = append(a.registrations, registration)
	}
	w.approvals[s.key()] = a
	w.noteCovered(s.key(), a)
	for _, c := range w.clusters {
		for _, work := range c.workloads {
			if work.unwanted && (work.set == s.namespace+"/"+s.name || s.takesOver(work) ||
				w.some(c, func(r *cluster) bool { return w.asks(s, r, work.addon) })) {
				work.approved = true
			}
		}
	}
	w.patch(s.key(), `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ApproveRemovalAnnotation, held)
}

// noteCovered marks what an approval is about: all that a set has on the clusters that it names. Another set may want some of that at the
// moment, and take it over, or not want it any more when it goes.
func (w *World) noteCovered(of apiserver.Key, a approval) {
	for _, c := range w.clusters {
		for _, work := range c.workloads {
			registration := registrationIn(w.object(work.ownerUID))
			if work.set == of.Namespace+"/"+of.Name && (a.more || slices.Contains(a.registrations, registration)) {
				work.approved = true
			}
		}
	}
}

// noteApproved is called after every write. An approval is of exactly what the guard held, and lasts for as long as the guard holds
// something. Some of it may have been wanted again meanwhile, so that the list became another one. When it is the same again, it goes.
func (w *World) noteApproved(write apiserver.Write) {
	a, ok := w.approvals[write.Key]
	if !ok || nested(write.New, "status", "heldRemovals") != nil {
		return
	}
	if nested(write.New, "metadata", "annotations", hubv1.ApproveRemovalAnnotation) == a.hash {
		w.noteCovered(write.Key, a)
	}
	delete(w.approvals, write.Key)
}
