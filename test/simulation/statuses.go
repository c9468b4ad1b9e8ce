// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// checkStatuses: what tables say is so.
func (w *World) checkStatuses() {
	waitsOn := map[string]bool{}
	for _, d := range w.deliveries() {
		if forged(d) {
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
		if w.unserved(c) {
			ready := slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.State == hubv1.AddonReady })
			if status.Reason(d, hubv1.ReadyCondition) != hubv1.DuplicateReason || status.IsTrue(d, hubv1.ReadyCondition) || ready {
				w.violated("status", "delivery %s is of a registration that is not served, and says: %s", d.Name, conditionOf(d))
			}
			continue
		}
		w.checkContradictions(d, s, c)
		w.checkFailing(d, s, c)
		waits := func(a hubv1.AddonStatus) bool { return w.saysWhyNot(s, d, c, a) }
		waitsOn[c.name] = waitsOn[c.name] || slices.ContainsFunc(d.Status.Addons, waits)
		known := len(w.stalled(s, c)) > 0 || slices.ContainsFunc(d.Status.Addons, waits)
		if !status.IsTrue(d, hubv1.ReadyCondition) && !lostAll(d) && !known &&
			!w.waitsForSuccessor(w.server.Get(keyOf("AddonDelivery", d.Namespace, d.Name))) {
			w.violated("status", "delivery %s is not Ready at rest: %s", d.Name, conditionOf(d))
		}
		if !status.IsTrue(d, hubv1.ReadyCondition) && !lostAll(d) && known {
			bad := slices.DeleteFunc(slices.Clone(d.Status.Addons), func(a hubv1.AddonStatus) bool {
				return a.State == hubv1.AddonReady || a.State == hubv1.AddonLostTo || a.State == hubv1.AddonExcluded ||
					a.State == hubv1.AddonOrphaned || slices.Contains(w.inDoubt(s, c), a.Name) || waits(a)
			})
			if len(bad) > 0 {
				w.violated("status", "delivery %s is not Ready at rest, and not for what is known: add-on %s is %s", d.Name, bad[0].Name, bad[0].State)
			}
		}
		for _, a := range d.Status.Addons {
			if a.State == hubv1.AddonReady && !w.runs(c, s, a.Name) {
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
		lost := w.someLostAll(func(d *hubv1.AddonDelivery) bool { return d.Spec.RegistrationRef.Name == c.name }) ||
			slices.ContainsFunc(sortedKeys(w.sets), func(name string) bool { return len(w.stalled(w.sets[name], c)) > 0 })
		excused := lost || waitsOn[c.name]
		if w.serves(c) && !w.unserved(c) && !status.IsTrue(reg, hubv1.ReadyCondition) && !excused {
			w.violated("status", "registration %s is not Ready at rest: %s", c.name, conditionOf(reg))
		}
	}
	w.checkUnserved()
	for _, name := range sortedKeys(w.sets) {
		w.checkSet(w.sets[name])
	}
}

// ledElsewhere returns whether a registration leads to another cluster than its own, or did, and is served on by that one's kubeconfig.
func (w *World) ledElsewhere(c *cluster) bool {
	reg := w.registered(c)
	return slices.ContainsFunc(w.clusters, func(to *cluster) bool {
		return to != c && !to.gone && reg != nil && reg.Status.ClusterUID == to.uid()
	})
}

// saysWhyNot returns whether an add-on's status says what it waits for, which cannot come as things are.
func (w *World) saysWhyNot(s *set, d *hubv1.AddonDelivery, c *cluster, a hubv1.AddonStatus) bool {
	return w.saysChartless(d, c, a) || w.yieldsLater(s, c, a) ||
		a.State == hubv1.AddonWaitingForDependency && w.waitsForStalled(c, w.server.Get(keyOf(a.Kind, d.Namespace, a.Object)))
}

// saysChartless returns whether an add-on stays as it is for one that does not render, and its status says that Flux misses its chart.
func (w *World) saysChartless(d *hubv1.AddonDelivery, c *cluster, a hubv1.AddonStatus) bool {
	return strings.Contains(a.Message, "chart is not ready") && w.chartless(c, keyOf(a.Kind, d.Namespace, a.Object))
}

// yieldsLater returns whether an add-on stays until another set's of its name comes, which has a better claim and waits for what cannot be
// delivered now; and says so.
func (w *World) yieldsLater(s *set, c *cluster, a hubv1.AddonStatus) bool {
	own := s.addon(a.Name)
	return own != nil && strings.Contains(a.Message, " takes it over; it waits for ") &&
		slices.ContainsFunc(w.claims(c, s.namespace), func(cl claim) bool {
			return cl.set != s && cl.name == a.Name && w.beats(c, cl, claim{s, *own}, "") && slices.Contains(w.stalled(cl.set, c), cl.name)
		})
}

// checkContradictions: what the hub refuses to do is said where people look, with what to do.
func (w *World) checkContradictions(d *hubv1.AddonDelivery, s *set, c *cluster) {
	if w.registered(c) == nil {
		return
	}
	for _, addon := range w.contradicted(s, c) {
		if w.failsHere(c, s, addon) {
			continue // that is said, and nobody knows yet whether it contradicts itself
		}
		there := &hubv1.AddonSet{}
		must(w.server.Into(w.server.Get(s.key()), there))
		objects := map[string]status.Object{"delivery": d, "registration": w.registered(c), "AddonSet": there}
		for _, kind := range sortedKeys(objects) {
			o := objects[kind]
			says := conditionOf(o)
			another := kind == "AddonSet" && slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
				return a.Name != addon && strings.Contains(says, c.name+" ("+a.Name+": ") // of each cluster it names one that failed
			})
			if another || strings.Contains(says+";", " more;") { // of many a condition names a few, and the delivery lists all
				says += "; " + addon + ": " + messageOf(d, addon)
			}
			if !strings.HasPrefix(says, "False") || !strings.Contains(says, addon) ||
				kind == "delivery" && !strings.Contains(says, "Leave the field out") {
				w.violated("status", "add-on %s of %s is refused on %s, and its %s does not say so: %s", addon, s.name, c.name, kind, says)
			}
		}
	}
}

// messageOf returns what a delivery says of an add-on.
func messageOf(d *hubv1.AddonDelivery, addon string) string {
	for i := range d.Status.Addons {
		if d.Status.Addons[i].Name == addon {
			return d.Status.Addons[i].Message
		}
	}
	return ""
}

// registered returns a cluster's registration, or nil.
func (w *World) registered(c *cluster) *hubv1.ClusterRegistration {
	o := w.server.Get(c.registration())
	if o == nil {
		return nil
	}
	return typed(w, o, &hubv1.ClusterRegistration{})
}

// typed returns an object as a Go type, which must not be changed.
func typed[T runtime.Object](w *World, o apiserver.Object, into T) T {
	known, err := w.server.Typed(o, into)
	must(err)
	return known.(T)
}

func (w *World) deliveries() []*hubv1.AddonDelivery {
	var out []*hubv1.AddonDelivery
	for _, o := range w.server.List(kinds["AddonDelivery"].GroupKind(), "") {
		out = append(out, typed(w, o, &hubv1.AddonDelivery{}))
	}
	return out
}

// forged returns whether somebody has made a delivery by hand.
func forged(d *hubv1.AddonDelivery) bool { return strings.HasPrefix(d.Name, "forged-") }

// lostAll returns whether other sets deliver every add-on of a delivery, which then says so, and so may its registration and its set.
func lostAll(d *hubv1.AddonDelivery) bool {
	lost := false
	for _, a := range d.Status.Addons {
		lost = lost || a.State == hubv1.AddonLostTo
		// of the others nothing exists either
		if a.State != hubv1.AddonLostTo && a.State != hubv1.AddonExcluded && a.State != hubv1.AddonOrphaned {
			return false
		}
	}
	return lost
}

// someLostAll returns whether that is so of one of these deliveries.
func (w *World) someLostAll(of func(*hubv1.AddonDelivery) bool) bool {
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool { return of(d) && lostAll(d) })
}

// deliveriesOf returns the deliveries of a set to a cluster: one, and those that name both and are forged.
func (w *World) deliveriesOf(s *set, c *cluster) []*hubv1.AddonDelivery {
	return slices.DeleteFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		return d.SetKey().String() != s.namespace+"/"+s.name || d.Spec.RegistrationRef.Name != c.name
	})
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
	must(w.server.Into(o, there))
	matched, gone, led := 0, 0, 0
	for _, c := range w.clusters {
		switch registered := w.server.Get(c.registration()) != nil; {
		case registered && w.selects(s, c) && !w.leaving(s, c):
			matched++
		case registered && (w.server.Get(c.origin()) == nil || w.there(c).gone):
			gone++ // a registration out of a backup stays, and counts, though its origin is gone: absence removes nothing
			if w.ledElsewhere(c) {
				led++ // what it was led to before serves it on
			}
		case registered && w.selects(s, c):
			gone++ // selected again while its delivery goes
		case !registered && len(w.deliveriesOf(s, c)) > 0:
			gone++ // so does a delivery whose registration is gone, and nobody makes it again
		}
	}
	got := there.Status.Clusters
	if got == nil || int(got.Matched) < matched || int(got.Matched) > matched+gone || int(got.Ready) > matched+led {
		w.violated("status", "AddonSet %s says that it matches %+v clusters, and it matches %d", s.name, there.Status.Clusters, matched)
	}
	lost := w.someLostAll(func(d *hubv1.AddonDelivery) bool {
		return d.Namespace == s.namespace && d.Spec.AddonSetRef.Name == s.name
	}) || slices.ContainsFunc(w.clusters, func(c *cluster) bool { return len(w.stalled(s, c)) > 0 }) ||
		slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
			c := w.cluster(d.Spec.RegistrationRef.Name)
			return c != nil && d.SetKey().String() == s.namespace+"/"+s.name && slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
				return w.saysWhyNot(s, d, c, a)
			})
		})
	if !status.IsTrue(there, hubv1.ReadyCondition) && !lost && !w.waitsForSuccessor(o) && !w.failsOnGone(s, there) {
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
