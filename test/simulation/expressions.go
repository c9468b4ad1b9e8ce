// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// fails returns whether the expression of an add-on fails on a cluster because what it reads is missing. A cluster's
// own variable that is no text is ignored: the set's counts.
func (w *World) fails(c *cluster, cl claim) bool {
	if name, ok := strings.CutPrefix(cl.needs, "vars."); ok {
		said := nested(w.server.Get(c.registration()), "spec", "variables", name)
		_, says := said.(string)
		if said != nil && !says && cl.set.variables[name] == "" {
			return true // a number comes before what the annotation says
		}
		return !says && !w.annotates(c, name) && cl.set.variables[name] == ""
	}
	name, ok := strings.CutPrefix(cl.needs, "cluster.labels.")
	return ok && w.labelsOf(c)[name] == ""
}

// annotates returns whether the annotation of a cluster's origin has a variable. When the origin goes, what it had last counts.
func (w *World) annotates(c *cluster, name string) bool {
	if o := w.server.Get(c.origin()); o != nil && c.provider != "Hand" {
		c.annotated, _ = nested(o, "metadata", "annotations", hubv1.VariablesAnnotation).(string)
	}
	return strings.Contains(c.annotated, strconv.Quote(name)+":")
}

// holds returns whether an add-on does not render, and has an object, which stays as it is.
func (w *World) holds(c *cluster, cl claim) bool { return w.fails(c, cl) && w.made(c, cl) }

// mute returns whether an add-on does not render, and has no object: it takes nothing from anybody.
func (w *World) mute(c *cluster, cl claim) bool { return w.fails(c, cl) && !w.made(c, cl) }

// mayBe returns whether a workload is what a claim brings, or stays because nobody knows what that should be: its own
// workload, and what it is moved from.
func (w *World) mayBe(c *cluster, cl claim, work *workload) bool {
	return cl.fits(work) && !w.mute(c, cl) || w.fails(c, cl) && cl.speaksFor(work)
}

// speaksFor returns whether a workload is what a claim's own add-on has brought, or one that it is moved from.
func (cl claim) speaksFor(work *workload) bool {
	own := work.set == cl.set.namespace+"/"+cl.set.name && work.addon == cl.name
	return own || cl.goesOnWith(work)
}

// failsHere returns whether a set has an add-on whose expression fails on a cluster.
func (w *World) failsHere(c *cluster, s *set, addon string) bool {
	return slices.ContainsFunc(w.claims(c, s.namespace), func(cl claim) bool { return cl.set == s && cl.name == addon && w.fails(c, cl) })
}

// chartless returns whether the chart was deleted, before the process that runs had begun to watch, of an add-on that does not
// render, or whose set has no add-on of that name any more, so that it only stays for another: nobody knows which chart it was. Of an
// add-on whose delivery is being withdrawn, nobody makes it again, since Flux uninstalls without it.
func (w *World) chartless(c *cluster, k apiserver.Key) bool {
	o := w.server.Get(k)
	has := &workload{set: setNameOf(o), addon: apiserver.Label(o, hubv1.AddonLabel)}
	fails := func(cl claim) bool { return w.fails(c, cl) && cl.speaksFor(has) }
	chart, claims := chartKey(o), w.claims(c, k.Namespace)
	if k.Kind != "HelmRelease" || w.server.Get(chart) != nil {
		return false
	}
	uid, _ := nested(o, "metadata", "uid").(string)
	unknown := slices.ContainsFunc(claims, fails) || !slices.ContainsFunc(claims, func(cl claim) bool {
		return cl.set.namespace+"/"+cl.set.name == has.set && cl.name == has.addon
	})
	return w.leaves(&workload{ownerUID: uid}) || unknown && !w.chartsGone[chart].After(w.hubBegan)
}

// checkFailing: what does not render is reported where people look.
func (w *World) checkFailing(d *hubv1.AddonDelivery, s *set, c *cluster) {
	for _, cl := range w.claims(c, s.namespace) {
		if cl.set != s || !w.fails(c, cl) || w.frozen(c, s.namespace+"/"+s.name) {
			continue
		}
		at := slices.IndexFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.Name == cl.name })
		switch {
		case at < 0:
			w.violated("status", "add-on %s of %s does not come out on %s, and its delivery does not name it", cl.name, s.name, c.name)
		case d.Status.Addons[at].State == hubv1.AddonLostTo:
		case d.Status.Addons[at].State != hubv1.AddonFailed || d.Status.Addons[at].Reason != hubv1.RenderFailedReason ||
			status.IsTrue(d, hubv1.ReadyCondition):
			w.violated("status", "add-on %s of %s does not come out on %s, and its delivery says %s %s; %s", cl.name, s.name, c.name,
				d.Status.Addons[at].State, d.Status.Addons[at].Reason, conditionOf(d))
		}
	}
}
