// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// A cluster of the model is two things that usually are one: a registration with its origin, and the cluster that its
// kubeconfig reaches. Somebody may give a registration another cluster's kubeconfig, or write a second registration.
// What is said here of a cluster is said of a registration, unless it is about what runs there.

// there returns the cluster that a registration leads to.
func (w *World) there(c *cluster) *cluster {
	name, written := nested(w.server.Get(c.registration()), "spec", "kubeConfig", "secretRef", "name").(string)
	for _, other := range w.clusters {
		if written && other.twin == nil && other.namespace == c.namespace && other.secret().Name == name {
			return other
		}
	}
	if c.twin != nil {
		return c.twin
	}
	return c
}

// registrationsOf returns those that lead to a cluster.
func (w *World) registrationsOf(c *cluster) []*cluster {
	var out []*cluster
	for _, r := range w.clusters {
		if w.there(r) == c {
			out = append(out, r)
		}
	}
	return out
}

// some returns whether something is so of a registration that leads to a cluster.
func (w *World) some(c *cluster, so func(r *cluster) bool) bool {
	return slices.ContainsFunc(w.registrationsOf(c), so)
}

// identified is since when a registration has said which cluster it is of.
type identified struct {
	cluster any
	since   time.Time
}

// noteIdentity is called after every write, and notes when a registration turns out to be of another cluster.
func (w *World) noteIdentity(write apiserver.Write) {
	if write.Key.Kind != "ClusterRegistration" || write.New == nil {
		return
	}
	uid, of := nested(write.New, "metadata", "uid"), nested(write.New, "status", "clusterUID")
	if r := w.cluster(write.Key.Name); r != nil && write.Verb == "delete" && write.Actor == "hub" {
		r.leaves = uid
	}
	if w.identities[uid].cluster != of {
		w.identities[uid] = identified{of, w.clock.Now().Truncate(time.Second)}
		w.noteWishes() // what its users want counts from now on, or what those of another registration do
	}
}

// firstOf returns the registration that has a cluster: of those that say that they are of it, the one that said so first, then the oldest,
// then the first by name. It has the cluster until it is gone. Here all of them are in one namespace. It is nil while none says so.
func (w *World) firstOf(c *cluster) *cluster {
	if w.known == nil {
		return w.firstNow(c)
	}
	first, known := w.known.firsts[c]
	if !known {
		first = w.firstNow(c)
		w.known.firsts[c] = first
	}
	return first
}

func (w *World) firstNow(c *cluster) *cluster {
	var first *cluster
	var rank string
	uid := c.uid()
	for _, r := range w.clusters {
		reg := w.registered(r)
		if reg == nil || reg.Status.ClusterUID != uid {
			continue
		}
		mine := w.identities[string(reg.UID)].since.UTC().Format(time.RFC3339) + reg.CreationTimestamp.UTC().Format(time.RFC3339) + reg.Name
		if first == nil || mine < rank {
			first, rank = r, mine
		}
	}
	return first
}

// of returns the cluster that a registration says that it is of, or, while it says none, the one that it leads to.
func (w *World) of(r *cluster) *cluster {
	if reg := w.registered(r); reg != nil && reg.Status.ClusterUID != "" {
		for _, c := range w.clusters {
			if c.twin == nil && c.uid() == reg.Status.ClusterUID {
				return c
			}
		}
	}
	return w.there(r)
}

// unserved returns whether another registration has the cluster of this one.
func (w *World) unserved(r *cluster) bool {
	first := w.firstOf(w.of(r))
	return first != nil && first != r
}

// wantedThere returns whether the registration that has a cluster wants a workload; or, while none is known to have it, the one that has
// brought the workload there. What users want by another registration counts after its cluster has answered (docs/adr/0022).
func (w *World) wantedThere(c *cluster, work *workload) bool {
	if first := w.firstOf(c); first != nil {
		return w.remains(first) && w.wanted(first, work)
	}
	return w.some(c, func(r *cluster) bool {
		return w.registrationOf(w.object(work.ownerUID)) == r && w.remains(r) && w.wanted(r, work)
	})
}

// remains returns whether a registration stays, or something exists that has it made again.
func (w *World) remains(r *cluster) bool {
	return w.server.Get(r.origin()) != nil || !unregistered(w.server.Get(r.registration()))
}

// unregistered returns whether a registration goes since nobody wants it any more, and not because its origin is gone. If its origin asks
// for it again and is deleted at once, nothing tells the hub.
func unregistered(reg apiserver.Object) bool {
	conditions, _ := nested(reg, "status", "conditions").([]any)
	return slices.ContainsFunc(conditions, func(c any) bool {
		return nested(c, "type") == hubv1.UnregisteringCondition && nested(c, "reason") == hubv1.UnregisteredReason
	})
}

// registrationOf returns the registration of a Flux object, or nil.
func (w *World) registrationOf(o apiserver.Object) *cluster {
	key, _ := index.Registration(fmt.Sprint(nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation)))
	return w.cluster(key.Name)
}

// brings returns whether a Flux object asks for a workload.
func brings(o apiserver.Object, name string) bool {
	text := func(path ...string) string {
		s, _ := nested(o, path...).(string)
		return s
	}
	if text("kind") == "HelmRelease" {
		return releaseName(text("spec", "storageNamespace"), text("spec", "releaseName")) == name
	}
	return slices.Contains(objectsOf(text("spec", "path"), text("spec", "targetNamespace")), name)
}

// leadBack: what leads to a cluster that is destroyed, or has no kubeconfig any more, or comes from an origin that
// is, is for users to clean up.
func (w *World) leadBack() {
	for _, c := range w.clusters {
		switch to := w.there(c); {
		case w.server.Get(c.registration()) == nil || to == c || !to.gone && !c.gone && w.server.Get(to.secret()) != nil:
		case c.twin != nil || c.gone:
			w.remove(c.registration())
		default:
			w.repoint(c, c)
		}
	}
}

// twin writes a second registration by hand, for the cluster of another one.
func (w *World) twin(c *cluster) {
	t := w.cluster(c.name + "-b")
	if t == nil {
		t = &cluster{name: c.name + "-b", namespace: c.namespace, provider: "Hand", twin: c, workloads: map[string]*workload{}}
		w.clusters = append(w.clusters, t)
	}
	if w.server.Get(t.registration()) == nil {
		c.ledTo(t)
		w.makeOrigin(t, map[string]string{"tier": "prod"})
	}
}

// repoint writes into a registration where its kubeconfig is: another cluster's, or its own again.
func (w *World) repoint(c, to *cluster) {
	if c.twin != nil || to.twin != nil || c.namespace != to.namespace || w.server.Get(c.registration()) == nil {
		return
	}
	change := "null"
	if to != c || c.provider == "Hand" {
		change = `{"secretRef":{"name":"` + to.secret().Name + `"}}`
	}
	to.ledTo(c)
	w.patch(c.registration(), `{"spec":{"kubeConfig":%s}}`, change)
}

// adopt has a registration that was written by hand come from a Secret of its name: somebody makes that, and writes originRef.
func (w *World) adopt(c *cluster) {
	o := w.server.Get(c.registration())
	if c.provider != "Hand" || c.twin != nil || w.there(c) != c || len(w.registrationsOf(c)) > 1 || o == nil ||
		nested(o, "metadata", "deletionTimestamp") != nil {
		return
	}
	c.own, c.provider, c.adopted = maps.Clone(apiserver.Labels(o)), "Secret", w.clock.Now()
	delete(c.own, hubv1.NameLabel)
	delete(c.own, hubv1.ProviderLabel)
	c.ownUID = nested(o, "metadata", "uid")
	if w.server.Get(c.secret()) == nil {
		w.makeOrigin(c, c.own)
	}
	w.patch(c.registration(), `{"spec":{"originRef":{"kind":"Secret","name":%q},"kubeConfig":null}}`, c.name)
}

// ledTo notes a registration that leads to a cluster, or did.
func (c *cluster) ledTo(r *cluster) {
	if !slices.Contains(c.led, r) {
		c.led = append(c.led, r)
	}
}

// twoRegistrations returns whether two Flux objects are of different registrations: while the served one changes,
// both may be active.
func twoRegistrations(a, b apiserver.Object) bool {
	return registrationIn(a) != "" && registrationIn(b) != "" && registrationIn(a) != registrationIn(b)
}

// registrationIn returns which registration a Flux object says that it is of.
func registrationIn(o apiserver.Object) string {
	s, _ := nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation).(string)
	return s
}

// forsaken returns whether a registration was deleted while its origin wanted it, and the origin lost its label before it was
// made again. The label is not "false", and absence removes nothing: what it has delivered is left to Flux until somebody
// deletes the deliveries, which say so.
func (w *World) forsaken(r *cluster) bool {
	o := w.server.Get(r.origin())
	return w.registered(r) == nil && r.provider != "Hand" && o != nil && apiserver.Label(o, hubv1.RegisterLabel) == "" &&
		slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
			return d.Spec.RegistrationRef.Name == r.name && status.Reason(d, hubv1.ReadyCondition) == hubv1.RegistrationNotFoundReason
		})
}

// checkUnserved: of several registrations of a cluster one is served, and nobody delivers through the others, which say so.
func (w *World) checkUnserved() {
	for k := range w.flux.due {
		if r := w.registrationOf(w.server.Get(k)); r != nil && w.unserved(r) && !w.forsaken(r) {
			w.violated("owners", "%s is there for %s, and %s is served", k, r.name, w.firstOf(w.of(r)).name)
		}
	}
	for _, r := range w.clusters {
		reg := w.registered(r)
		if reg == nil || !w.serves(r) || status.Goes(reg) {
			continue
		}
		says := status.Find(reg, hubv1.DuplicateCondition)
		switch unserved := w.unserved(r); {
		case unserved != (says != nil) || unserved != (status.Reason(reg, hubv1.ReadyCondition) == hubv1.DuplicateReason):
			w.violated("status", "%s is served instead of %s: %t, which says %s", w.firstOf(w.of(r)).name, r.name, unserved, conditionOf(reg))
		case unserved &&
			(status.IsTrue(reg, hubv1.ReadyCondition) || !strings.Contains(says.Message, r.namespace+"/"+w.firstOf(w.of(r)).name)):
			w.violated("status", "%s is served instead of %s, which says %s", w.firstOf(w.of(r)).name, r.name, conditionOf(reg))
		}
	}
}
