// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// What stays at rest though nobody wants it, or waits for ever, and says so.

// unseen returns whether a Flux object that a user has deleted is for a cluster that is gone, and whose registration has not seen its
// origin, for example because it was just made again; or was not made again any more, and the delivery says so, or somebody has deleted
// that as well. Absence removes nothing: as without the
// hub, Flux tries to uninstall it until somebody deletes the registration, or the delivery.
func (w *World) unseen(o apiserver.Object) bool {
	c := w.registrationOf(o)
	if c == nil || !w.deleted[nested(o, "metadata", "uid")] || !w.unreachable(c) {
		return false
	}
	reg := w.registered(c)
	if reg == nil {
		namespace, _ := nested(o, "metadata", "namespace").(string)
		name, _ := nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation).(string)
		d := w.server.Get(keyOf("AddonDelivery", namespace, name))
		return d == nil || status.Reason(typed(w, d, &hubv1.AddonDelivery{}), hubv1.ReadyCondition) == hubv1.RegistrationNotFoundReason
	}
	return reg.Spec.OriginRef != nil && !reg.SawOrigin()
}

// staysAnyway returns whether a workload that nobody wants stays all the same: it is awaited, its delivery is of an older epoch, who
// has a better claim on its name cannot come, or nobody has heard that the cluster is not to be registered.
func (w *World) staysAnyway(c *cluster, work *workload) bool {
	return w.awaited(c, work) || w.unheard(c) || w.unrivalled(c, work) || w.withdrawnLater(work.set, c) ||
		w.frozen(c, work.set) && (w.excluded(c, work.addon) || w.has(work))
}

// unheard returns whether the origin of a registration has lost its label right before it went. Absence removes nothing, and the
// registration may lead to another cluster, so that it goes on.
func (w *World) unheard(c *cluster) bool {
	reg := w.registered(c)
	return c.provider == "Secret" && reg != nil && reg.DeletionTimestamp == nil && w.server.Get(c.origin()) == nil &&
		c.labels[hubv1.RegisterLabel] != "true" && !status.Unregistered(reg)
}

// unrivalled returns whether a workload is what its set wants, and each other set with that name has nothing there and cannot deliver
// it as things are: what would take the name takes nothing away before it can come.
func (w *World) unrivalled(c *cluster, work *workload) bool {
	var own *claim
	var rivals []claim
	for _, cl := range w.claims(c, work.namespace()) {
		switch {
		case cl.name != work.addon:
		case work.set == cl.set.namespace+"/"+cl.set.name:
			own = &cl
		default:
			rivals = append(rivals, cl)
		}
	}
	return own != nil && own.fits(work) && len(rivals) > 0 && !slices.ContainsFunc(rivals, func(cl claim) bool {
		return w.made(c, cl) || !slices.Contains(w.stalled(cl.set, c), cl.name)
	})
}

// awaited returns whether a workload stays as it is for an add-on that cannot be delivered yet: its own, as an edit
// has left it, or one that is to go on with it, perhaps with another chart, as soon as it renders, what it depends on is
// there, and no other set has its name, be it for as long as the other one's delivery is of an older epoch.
func (w *World) awaited(c *cluster, work *workload) bool {
	if _, name, _ := strings.Cut(work.set, "/"); w.sets[name] != nil && slices.Contains(w.stalled(w.sets[name], c), work.addon) {
		return true
	}
	return slices.ContainsFunc(w.claims(c, work.namespace()), func(cl claim) bool {
		platform := cl.set.namespace == "flux-system"
		if cl.name == work.addon && work.set != cl.set.namespace+"/"+cl.set.name && platform == (work.namespace() == "flux-system") {
			return slices.Contains(w.stalled(cl.set, c), cl.name) // who takes over by the name waits for what it depends on
		}
		if !cl.goesOnWith(work) {
			return false
		}
		if w.mute(c, cl) || slices.Contains(w.stalled(cl.set, c), cl.name) {
			return true
		}
		for _, has := range w.there(c).workloads {
			named := (has.addon == cl.name || w.nowCalled(has) == cl.name) && has.set != cl.set.namespace+"/"+cl.set.name
			if named && w.scope(has.namespace()) == w.scope(cl.set.namespace) &&
				w.lives(has.ownerUID) && (w.wanted(c, has) || w.frozen(c, has.set) && w.has(has)) {
				return true
			}
		}
		return false
	})
}

// withdrawnLater returns whether a set waits as it leaves a cluster: what another set is to take over cannot be delivered there now, and
// what that depends on stays as well. The set is deleted, or does not select the cluster, or selects it again while its delivery is being
// deleted: a deletion cannot be taken back, and the set comes again when its delivery is gone.
func (w *World) withdrawnLater(set string, c *cluster) bool {
	_, name, _ := strings.Cut(set, "/")
	s := w.sets[name]
	if s == nil || !s.deleted && w.selects(s, c) && !w.leaving(s, c) {
		return false
	}
	for _, work := range w.there(c).workloads {
		if work.set == set && w.awaited(c, work) {
			return true
		}
	}
	return false
}

// leaving returns whether the withdrawn delivery of a set to a cluster is being deleted.
func (w *World) leaving(s *set, c *cluster) bool {
	return slices.ContainsFunc(w.deliveriesOf(s, c), func(d *hubv1.AddonDelivery) bool { return d.Withdrawn() && d.DeletionTimestamp != nil })
}

// waitsForSuccessor returns whether such a set, or its delivery, is kept open, and says so.
func (w *World) waitsForSuccessor(o apiserver.Object) bool {
	ns, _ := nested(o, "metadata", "namespace").(string)
	name, _ := nested(o, "metadata", "name").(string)
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		c := w.cluster(d.Spec.RegistrationRef.Name)
		mine := d.Namespace == ns && (nested(o, "kind") == "AddonDelivery" && d.Name == name ||
			nested(o, "kind") == "AddonSet" && d.Spec.AddonSetRef.Name == name)
		if !mine || c == nil {
			return false
		}
		says, reg := conditionOf(d), w.registered(c)
		unseen := w.unreachable(c) && reg != nil && reg.Spec.OriginRef != nil && !reg.SawOrigin() && strings.Contains(says, " goes on with it (")
		if unseen || w.unreachable(c) && strings.Contains(says, "nothing is changed before the cluster has answered") {
			return true // absence removes nothing: nobody knows whether a cluster goes whose registration has not seen its origin
		}
		return (strings.Contains(says, "is to take it over, and cannot be delivered here now") || strings.Contains(says, " goes on with it (")) &&
			w.withdrawnLater(d.SetKey().String(), c)
	})
}
