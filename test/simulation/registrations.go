// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// A cluster of the model is two things that mostly are one: a registration with its origin, and what it leads to. Somebody may have a registration
// lead to another one's cluster, or write one of its own for that. What is said here of a cluster is said of a registration, unless it is about
// what runs there.

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

// wantedBySome returns whether a registration of a cluster wants what a workload is.
func (w *World) wantedBySome(c *cluster, work *workload) bool {
	return w.some(c, func(r *cluster) bool { return w.wanted(r, work) })
}

// itsOwnAlone returns whether a registration that does not want a workload is the only one of its cluster that has it delivered, or delivers it with
// such content: what another one would deliver, and does not yet, is not promised to stay.
func (w *World) itsOwnAlone(c *cluster, o apiserver.Object, work *workload) bool {
	of := w.registrationOf(o)
	if of == nil || len(w.registrationsOf(c)) < 2 || w.wanted(of, work) {
		return false
	}
	for k := range w.flux.due {
		other := w.server.Get(k)
		if r := w.registrationOf(other); r != nil && r != of && isFor(other, c) && nested(other, "metadata", "deletionTimestamp") == nil && brings(other, work.name) && !after(other, o) && sameContent(o, other) {
			return false
		}
	}
	return true
}

// registrationOf returns the registration of a Flux object, or nil.
func (w *World) registrationOf(o apiserver.Object) *cluster {
	key, _ := index.Registration(fmt.Sprint(nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation)))
	return w.cluster(key.Name)
}

// isFor returns whether a Flux object was made for a cluster as it is now. What a registration has that was led to another cluster a moment ago is
// for the one before, until the hub has asked where it leads.
func isFor(o apiserver.Object, c *cluster) bool {
	return nested(o, "metadata", "annotations", hubv1.ClusterUIDAnnotation) == string(c.uid())
}

// after returns whether a Flux object was made when another one was on its way out already, or at that moment.
func after(made, gone apiserver.Object) bool {
	deleted, goes := nested(gone, "metadata", "deletionTimestamp").(string)
	created, _ := nested(made, "metadata", "creationTimestamp").(string)
	return goes && created >= deleted
}

// sameContent returns whether two Flux objects make the same of what they bring: Kustomizations do of one add-on, from one source and with the same
// substitution.
func sameContent(a, b apiserver.Object) bool {
	return nested(a, "kind") != "Kustomization" || apiserver.Labels(a)[hubv1.AddonLabel] == apiserver.Labels(b)[hubv1.AddonLabel] && nested(a, "metadata", "namespace") == nested(b, "metadata", "namespace") &&
		reflect.DeepEqual(nested(a, "spec", "postBuild"), nested(b, "spec", "postBuild"))
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

// leadBack: what leads to a cluster that is destroyed, or has no kubeconfig any more, or comes from an origin that is, is for users to clean up.
func (w *World) leadBack() {
	for _, c := range w.clusters {
		switch to := w.there(c); {
		case w.server.Get(c.registration()) == nil || to == c || !to.gone && !c.gone && w.server.Get(to.secret()) != nil:
		case c.twin != nil:
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

// repoint writes into a registration where its kubeconfig is: that of another cluster, or its own again.
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
	if c.provider != "Hand" || c.twin != nil || w.there(c) != c || len(w.registrationsOf(c)) > 1 || o == nil || nested(o, "metadata", "deletionTimestamp") != nil {
		return
	}
	c.own, c.provider = maps.Clone(apiserver.Labels(o)), "Secret"
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

// twoRegistrations returns whether two Flux objects are of different registrations: of one cluster, each of those has its own.
func twoRegistrations(a, b apiserver.Object) bool {
	return registrationIn(a) != "" && registrationIn(b) != "" && registrationIn(a) != registrationIn(b)
}

// registrationIn returns which registration a Flux object says that it is of.
func registrationIn(o apiserver.Object) string {
	s, _ := nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation).(string)
	return s
}

// checkDuplicates: two registrations of one cluster say so, and one that was never anything but alone does not.
func (w *World) checkDuplicates() {
	for _, c := range w.clusters {
		serving, others := 0, 0
		for _, r := range append(slices.Clone(c.led), w.registrationsOf(c)...) {
			if reg := w.registered(r); reg != nil && r != c {
				others++
			}
		}
		for _, r := range w.registrationsOf(c) {
			if reg := w.registered(r); reg != nil && w.serves(r) && !status.Goes(reg) {
				serving++
			}
		}
		for _, r := range w.registrationsOf(c) {
			reg := w.registered(r)
			if reg == nil || !w.serves(r) || status.Goes(reg) {
				continue
			}
			if says := status.IsTrue(reg, hubv1.DuplicateCondition); says && serving+others < 2 || !says && serving > 1 {
				w.violated("status", "%d registrations are of %s, and %s says that it is a duplicate: %t", serving, c.name, reg.Name, says)
			}
		}
	}
}

// reinstallsForBoth: where two registrations have one release, an edit of their set has Flux reinstall it twice, as condition Duplicate says; also if
// the one that had it last has been led elsewhere since.
func (w *World) reinstallsForBoth(c *cluster, name string, k apiserver.Key) {
	if work := c.workloads[name]; work != nil && work.by != "" && work.by != registrationIn(w.server.Get(k)) {
		work.unwanted, work.approved = true, true
	}
}
