// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// strategies are the spec.rollout that scripts name.
var strategies = map[string]*hubv1.Rollout{
	"canary": {
		Waves: []hubv1.Wave{
			{Name: "canary", ClusterSelector: canaries, Soak: lasts(halfAnHour)},
			{Name: "half", Size: amount("50%"), MaxConcurrency: amount("1"), Soak: lasts(5 * time.Minute)},
		},
		Deadline: lasts(20 * time.Minute),
	},
	"approved": {
		Waves:     []hubv1.Wave{{Name: "canary", ClusterSelector: canaries, Soak: lasts(10 * time.Minute), Approval: hubv1.ManualApproval}},
		OnFailure: hubv1.RollbackOnFailure,
	},
	"sizes": {
		Waves: []hubv1.Wave{
			{Name: "some", Size: amount("2"), MaxConcurrency: amount("1"), Soak: lasts(10 * time.Minute)},
			{Name: "more", Size: amount("50%"), MaxConcurrency: amount("2"), MaxFailures: amount("1"), Approval: hubv1.ManualApproval},
		},
		Deadline: lasts(10 * time.Minute), OnFailure: hubv1.RollbackOnFailure,
	},
	"usual":   nil, // the set says nothing
	"unnamed": {OnFailure: hubv1.RollbackOnFailure},
	"evenhours": {
		Waves:   []hubv1.Wave{{Name: "early", Size: amount("1"), Soak: lasts(10 * time.Minute)}, {Name: "late", MaxConcurrency: amount("2")}},
		Windows: []hubv1.RolloutWindow{{Schedule: "0 */2 * * *", Duration: metav1.Duration{Duration: halfAnHour}}},
	},
	"single": {Waves: []hubv1.Wave{{Name: "all", MaxConcurrency: amount("1"), MaxFailures: amount("1")}}},
}

const halfAnHour = 30 * time.Minute

var canaries = &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}}

func lasts(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func amount(text string) *intstr.IntOrString {
	a := intstr.Parse(text)
	return &a
}

// staging returns the part of a set's spec that says how a revision reaches its clusters.
func (s *set) staging(spec apiserver.Object) {
	switch of := strategies[s.rollout]; {
	case s.rollout == "":
		spec["rollout"] = apiserver.Object{"strategy": string(hubv1.AllAtOnceStrategy)}
	case of != nil:
		block, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
		must(err)
		spec["rollout"] = block
	}
	if s.held != "" {
		spec["pause"] = apiserver.Object{"reason": "a freeze"}
		if s.held != "-" {
			spec["pause"].(map[string]any)["until"] = s.held
		}
	}
}

// bad says how a version of an add-on misbehaves: it fails on some clusters, or takes its time.
type bad struct {
	// on are the clusters where it fails; "all" for each.
	on []string
	// takes is how long it takes to be Ready.
	takes time.Duration
	// since is when a Flux object was first seen with it.
	since map[string]time.Time
}

// misbehaves has a Flux object not be Ready if its version is a bad one, and returns whether it is.
func (f *flux) misbehaves(w *World, k apiserver.Key, obj runtime.Object, c *cluster, addon, version string) (failed, yes bool) {
	b := w.bad[addon+" "+version]
	if b == nil {
		return false, false
	}
	if slices.Contains(b.on, c.name) || slices.Contains(b.on, "all") {
		w.report(k, obj, metav1.ConditionFalse, "UpgradeFailed", "timeout waiting for: [Deployment/x]")
		return true, true
	}
	since, seen := b.since[k.String()]
	if !seen {
		since = w.clock.Now()
		b.since[k.String()] = since
	}
	if w.clock.Now().Sub(since) >= b.takes {
		return false, false
	}
	w.report(k, obj, metav1.ConditionUnknown, "Progressing", "Running 'upgrade' action with timeout of 5m0s")
	return true, true
}

// rolloutVerbs are the steps about rollouts.
func rolloutVerbs() map[string]verb {
	return map[string]verb{
		"rollout": ofSet("STRATEGY|-", 1, func(w *World, s *set, f []string) {
			s.rollout = strings.TrimPrefix(f[0], "-")
			w.write(s)
		}),
		"hold": ofSet("DURATION|-", 1, func(w *World, s *set, f []string) {
			s.held = f[0]
			if d, err := time.ParseDuration(f[0]); err == nil {
				s.held = w.clock.Now().Add(d).UTC().Format(time.RFC3339)
			}
			w.write(s)
		}),
		"unhold": ofSet("", 0, func(w *World, s *set, _ []string) {
			s.held = ""
			w.write(s)
		}),
		"approve-wave": ofSet("WAVE", 1, func(w *World, s *set, f []string) { w.order(s, hubv1.ApproveAnnotation, rollout.Approval, f[0]) }),
		"expedite":     ofSet("", 0, func(w *World, s *set, _ []string) { w.order(s, hubv1.ExpediteAnnotation, rollout.Expedition, "now") }),
		"retry": ofSet("", 0, func(w *World, s *set, _ []string) {
			w.order(s, hubv1.RetryAnnotation, rollout.Retrial, fmt.Sprint(w.seq))
		}),
		"undo": ofSet("[now|-]", 0, func(w *World, s *set, f []string) { w.undo(s, strings.Join(f, " ")) }),
		"spoil": {"ADDON VERSION CLUSTER|all...", 3, func(w *World, f []string) string {
			w.bad[f[0]+" "+f[1]] = &bad{on: f[2:], since: map[string]time.Time{}}
			return ""
		}},
		"slow": {"ADDON VERSION DURATION", 3, func(w *World, f []string) string {
			d, err := time.ParseDuration(f[2])
			if err != nil {
				return err.Error()
			}
			w.bad[f[0]+" "+f[1]] = &bad{takes: d, since: map[string]time.Time{}}
			return ""
		}},
		"unspoil": {"ADDON VERSION", 2, func(w *World, f []string) string { delete(w.bad, f[0]+" "+f[1]); return "" }},
	}
}

// order writes an annotation of a set that is about its newest revision, as far as its author can see.
func (w *World) order(s *set, annotation string, value func(revision, what string) string, what string) {
	if o := w.server.Get(s.key()); o != nil {
		if revision := typed(w, o, &hubv1.AddonSet{}).Status.Revision; revision != "" {
			w.patch(s.key(), `{"metadata":{"annotations":{%q:%q}}}`, annotation, value(revision, what))
		}
	}
}

// undo goes back from a set's newest revision to the one that was made before it; with "-" it takes that back.
func (w *World) undo(s *set, how string) {
	o := w.server.Get(s.key())
	if o == nil || how == "-" {
		w.patch(s.key(), `{"metadata":{"annotations":{%q:null}}}`, hubv1.UndoAnnotation)
		return
	}
	newest, to, last := typed(w, o, &hubv1.AddonSet{}).Status.Revision, "", int64(0)
	for _, r := range w.server.List(kinds["ControllerRevision"].GroupKind(), s.namespace) {
		name, _ := nested(r, "metadata", "name").(string)
		number, _ := nested(r, "revision").(int64)
		if apiserver.Labels(r)[hubv1.AddonSetLabel] == s.name && !identity.SameContent(name, newest) && number > last {
			to, last = name, number
		}
	}
	if newest != "" && to != "" {
		w.patch(s.key(), `{"metadata":{"annotations":{%q:%q}}}`, hubv1.UndoAnnotation, rollout.Undoing(newest, to, how == "now"))
	}
}

// staged are the sets that exist and have waves, in a fixed order.
func (w *World) staged() []*set {
	var out []*set
	for _, name := range sortedKeys(w.sets) {
		if s := w.sets[name]; s.rollout != "" && !s.deleted && w.server.Get(s.key()) != nil {
			out = append(out, s)
		}
	}
	return out
}

// rolled are the sets that exist and have, or have had, waves, in a fixed order. A revision that failed in a wave stays where it is if
// the waves are taken away.
func (w *World) rolled() []*set {
	var out []*set
	for _, name := range sortedKeys(w.sets) {
		if s := w.sets[name]; w.rolls[s.key()] != nil && !s.deleted && w.server.Get(s.key()) != nil {
			out = append(out, s)
		}
	}
	return out
}

// release has nothing hold a rollout any more but what failed and what somebody has undone.
func (w *World) release() {
	clear(w.bad)
	for _, name := range sortedKeys(w.sets) {
		if s := w.sets[name]; s.held != "" && !s.deleted {
			s.held = ""
			w.write(s)
		}
	}
}

// settleRollouts has all rollouts finish: first as they are, and then those that failed or were undone as well.
func (w *World) settleRollouts() {
	if len(w.rolled()) == 0 {
		return
	}
	w.approveWaves()
	w.wait(3 * time.Hour)
	w.checkRolledOut(true)
	for range 3 {
		if len(w.violations) > 0 {
			return
		}
		for _, s := range w.rolled() {
			w.undo(s, "-")
			if there := typed(w, w.server.Get(s.key()), &hubv1.AddonSet{}); failedRevision(there, there.Status.Revision) {
				w.order(s, hubv1.RetryAnnotation, rollout.Retrial, fmt.Sprint("end-", w.seq))
			}
		}
		w.approveWaves()
		w.wait(2 * time.Hour)
	}
	w.checkRolledOut(false)
}

// approveWaves approves each wave of each set's newest revision, and ends its soaks.
func (w *World) approveWaves() {
	for _, s := range w.rolled() {
		all := func(revision, _ string) string {
			var waves []string
			if of := strategies[s.rollout]; of != nil {
				for _, wave := range of.Waves {
					waves = append(waves, rollout.Approval(revision, wave.Name))
				}
			}
			return strings.Join(waves, ",")
		}
		w.order(s, hubv1.ApproveAnnotation, all, "")
		w.order(s, hubv1.ExpediteAnnotation, rollout.Expedition, "the end")
	}
}

func failedRevision(set *hubv1.AddonSet, revision string) bool {
	return set.Status.Rollout != nil && slices.ContainsFunc(set.Status.Rollout.FailedRevisions, func(r string) bool {
		return identity.SameContent(r, revision)
	})
}

// failsOnGone returns whether a set's newest revision has failed, and the set delivers to a cluster that was destroyed, since nothing has
// told the hub so. It may have been destroyed as it got the revision, which is not Ready there however often it is tried: that may have cut
// it off.
func (w *World) failsOnGone(s *set, there *hubv1.AddonSet) bool {
	return failedRevision(there, there.Status.Revision) && slices.ContainsFunc(w.clusters, func(c *cluster) bool {
		return w.there(c).gone && w.deliveryOf(s, c.registration()) != nil
	})
}

// waitsForGood returns whether a cluster has nothing of a set whose newest revision failed on a cluster that is gone: nobody mends that.
func (w *World) waitsForGood(s *set, c *cluster) bool {
	o := w.server.Get(s.key())
	return w.rolls[s.key()] != nil && o != nil && w.deliveryOf(s, c.registration()) == nil && w.failsOnGone(s, typed(w, o, &hubv1.AddonSet{}))
}

// checkRolledOut: each cluster has its set's revision. Some may have an older one if that failed or was undone.
func (w *World) checkRolledOut(older bool) {
	for _, s := range w.rolled() {
		set := typed(w, w.server.Get(s.key()), &hubv1.AddonSet{})
		newest := set.Status.Revision
		r := w.rolls[s.key()]
		excused := older && (r.barred[content(newest)] || set.Annotations[hubv1.UndoAnnotation] != "") ||
			w.failsOnGone(s, set)
		for _, c := range w.clusters {
			if excused || !w.serves(c) || !w.selects(s, c) || w.unserved(c) {
				continue
			}
			d := w.deliveryOf(s, c.registration())
			if d == nil {
				w.violated("rollout", "%s has no delivery of %s", c.name, s.name)
			} else if d.Spec.RevisionName != newest {
				w.violated("rollout", "%s has %s of %s at rest, and nothing keeps %s from it; the set says: %s", c.name, d.Spec.RevisionName, s.name,
					newest, set.Status.Rollout.WaitingFor)
			}
		}
	}
}

// deliveryOf returns a set's delivery to the cluster of a registration; nil if there is none.
func (w *World) deliveryOf(s *set, registration apiserver.Key) *hubv1.AddonDelivery {
	of := types.NamespacedName{Namespace: registration.Namespace, Name: registration.Name}
	o := w.server.Get(keyOf("AddonDelivery", s.namespace, identity.Delivery(s.name, of)))
	if o == nil {
		return nil
	}
	return typed(w, o, &hubv1.AddonDelivery{})
}

// rollout draws what somebody does with a set that has waves, and with its clusters.
func (d *draw) rollout() string {
	addon, version := d.one("core", "core", "edge"), "1."+d.number(4)+".0"
	c := d.cluster()
	switch d.IntN(30) {
	case 0, 1, 2, 3, 4, 5:
		return "version staged " + addon + " " + version
	case 6, 7:
		return "spoil " + addon + " " + version + " " + d.one("all", c, c)
	case 8, 9:
		return "slow " + addon + " " + version + " " + d.one("2m", "8m", "15m")
	case 10:
		return "unspoil " + addon + " " + version
	case 11, 12, 13:
		return "approve-wave staged " + d.one("canary", "more")
	case 14:
		return "expedite staged"
	case 15, 16:
		return "retry staged"
	case 17, 18:
		return "undo staged " + d.one("now", "waves", "waves", "-")
	case 19:
		return "hold staged " + d.one("10m", "-")
	case 20:
		return "unhold staged"
	case 21:
		return "rollout staged " + d.one("canary", "approved", "sizes", "single", "evenhours", "usual", "unnamed", "-")
	case 22:
		return "label " + c + " ring " + d.one("canary", "-")
	case 23:
		return "label " + c + " tier " + d.one("prod", "prod", "test")
	case 24:
		return d.one("down ", "up ", "up ", "pause ", "unpause ") + c
	case 25:
		return d.one("delete AddonSet flux-system staged", "delete-all AddonDelivery flux-system", "reapply staged", "reapply staged")
	case 26:
		return d.one("break ", "mend ", "mend ") + addon
	case 27:
		return fmt.Sprintf("apierror %d %s", 1+d.IntN(8), d.one("before", "after"))
	}
	return "wait " + d.one("2m", "12m", "35m", "40m")
}

// excusedFrom returns whether nobody waits for a cluster: somebody holds something back there, or it does not answer.
func excusedFrom(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration) bool {
	if reason := status.Reason(reg, hubv1.SuspendedCondition); reason != "" && !hubv1.Tripped(reason) {
		return true
	}
	switch status.Reason(d, hubv1.ReadyCondition) {
	case hubv1.DuplicateReason, hubv1.AddonsLostReason, hubv1.OriginMissingReason:
		return true
	}
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		return slices.Contains([]hubv1.AddonState{hubv1.AddonHeld, hubv1.AddonSuspended, hubv1.AddonPaused, hubv1.AddonWaitingForNodes}, a.State)
	})
}
