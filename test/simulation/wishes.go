// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"path"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// What users want is known to the model from what they did, and from nothing that the hub says.

// selects returns whether a set is to be on a cluster.
func (w *World) selects(s *set, c *cluster) bool {
	if s.deleted || c.gone || w.there(c).gone || !c.drained.IsZero() {
		return false
	}
	labels := w.labelsOf(c)
	if t := w.teamOf(s.namespace); t != nil {
		return t.has(labels) && matches(s.selector, labels)
	}
	return labels != nil && (s.namespace == "flux-system" || s.namespace == c.namespace) && matches(s.selector, labels)
}

func matches(selector map[string]any, labels map[string]string) bool {
	for k, v := range selector {
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
		w.noteLabels(c, o)
		c.unregistered, c.seen = false, nil
	} else if c.provider == "Hand" || c.unregistered || !w.begun(c) {
		return nil // whoever deletes a registration that has no origin unregisters the cluster
	} else if o != nil && apiserver.Label(o, hubv1.RegisterLabel) == "false" {
		c.unregistered = true // it says so to the last
		return nil
	} else if o != nil && c.provider == "Secret" && apiserver.Label(o, hubv1.RegisterLabel) == "true" {
		w.noteLabels(c, o) // what somebody writes on it counts as long as it exists
	}
	if c.provider != "Hand" && c.labels[hubv1.RegisterLabel] != "true" {
		return nil
	}
	if reg := w.server.Get(c.registration()); o == nil && reg != nil {
		return w.lastSeen(c, apiserver.Labels(reg))
	}
	return c.labels
}

// noteLabels keeps the labels that a cluster's origin has.
func (w *World) noteLabels(c *cluster, o apiserver.Object) {
	c.labels = apiserver.Labels(o)
	if nested(w.server.Get(c.registration()), "metadata", "uid") == c.ownUID {
		maps.Copy(c.labels, c.own)
	}
}

// lastSeen returns the labels of a cluster whose origin has gone. What was written on the origin right before that, the
// hub may have seen, or nobody ever does: then the labels are those that the registration had when the origin went.
func (w *World) lastSeen(c *cluster, has map[string]string) map[string]string {
	if c.seen == nil {
		c.seen = maps.Clone(has)
	}
	out := maps.Clone(c.labels)
	maps.Copy(out, c.seen)
	for k := range out {
		switch is, last := has[k], c.labels[k]; {
		case k == hubv1.RegisterLabel:
			out[k] = last
		case is == last:
			out[k] = last
		default:
			out[k] = c.seen[k]
		}
		if out[k] == "" {
			delete(out, k)
		}
	}
	return out
}

// begun returns whether a cluster has ever come so far that it may go on although its origin does not exist any more:
// it has a registration, or deliveries of a registration that is to be made again.
func (w *World) begun(c *cluster) bool {
	return w.server.Get(c.registration()) != nil || slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		return !forged(d) && d.Spec.RegistrationRef.Key().String() == c.namespace+"/"+c.name
	})
}

// claim is an add-on of a set that is to be on a cluster, if no other set has a better claim.
type claim struct {
	set *set
	addon
}

// claims are what the sets that select a cluster want there, of those that compete with the sets of a namespace.
func (w *World) claims(c *cluster, namespace string) []claim {
	if w.known == nil {
		return w.claimsNow(c, namespace)
	}
	in := claimed{c, w.scope(namespace)}
	out, known := w.known.claims[in]
	if !known {
		out = w.claimsNow(c, namespace)
		w.known.claims[in] = out
	}
	return out
}

func (w *World) claimsNow(c *cluster, namespace string) []claim {
	var out []claim
	for _, name := range sortedKeys(w.sets) {
		s := w.sets[name]
		if w.scope(s.namespace) != w.scope(namespace) || !w.selects(s, c) {
			continue
		}
		for _, a := range s.addons {
			if !a.optional() || !w.excluded(c, a.name) {
				out = append(out, claim{s, a})
			}
		}
	}
	return out
}

// wanted returns whether somebody wants what a workload is: a set that selects the cluster has its add-on, and no
// stronger set has another of that name; or it has one that was moved from it. Whether a moved one may have its new
// name is no question here: until then it is wanted as it is.
func (w *World) wanted(c *cluster, work *workload) bool {
	claims := w.claims(c, work.namespace())
	goes := w.wasDeselected(work)
	absent := w.server.Get(c.origin()) == nil && w.server.Get(c.registration()) != nil
	return slices.ContainsFunc(claims, func(cl claim) bool {
		if goes && work.set == cl.set.namespace+"/"+cl.set.name {
			return false // it was leaving before its set wanted it again; only another set can still take it over
		}
		if absent && work.set != cl.set.namespace+"/"+cl.set.name {
			return false // while its origin is missing nothing is rendered anew there, so no other set takes it over
		}
		if w.contradicts(c, cl, work) {
			return true
		}
		if !w.mayBe(c, cl, work) {
			return false
		}
		if cl.name == work.addon {
			return !cl.releasesAnother(work) && !w.hasAnother(c, cl, work) && !slices.ContainsFunc(claims, func(other claim) bool {
				return other.name == cl.name && !w.mute(c, other) && w.beats(c, other, cl, work.set) &&
					!slices.Contains(w.contradicted(other.set, c), other.name)
			})
		}
		return cl.goesOnWith(work) && !(w.made(c, cl) && w.keeps(work))
	})
}

// releasesAnother returns whether a workload of another set is a Helm release of another name than a claim installs, which is not moved
// from that workload: what was renamed keeps its release, and the next add-on of its new name has one of its own.
func (cl claim) releasesAnother(work *workload) bool {
	release := cl.name
	if cl.form == "helm" && cl.release != "" {
		release = cl.release
	}
	return cl.form != "kustomization" && work.set != cl.set.namespace+"/"+cl.set.name && !cl.goesOnWith(work) &&
		!strings.HasSuffix(work.name, "/"+release)
}

// hasAnother returns whether a claim is moved from another workload of a cluster, which it has by now or is to go on with. So it does
// without one that another set has under its name.
func (w *World) hasAnother(c *cluster, cl claim, work *workload) bool {
	if work.set == cl.set.namespace+"/"+cl.set.name || cl.goesOnWith(work) {
		return false
	}
	for _, other := range w.there(c).workloads {
		if cl.goesOnWith(other) {
			return true
		}
	}
	return cl.movedFrom != "" && w.made(c, cl)
}

// keeps returns whether the Flux object of a workload stays, suspended or not. An add-on that has an object of its
// own by now takes nothing over from it.
func (w *World) keeps(work *workload) bool {
	o := w.object(work.ownerUID)
	return o != nil && nested(o, "metadata", "deletionTimestamp") == nil
}

// goesOnWith returns whether a claim is moved from what brought a workload.
func (cl claim) goesOnWith(work *workload) bool {
	from := cl.movedFrom
	if !strings.Contains(from, "/") {
		from = cl.set.name + "/" + from
	}
	return cl.movedFrom != "" && cl.set.namespace+"/"+from == work.set+"/"+work.addon
}

// contradicts returns whether an add-on that is renamed or moved asks for another Helm release than the one that it
// is to go on with. movedFrom promises that nothing is reinstalled, so the hub refuses this, and says so, and does
// not guess which of the two is meant. What runs stays meanwhile.
func (w *World) contradicts(c *cluster, cl claim, work *workload) bool {
	return cl.form == "helm" && cl.release != "" && strings.HasPrefix(work.name, "helm:") && !strings.HasSuffix(work.name, "/"+cl.release) &&
		cl.goesOnWith(work) && w.lives(work.ownerUID) && !w.made(c, cl) && !w.asksFor(work, cl.release)
}

// onlyStays returns whether all that speaks for a workload is that an add-on is refused, and what runs stays
// meanwhile. What comes only then was on its way to be something else, as on a cluster that was rebuilt in the middle
// of an edit: nobody misses it.
func (w *World) onlyStays(c *cluster, work *workload) bool {
	return w.some(c, func(r *cluster) bool {
		return slices.ContainsFunc(w.claims(r, work.namespace()), func(cl claim) bool { return w.contradicts(r, cl, work) })
	})
}

// asksFor returns whether the Flux object of a workload asks for a Helm release that Flux has not installed yet: that
// edit was made before.
func (w *World) asksFor(work *workload, release string) bool {
	return nested(w.object(work.ownerUID), "spec", "releaseName") == release
}

// contradicted returns the add-ons of a set that contradict themselves on a cluster.
func (w *World) contradicted(s *set, c *cluster) []string {
	var out []string
	for _, cl := range w.claims(c, s.namespace) {
		if cl.set != s {
			continue
		}
		for _, name := range sortedKeys(w.there(c).workloads) {
			if w.contradicts(c, cl, w.there(c).workloads[name]) {
				out = append(out, cl.name)
				break
			}
		}
	}
	return out
}

// stalled returns the add-ons of a set that cannot be delivered to a cluster as things are: they contradict
// themselves, they do not render, another add-on has their Helm release, what they were moved from is still wanted
// under its name, or what runs under their name is promised to another add-on; and those that wait for such an
// add-on, because they depend on it, or because it had their name before. The set's author has to see that, and correct it.
func (w *World) stalled(s *set, c *cluster) []string {
	var after []string
	claims := w.claims(c, s.namespace)
	for _, cl := range claims {
		if cl.set == s && slices.ContainsFunc(claims, func(other claim) bool {
			return other.set != s && other.name == cl.dependsOn && !w.made(c, other) &&
				slices.Contains(w.stalledAfter(other.set, c, nil), other.name)
		}) {
			after = append(after, cl.name)
		}
	}
	return w.stalledAfter(s, c, after)
}

// stalledAfter is stalled, where it is known what comes after another set's add-on that cannot come.
func (w *World) stalledAfter(s *set, c *cluster, after []string) []string {
	out, claims := append(w.contradicted(s, c), after...), w.claims(c, s.namespace)
	for _, cl := range claims {
		if cl.set == s && (w.fails(c, cl) || w.taken(c, cl) || slices.ContainsFunc(claims, cl.comesAfter) || w.promised(c, cl, claims)) {
			out = append(out, cl.name)
		}
	}
	for before := -1; before < len(out); { // those that come after those that come after them, and so on
		before = len(out)
		for _, cl := range claims {
			first := func(other claim) bool { // it had this name before, and cannot come
				return other.set == s && other.comesAfter(cl) && !w.made(c, other) &&
					(w.fails(c, other) || w.taken(c, other) || slices.Contains(out, other.dependsOn))
			}
			if cl.set == s && (slices.Contains(out, cl.dependsOn) || slices.ContainsFunc(claims, first)) && !slices.Contains(out, cl.name) {
				out = append(out, cl.name)
			}
		}
	}
	return out
}

// promised returns whether what runs under the name of a claim belongs to another claim, which is moved from it and
// cannot have it yet: what would replace it waits. If the other one brings something else anyway, nothing waits for it, but
// while it is refused, or does not render, the hub does not know.
func (w *World) promised(c *cluster, cl claim, claims []claim) bool {
	for _, work := range w.there(c).workloads {
		mine := cl.fits(work) && work.set == cl.set.namespace+"/"+cl.set.name
		if work.addon == cl.name && !mine && slices.ContainsFunc(claims, func(other claim) bool {
			return other.goesOnWith(work) && !w.made(c, other) && (other.couldGoOn(work) || w.fails(c, other) || w.contradicts(c, other, work))
		}) {
			return true
		}
	}
	return false
}

// couldGoOn returns whether a claim could have a workload from another add-on without a reinstall. Under another name a new Flux object
// upgrades a Helm release to whatever chart; under the same name it is the same object, and Flux minds the chart.
func (cl claim) couldGoOn(work *workload) bool {
	renamed := cl.name != work.addon || cl.set.namespace != work.namespace()
	return cl.fits(work) || renamed && cl.form != "kustomization" && strings.HasPrefix(work.name, "helm:")
}

// comesAfter returns whether a claim is moved from another one that is also wanted. Nobody can tell which of the two
// is to go on with what runs.
func (cl claim) comesAfter(other claim) bool {
	from := cl.movedFrom
	if !strings.Contains(from, "/") {
		from = cl.set.name + "/" + from
	}
	return cl.movedFrom != "" && from == other.set.name+"/"+other.name && other.set.namespace == cl.set.namespace
}

// inDoubt returns those that are stalled, and those of the same set that they are moved from: where both want one
// Helm release, the latter fails.
func (w *World) inDoubt(s *set, c *cluster) []string {
	out, claims := w.stalled(s, c), w.claims(c, s.namespace)
	for _, cl := range claims {
		if cl.set == s && cl.movedFrom != "" && slices.Contains(out, cl.name) {
			out = append(out, path.Base(cl.movedFrom))
		}
		if cl.set == s && slices.ContainsFunc(claims, func(other claim) bool { return other.set == s && other.comesAfter(cl) }) {
			out = append(out, cl.name)
		}
	}
	return out
}

// made returns whether an add-on of a set has a Flux object of its own for a cluster: then it takes nothing over any
// more.
func (w *World) made(c *cluster, cl claim) bool {
	for k := range w.flux.due {
		o := w.server.Get(k)
		if k.Namespace == cl.set.namespace && apiserver.Label(o, hubv1.AddonSetLabel) == cl.set.name &&
			apiserver.Label(o, hubv1.AddonLabel) == cl.name &&
			nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation) == c.namespace+"/"+c.name {
			return true
		}
	}
	return false
}

// beats returns whether one claim on an add-on's name is stronger than another. Platform sets win over others. Then
// an add-on wins that does not render and stays as it is. Then the priority decides, and between equals the set that
// has the add-on. If both are new to a cluster where a third one had it, the name decides.
func (w *World) beats(c *cluster, cl, other claim, has string) bool {
	if a, b := cl.set.namespace == "flux-system", other.set.namespace == "flux-system"; a != b {
		return a
	}
	if a, b := w.holds(c, cl), w.holds(c, other); a != b {
		return a
	}
	if cl.set.priority != other.set.priority {
		return cl.set.priority > other.set.priority
	}
	mine, others := cl.set.namespace+"/"+cl.set.name, other.set.namespace+"/"+other.set.name
	a, b := w.made(c, cl), w.made(c, other)
	if (mine == has || others == has) && !(a && b) { // both have it for a moment, if another add-on of one has just got the name
		return mine == has && others != has
	}
	if a != b {
		return a
	}
	return mine < others
}

// namespace returns that of the set that has brought a workload.
func (work *workload) namespace() string {
	namespace, _, _ := strings.Cut(work.set, "/")
	return namespace
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

// known is what was found out while nothing changes: it is asked for each workload, and is the same for all of a cluster.
type known struct {
	claims map[claimed][]claim
	firsts map[*cluster]*cluster
}

type claimed struct {
	cluster *cluster
	scope   string
}

// atOnce looks at the world at one moment: what looks changes nothing that is asked for.
func (w *World) atOnce(look func()) {
	w.known = &known{map[claimed][]claim{}, map[*cluster]*cluster{}}
	look()
	w.known = nil
}

// noteWishes marks what nobody wants any more, or wants in another place, after an edit.
func (w *World) noteWishes() {
	w.changes++
	for _, c := range w.clusters {
		w.labelsOf(c) // which keeps those that an origin has last
	}
	w.atOnce(func() {
		for _, c := range w.clusters {
			w.noteWishesOf(c)
		}
	})
	w.noteUnselected()
	w.noteTeams()
}

// noteWishesOf marks what is on one cluster. Whose a workload is may decide who may have another one: an add-on is not refused any more
// once what it contradicted belongs to somebody else.
func (w *World) noteWishesOf(c *cluster) {
	for _, work := range c.workloads {
		w.noteWish(c, work)
		if _, name, ok := strings.Cut(work.set, "/"); ok && work.unwanted && w.sets[name] != nil && w.sets[name].off {
			work.approved = true
		}
	}
}

func (w *World) noteWish(c *cluster, work *workload) {
	if w.wantedThere(c, work) {
		work.missed = true
	} else {
		work.unwanted = true
	}
	if (addon{name: work.addon}).optional() && w.excludedAsItGoes(work) {
		work.unwanted = true
	}
}

// excludedAsItGoes returns whether the registration that a workload is delivered through is being deleted, and leaves it out: its
// deliveries follow it as long as it is there, also if another registration of the cluster is served after it.
func (w *World) excludedAsItGoes(work *workload) bool {
	through := w.registrationOf(w.server.Get(w.flux.uids[work.ownerUID]))
	return through != nil && w.excluded(through, work.addon) &&
		nested(w.server.Get(through.registration()), "metadata", "deletionTimestamp") != nil
}
