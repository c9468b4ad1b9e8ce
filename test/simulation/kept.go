// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// What holds by itself: an order, what somebody has suspended, what a removal guard holds, a breaker that is open, and an origin that
// is away.

// fluxObject returns the Flux object of an add-on on a cluster.
func (w *World) fluxObject(c *cluster, addon string) (apiserver.Key, bool) {
	for _, kind := range []string{"HelmRelease", "Kustomization"} {
		for _, o := range w.server.List(kinds[kind].GroupKind(), "") {
			if registrationIn(o) == c.namespace+"/"+c.name && apiserver.Label(o, hubv1.AddonLabel) == addon {
				return keyOf(kind, nested(o, "metadata", "namespace").(string), nested(o, "metadata", "name").(string)), true
			}
		}
	}
	return apiserver.Key{}, false
}

// noteReady is called after every write.
func (w *World) noteReady(write apiserver.Write) {
	if !isFlux(write.Key) || write.New == nil || nested(write.New, "status", "observedGeneration") != generationOf(write.New) {
		return
	}
	conditions, _ := nested(write.New, "status", "conditions").([]any)
	if slices.ContainsFunc(conditions, func(c any) bool { return nested(c, "type") == "Ready" && nested(c, "status") == "True" }) {
		w.wasReady[nested(write.New, "metadata", "uid")] = true
	}
}

// fluxWaits returns whether Flux itself lets an object wait for another one of its kind, or for what takes the place of one of another kind
// under that name.
func fluxWaits(o apiserver.Object, other apiserver.Key) bool {
	needs, _ := nested(o, "spec", "dependsOn").([]any)
	return slices.ContainsFunc(needs, func(d any) bool { return nested(d, "name") == other.Name })
}

// checkOrder: an add-on is made after what it depends on has been Ready, and goes before that.
func (w *World) checkOrder(write apiserver.Write) {
	for _, kind := range []string{"HelmRelease", "Kustomization"} {
		for _, o := range w.server.List(kinds[kind].GroupKind(), write.Key.Namespace) {
			other := keyOf(kind, write.Key.Namespace, nested(o, "metadata", "name").(string))
			switch {
			case registrationIn(o) != registrationIn(write.New) || setNameOf(o) != setNameOf(write.New) || other == write.Key:
			case write.Old == nil && !fluxWaits(write.New, other) && w.dependsOn(write.New, o) && !w.wasReady[nested(o, "metadata", "uid")] &&
				!w.isThere(write.New):
				w.violated("order", "%s is made, and %s, on which it depends, has not been Ready", write.Key, other)
			case w.uninstalls(write) && w.dependsOn(o, write.New) && w.withdrawn(o) && !w.goesOn(o) && held(o, fluxFinalizer) &&
				!w.unawareOf(o, write.New):
				w.violated("order", "%s is uninstalled, and %s, which depends on it and goes as well, is still there", write.Key, other)
			}
		}
	}
}

// dependsOn returns whether the add-on of a Flux object depends on that of another one, as their set's author has it now. What the set
// has dropped or renamed, or has in another form, goes by itself, also after the set has come to have that again: what leaves a cluster
// gets no newer revision.
func (w *World) dependsOn(o, on apiserver.Object) bool {
	for _, s := range w.sets {
		if setNameOf(o) != s.namespace+"/"+s.name {
			continue
		}
		a, needed := s.addon(apiserver.Label(o, hubv1.AddonLabel)), s.addon(apiserver.Label(on, hubv1.AddonLabel))
		hasForm := func(a *addon, o apiserver.Object) bool {
			return a.form == "kustomization" == (nested(o, "kind") == "Kustomization")
		}
		return a != nil && needed != nil && a.dependsOn == needed.name && needed.after == 0 && hasForm(a, o) && hasForm(needed, on)
	}
	return false
}

// unawareOf returns whether a Flux object that depends on another one does not say so. When it was made, another set had the other one. It
// is not written again, because its delivery is of an older renderer.
func (w *World) unawareOf(o, on apiserver.Object) bool {
	made := func(o apiserver.Object) string { return fmt.Sprint(nested(o, "metadata", "creationTimestamp")) }
	c := w.registrationOf(o)
	return made(o) < made(on) && c != nil && w.frozen(c, setNameOf(o))
}

// isThere returns whether what a Flux object brings is on its cluster, since an object that is gone has left it there.
func (w *World) isThere(o apiserver.Object) bool {
	r := w.registrationOf(o)
	return r != nil && slices.ContainsFunc(slices.Collect(maps.Keys(w.there(r).workloads)), func(name string) bool { return brings(o, name) })
}

// goesOn returns whether another set has the add-on of a Flux object, and so may take the object's place.
func (w *World) goesOn(o apiserver.Object) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(w.sets)), func(s *set) bool {
		return setNameOf(o) != s.namespace+"/"+s.name && s.addon(apiserver.Label(o, hubv1.AddonLabel)) != nil
	})
}

// uninstalls returns whether a write has Flux begin to uninstall what a withdrawn delivery has brought.
func (w *World) uninstalls(write apiserver.Write) bool {
	return write.Old != nil && nested(write.Old, "metadata", "deletionTimestamp") == nil &&
		nested(write.New, "metadata", "deletionTimestamp") != nil && nested(write.New, "spec", "suspend") != true && w.withdrawn(write.New)
}

// withdrawn returns whether the delivery of a Flux object is being withdrawn.
func (w *World) withdrawn(o apiserver.Object) bool {
	namespace, _ := nested(o, "metadata", "namespace").(string)
	name, _ := nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation).(string)
	return nested(w.server.Get(keyOf("AddonDelivery", namespace, name)), "spec", "withdrawal") != nil
}

// checkOrigin: nothing is rendered from an origin that is not there.
func (w *World) checkOrigin(write apiserver.Write) {
	reads := func(o apiserver.Object) bool {
		values, _ := nested(o, "spec", "values", "read").(string)
		variable, _ := nested(o, "spec", "postBuild", "substitute", "read").(string)
		return strings.HasPrefix(values+variable, nameless+" ")
	}
	c := w.registrationOf(write.New)
	if c != nil && c.provider != "Hand" && w.clock.Since(c.adopted) >= time.Minute && reads(write.New) && !reads(write.Old) {
		w.violated("origin", "%s is written as if %s had no origin", write.Key, c.name)
	}
}

// restHeld notes at rest what the guards hold, by set, and which release each object asks for meanwhile.
func (w *World) restHeld() {
	clear(w.heldAtRest)
	clear(w.askedAtRest)
	for k := range w.flux.due {
		o := w.server.Get(k)
		uid, _ := nested(o, "metadata", "uid").(string)
		w.askedAtRest[uid] = asksFor(o)
	}
	for _, d := range w.deliveries() {
		of := keyOf("AddonSet", d.Namespace, d.Spec.AddonSetRef.Name)
		if nested(w.server.Get(of), "status", "heldRemovals") == nil {
			continue
		}
		for _, a := range d.Status.Addons {
			if a.State == hubv1.AddonHeld && a.Removal != "" && !slices.Contains(d.Spec.Removals, a.Removal) {
				w.heldAtRest[of] = append(w.heldAtRest[of], d.Name+" "+a.Removal)
			}
		}
	}
}

// checkHeld: time approves nothing that a removal guard holds. A guard that holds nothing any more has been approved, or begins anew.
func (w *World) checkHeld(write apiserver.Write) {
	if write.Key.Kind == "AddonSet" && nested(write.New, "status", "heldRemovals") == nil {
		delete(w.heldAtRest, write.Key)
	}
	if write.Key.Kind != "AddonDelivery" || write.Old == nil {
		return
	}
	before, d := typed(w, write.Old, &hubv1.AddonDelivery{}), typed(w, write.New, &hubv1.AddonDelivery{})
	s := w.sets[d.Spec.AddonSetRef.Name]
	if s == nil || s.off || s.namespace != d.Namespace {
		return
	}
	if _, approved := w.approvals[s.key()]; approved {
		return
	}
	for _, removal := range d.Spec.Removals {
		if !slices.Contains(before.Spec.Removals, removal) && slices.Contains(w.heldAtRest[s.key()], d.Name+" "+removal) {
			w.violated("held", "the guard of %s holds removal %s on %s, nobody has approved that, and it is granted", s.name, removal,
				d.Spec.RegistrationRef.Name)
		}
	}
}

// asksFor returns what of a HelmRelease has Flux reinstall it.
func asksFor(o apiserver.Object) string {
	return fmt.Sprint(nested(o, "spec", "releaseName"), nested(o, "spec", "targetNamespace"), nested(o, "spec", "storageNamespace"),
		nested(o, "spec", "chartRef"))
}

// stillHeld returns whether a removal guard held the removal of a workload at the last rest, and its delivery says that it still does. What
// a user deletes, or a set withdraws as a whole, is not meant.
func (w *World) stillHeld(work *workload, reinstalled bool) bool {
	o := w.object(work.ownerUID)
	if o == nil || w.withdrawn(o) || w.deleted[work.ownerUID] {
		return false
	}
	if reinstalled && w.askedAtRest[work.ownerUID] == asksFor(o) {
		return false // that was granted before, and its cluster did not answer: another reinstall is held
	}
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		s, of := w.sets[d.Spec.AddonSetRef.Name], keyOf("AddonSet", d.Namespace, d.Spec.AddonSetRef.Name)
		return s != nil && !s.off && d.Namespace == nested(o, "metadata", "namespace") &&
			d.Name == nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation) &&
			slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
				// Flux may be about to reinstall what was granted, and what is held is that it goes.
				if reinstalled && a.Removal == guard.Dropped(work.ownerUID) {
					return false
				}
				return a.Object == nested(o, "metadata", "name") && slices.Contains(w.heldAtRest[of], d.Name+" "+a.Removal) &&
					!slices.Contains(d.Spec.Removals, a.Removal)
			})
	})
}

// restExcluded looks at rest at what deliveries call excluded: nothing of that is there, also not on its way out.
func (w *World) restExcluded() {
	for _, d := range w.deliveries() {
		for _, a := range d.Status.Addons {
			if a.State != hubv1.AddonExcluded || forged(d) {
				continue
			}
			for k := range w.flux.due {
				o := w.server.Get(k)
				if k.Namespace == d.Namespace && nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation) == d.Name &&
					apiserver.Label(o, hubv1.AddonLabel) == a.Name && !w.deleted[nested(o, "metadata", "uid")] {
					w.violated("status", "delivery %s says that add-on %s is excluded, and %s is still there", d.Name, a.Name, k)
				}
			}
		}
	}
}

// noteSuspended is called after every write. What leaves is resumed, for Flux to uninstall it.
func (w *World) noteSuspended(write apiserver.Write) {
	if !isFlux(write.Key) || write.New == nil {
		return
	}
	was, is := nested(write.Old, "spec", "suspend") == true, nested(write.New, "spec", "suspend") == true
	uid := nested(write.New, "metadata", "uid")
	switch {
	case write.Actor == "user" && is && !was:
		w.suspended[uid], w.everSuspended[uid] = true, true
	case write.Actor == "user" && was && !is, nested(write.New, "metadata", "deletionTimestamp") != nil || w.withdrawn(write.New):
		delete(w.suspended, uid)
	}
}

// checkKept looks, when all that is to happen now has happened, at what somebody has suspended, and at the clusters that do not answer.
func (w *World) checkKept() {
	w.checkWaiting()
	const inTime = 15 * time.Minute
	silent := 0
	for _, c := range w.clusters {
		if !c.silent.IsZero() {
			silent++
		}
	}
	for k := range w.flux.due {
		o := w.server.Get(k)
		uid := nested(o, "metadata", "uid")
		if o == nil || nested(o, "metadata", "deletionTimestamp") != nil || nested(o, "spec", "suspend") == true {
			continue
		}
		if w.suspended[uid] {
			w.violated("suspend", "%s was suspended by a user, and is not any more", k)
		}
		c, now := w.registrationOf(o), w.clock.Now()
		if c == nil || c.silent.IsZero() || now.Sub(c.silent) < inTime || silent > 2 || w.hub == nil || now.Sub(w.hubBegan) < inTime {
			continue // many at once are taken for a fault of the hub's own network
		}
		reg := w.registered(c)
		led := w.there(c) // by a Secret that may be gone: then the copy goes on leading to the cluster that it was of
		if reg != nil && reg.DeletionTimestamp == nil && reg.Status.ClusterUID == led.uid() && !c.gone && led.down &&
			nested(o, "metadata", "annotations", hubv1.ClusterUIDAnnotation) == string(reg.Status.ClusterUID) &&
			status.Find(reg, hubv1.UnregisteringCondition) == nil && status.Find(reg, hubv1.MaintenanceCondition) == nil {
			w.violated("breaker", "%s has not answered since %s, and %s is not suspended", c.name, c.silent.Sub(start), k)
		}
	}
}
