// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// end heals all faults, waits until the hub is at rest, and looks at everything.
func (w *World) end() {
	if len(w.violations) > 0 {
		return
	}
	w.say("%s the end: all faults are healed", w.clock.Now().Sub(start))
	w.heal()
	for round := range 8 {
		w.wait(30 * time.Minute)
		w.finishNamespaces()
		w.leadBack() // a deletion is refused until the hub has seen that the origin is gone
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
		if !held && round > 2 { // what waits for --teardown-grace, which is an hour, is held only then
			break
		}
	}
	w.settleRollouts()
	w.wait(90*time.Minute + 2*max(0, w.config.ChartRetention-usualRetention)) // a chart goes first, and then what it comes from
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
	w.release()
	for _, c := range w.clusters {
		c.down, c.hung, c.refuses = false, false, false
		w.goOn(c)
		if !c.drained.IsZero() {
			w.drain(c, "-")
		}
		if !c.gone && c.provider != "Secret" { // that of a Secret is the origin, and its deletion no fault
			w.restoreSecret(c)
		}
		if nested(w.server.Get(c.registration()), "spec", "pause") != nil {
			w.patch(c.registration(), `{"spec":{"pause":null}}`)
		}
	}
	for _, kind := range []string{"Secret", "TenantControlPlane"} {
		for _, o := range w.server.List(kinds[kind].GroupKind(), "") {
			w.dropFinalizer(keyOf(kind, nested(o, "metadata", "namespace").(string), nested(o, "metadata", "name").(string)), "foregroundDeletion")
		}
	}
	w.leadBack()
	w.noteWishes()
	for k := range w.flux.due {
		o := w.server.Get(k)
		if o != nil && nested(o, "metadata", "deletionTimestamp") == nil && nested(o, "spec", "suspend") == true &&
			w.everSuspended[nested(o, "metadata", "uid")] {
			w.patch(k, `{"spec":{"suspend":null}}`)
		}
	}
	w.noteAnswers()
	w.endFormer()
	if w.hub == nil {
		w.startHub()
	}
}

// checkRest looks at a world in which nothing is to be done any more.
func (w *World) checkRest() {
	w.checkDeletions()
	w.checkDelivered()
	w.checkLeft()
	w.checkKubeconfigs()
	w.checkCopies()
	w.checkTeams()
	w.checkStatuses()
}

func (w *World) checkDeletions() {
	for _, gk := range w.server.Kinds() {
		for _, o := range w.server.List(gk, "") {
			if _, copied := apiserver.Labels(o)[hubv1.CopyLabel]; copied && w.copyServes(o) {
				continue // one that somebody has deleted serves until Flux does not need it any more
			}
			if nested(o, "kind") == "ServiceAccount" && w.placeholderServes(o) {
				continue // as does a placeholder ServiceAccount, without which Flux would remove nothing
			}
			if w.unseen(o) {
				continue
			}
			if nested(o, "metadata", "deletionTimestamp") != nil && !w.waitsForSuccessor(o) {
				w.violated("deletion", "%s %v/%v does not go: finalizers %v", gk.Kind, nested(o, "metadata", "namespace"),
					nested(o, "metadata", "name"), nested(o, "metadata", "finalizers"))
			}
		}
	}
}

// unreachable returns whether nothing leads to a registration's cluster any more: it, or the Secret that it comes from, is gone.
func (w *World) unreachable(c *cluster) bool {
	return w.there(c).gone || w.server.Get(w.there(c).secret()) == nil
}

// copyServes returns whether a Flux object uses a kubeconfig copy.
func (w *World) copyServes(copied apiserver.Object) bool {
	for k := range w.flux.due {
		if k.Namespace == nested(copied, "metadata", "namespace") && secretOf(w.server.Get(k)) == nested(copied, "metadata", "name") {
			return true
		}
	}
	return false
}

// nobodyKeeps returns whether all that uses a kubeconfig copy is left to Flux.
func (w *World) nobodyKeeps(c *cluster, copied apiserver.Object) bool {
	for k := range w.flux.due {
		if k.Namespace == nested(copied, "metadata", "namespace") && secretOf(w.server.Get(k)) == nested(copied, "metadata", "name") &&
			!w.leftToFlux(c, k) {
			return false
		}
	}
	return w.copyServes(copied)
}

// placeholderServes returns whether a Flux object acts as a ServiceAccount.
func (w *World) placeholderServes(account apiserver.Object) bool {
	for k := range w.flux.due {
		if k.Namespace == nested(account, "metadata", "namespace") &&
			nested(w.server.Get(k), "spec", "serviceAccountName") == nested(account, "metadata", "name") {
			return true
		}
	}
	return false
}

// serves returns whether a cluster's access is in place. While the origin of a registration that leads elsewhere is missing, nothing is
// made.
func (w *World) serves(c *cluster) bool {
	if c.provider != "Hand" && w.there(c) != c && w.server.Get(c.origin()) == nil {
		return false
	}
	return !c.gone && !w.there(c).gone && w.server.Get(w.there(c).secret()) != nil && w.labelsOf(c) != nil
}

// checkDelivered: what is selected exists, is Ready, and has one owner.
func (w *World) checkDelivered() {
	for _, name := range sortedKeys(w.sets) {
		s := w.sets[name]
		if s.deleted {
			continue
		}
		for _, c := range w.clusters {
			if !w.serves(c) || !w.selects(s, c) || w.unserved(c) || w.waitsForGood(s, c) ||
				w.leaving(s, c) { // checkDeletions asks what for
				continue
			}
			for _, a := range s.addons {
				mine := claim{s, a}
				waits := func(cl claim) bool {
					return cl.name == a.name && (cl.set == s || w.beats(c, cl, mine, "")) && slices.Contains(w.stalled(cl.set, c), a.name)
				}
				if a.optional() && w.excluded(c, a.name) || slices.ContainsFunc(w.claims(c, s.namespace), waits) {
					continue // the statuses say so: it cannot come, or the set cannot deliver it now that has a better claim
				}
				if !w.runs(c, s, a.name) {
					w.violated("convergence", "add-on %s of %s is not on %s%s", a.name, name, c.name, w.said(s, c, a.name))
				}
			}
		}
	}
	for k := range w.flux.due {
		o := w.server.Get(k)
		conditions, _ := nested(o, "status", "conditions").([]any)
		ready := len(conditions) > 0 && nested(conditions[0], "status") == "True"
		key, _ := index.Registration(fmt.Sprint(nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation)))
		c := w.cluster(key.Name)
		if c != nil && w.serves(c) && !ready && !w.waitsForStalled(c, o) && !w.leftToFlux(c, k) && !w.chartless(c, k) {
			w.violated("convergence", "%s is not Ready: %v", k, conditions)
		}
	}
}

// waitsForStalled returns whether Flux waits for what an object depends on, and its add-on, by whatever name and in whatever set it is to
// go on, cannot come as things are: the statuses say so.
func (w *World) waitsForStalled(c *cluster, o apiserver.Object) bool {
	conditions, _ := nested(o, "status", "conditions").([]any)
	_, name, _ := strings.Cut(setNameOf(o), "/")
	if len(conditions) == 0 || nested(conditions[0], "reason") != fluxmeta.DependencyNotReadyReason || w.sets[name] == nil {
		return false
	}
	names := []string{apiserver.Label(o, hubv1.AddonLabel)}
	for _, work := range w.there(c).workloads {
		if work.ownerUID == nested(o, "metadata", "uid") {
			if w.awaited(c, work) {
				return true
			}
			names = append(names, w.nowCalled(work))
		}
	}
	return slices.ContainsFunc(w.stalled(w.sets[name], c), func(addon string) bool { return slices.Contains(names, addon) })
}

// leftToFlux returns whether nobody looks after a Flux object any more, and something says so: its delivery was
// deleted while its set, or its cluster's registration, did not exist.
func (w *World) leftToFlux(c *cluster, k apiserver.Key) bool {
	o := w.server.Get(k)
	delivery, _ := nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation).(string)
	if w.server.Get(keyOf("AddonDelivery", k.Namespace, delivery)) != nil {
		return false
	}
	return w.told(c, &workload{addon: apiserver.Label(o, hubv1.AddonLabel), owner: k.String()}, "Flux goes on with it")
}

// said returns what a set's delivery to a cluster says of an add-on.
func (w *World) said(s *set, c *cluster, addon string) string {
	for _, d := range w.deliveries() {
		if d.SetKey().String() == s.namespace+"/"+s.name && d.Spec.RegistrationRef.Key().String() == c.namespace+"/"+c.name {
			return ": " + messageOf(d, addon)
		}
	}
	return ""
}

// runs returns whether an add-on's workload is on a cluster, with an existing owner.
func (w *World) runs(c *cluster, s *set, addon string) bool {
	for _, work := range w.there(c).workloads {
		if work.addon == addon && w.scope(work.namespace()) == w.scope(s.namespace) && w.lives(work.ownerUID) {
			return true
		}
	}
	return false
}

// taken returns whether somebody else's wanted add-on has the very Helm release that an add-on would bring: a renamed
// add-on goes on with the release that it had, and two cannot share it.
func (w *World) taken(c *cluster, cl claim) bool {
	a := cl.addon
	for _, work := range w.there(c).workloads {
		if w.scope(work.namespace()) != w.scope(cl.set.namespace) {
			continue // it is in a namespace of its own
		}
		called := a.name
		if a.movedFrom != "" {
			called = path.Base(a.movedFrom) // by which it had its release
		}
		same := a.form == "helm" && a.fits(work) || a.form != "kustomization" &&
			work.name == releaseName(called, cmp.Or(a.release, called)) // whatever its chart
		if same && strings.HasPrefix(work.name, "helm:") && work.addon != a.name && w.lives(work.ownerUID) && w.wanted(c, work) {
			return true
		}
	}
	return false
}

// checkLeft: what runs on a cluster without an owner has been reported, unless somebody past the policies has deleted its Flux object.
func (w *World) checkLeft() {
	for _, c := range w.clusters {
		if c.gone {
			continue
		}
		for _, name := range sortedKeys(c.workloads) {
			work := c.workloads[name]
			if !w.lives(work.ownerUID) && !w.deleted[work.ownerUID] && !w.told(c, work) {
				w.violated("orphans", "%s stays on %s without an owner (add-on %s of %s), and nothing says so", name, c.name, work.addon, work.set)
			}
			by := cmp.Or(w.registrationOf(w.object(work.ownerUID)), c) // another one of the cluster may have an origin that is missing
			if w.lives(work.ownerUID) && !w.wantedThere(c, work) && w.serves(by) && !w.unnoted(work) && !w.leftLate(work) &&
				!w.told(c, work, "Flux goes on with it") && !w.some(c, func(r *cluster) bool { return w.staysAnyway(r, work) }) {
				w.violated("convergence", "%s is still delivered to %s, and nobody wants it", name, c.name)
			}
		}
	}
}

// leftLate returns whether a Flux object arrived late, from a former process, and its delivery had gone before. Nobody asked for its
// removal, so it stays, and chandler doctor names it (FluxObjectsLeft).
func (w *World) leftLate(work *workload) bool {
	o := w.object(work.ownerUID)
	if o == nil || !w.madeLate[work.ownerUID] {
		return false
	}
	namespace, _ := nested(o, "metadata", "namespace").(string)
	name, _ := nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation).(string)
	return w.server.Get(keyOf("AddonDelivery", namespace, name)) == nil
}

// unnoted returns whether an existing Kustomization has no record of an object: it failed after it had applied the
// object, and applies something else now. kustomize-controller leaves it so (kustomization_controller.go:489-507),
// and the hub does not see what is in an add-on's folder.
func (w *World) unnoted(work *workload) bool {
	for k := range w.flux.due {
		if o := w.server.Get(k); k.Kind == "Kustomization" && nested(o, "metadata", "uid") == work.ownerUID {
			entries, _ := nested(o, "status", "inventory", "entries").([]any)
			return len(entries) > 0 && !slices.ContainsFunc(entries, func(e any) bool { return nested(e, "id") == inventoryID(work.name) })
		}
	}
	return false
}

// has returns whether a workload's set has its add-on, if only another set did not have one of that name.
func (w *World) has(work *workload) bool {
	_, name, _ := strings.Cut(work.set, "/")
	return w.sets[name] != nil && w.sets[name].addon(work.addon) != nil
}

// frozen returns whether a set's delivery to a cluster is of an older epoch: existing objects stay until the set
// changes, whatever is excluded, and whoever else wants their names.
func (w *World) frozen(c *cluster, set string) bool {
	return slices.ContainsFunc(w.deliveries(), func(d *hubv1.AddonDelivery) bool {
		return d.SetKey().String() == set && d.Spec.RegistrationRef.Name == c.name &&
			!strings.HasSuffix(d.Spec.RevisionName, fmt.Sprintf("-e%d", render.Epoch))
	})
}

// told returns whether an event or a status names an add-on as left on a cluster, with these words, if there are any.
func (w *World) told(c *cluster, work *workload, words ...string) bool {
	return slices.ContainsFunc(append(slices.Clone(c.led), c), func(r *cluster) bool { return w.toldBy(r, work, words...) })
}

// toldBy returns whether that is reported for what was delivered through a registration.
func (w *World) toldBy(c *cluster, work *workload, words ...string) bool {
	says := func(text string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	}
	// What was on its way to another name is an orphan of that name, and the Flux object is named that it had last.
	names := func(text string) bool {
		return strings.Contains(text, fmt.Sprintf("%q", work.addon)) || strings.Contains(text, work.owner) ||
			strings.Contains(text, fmt.Sprintf("%q", w.nowCalled(work)))
	}
	for _, e := range w.events {
		if e.reason == hubv1.AddonOrphanedEvent && names(e.words) && strings.Contains(e.words, c.namespace+"/"+c.name) && says(e.words) {
			return true
		}
	}
	lists := func(orphans []hubv1.Orphan) bool {
		return slices.ContainsFunc(orphans, func(o hubv1.Orphan) bool {
			named := o.Addon == work.addon || o.Addon == w.nowCalled(work) || names(o.Message)
			return o.Cluster == c.namespace+"/"+c.name && named && says(o.Message)
		})
	}
	if reg := w.registered(c); reg != nil && lists(reg.Status.Orphans) {
		return true
	}
	// A hub that was killed between a status and its event sends no event: what outlives the registration is the set's status.
	for _, o := range w.server.List(kinds["AddonSet"].GroupKind(), "") {
		if lists(typed(w, o, &hubv1.AddonSet{}).Status.Orphans) {
			return true
		}
	}
	return false
}

// checkKubeconfigs: a kubeconfig copy is as new as its source.
func (w *World) checkKubeconfigs() {
	for _, o := range w.server.List(kinds["Secret"].GroupKind(), "") {
		if label := apiserver.Label(o, hubv1.CopyLabel); label == "" || label == identity.ValuesCopy {
			continue
		}
		key, _ := index.Registration(fmt.Sprint(nested(o, "metadata", "annotations", hubv1.RegistrationAnnotation)))
		c := w.cluster(key.Name)
		if c == nil || !w.serves(c) || w.nobodyKeeps(c, o) {
			continue
		}
		if w.unserved(c) && w.teamOf(nested(o, "metadata", "namespace").(string)) != nil {
			continue // nothing is delivered through it, and its token is not renewed
		}
		raw, _ := base64.StdEncoding.DecodeString(nested(o, "data", "value").(string))
		if to, who, err := w.reach(string(raw)); err != nil || to != w.there(c) || who != w.teamOf(nested(o, "metadata", "namespace").(string)) {
			w.violated("kubeconfigs", "the kubeconfig copy %v/%v does not hold the kubeconfig that %s accepts", nested(o, "metadata", "namespace"),
				nested(o, "metadata", "name"), c.name)
		}
	}
}
