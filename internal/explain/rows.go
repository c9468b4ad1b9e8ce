// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/status"
)

// rows returns all add-ons: first those of sets that are on the cluster, in the order of their authors.
func (e *explainer) rows() []Row {
	var here, elsewhere []Row
	for _, s := range e.sets {
		if s.delivery == nil && !s.selects(e.Registration) {
			elsewhere = append(elsewhere, e.absent(s, ""))
			continue
		}
		if r, ok := e.trouble(s); ok {
			here = append(here, r)
		}
		for _, name := range s.known() {
			here = append(here, e.row(s, name))
		}
	}
	return append(append(here, elsewhere...), e.strangers...)
}

// absent returns why a set has no delivery to this cluster.
func (e *explainer) absent(s *set, addon string) Row {
	r := Row{Addon: addon, Set: s.String(), State: NotSelected}
	switch {
	case s.selector != nil && s.selector.Why(e.Registration) != "":
		r.Why = excerpt.Line(s.selector.Why(e.Registration))
	case s.invalid != nil:
		r.State, r.Why = NotCompiled, first(s.invalid)
	case s.object.DeletionTimestamp != nil:
		r.Why = "the set is being deleted"
	}
	return r
}

// held are the reasons of a delivery that cannot be rendered as a whole: its add-ons stay as they are.
var held = []string{hubv1.RevisionNotFoundReason, hubv1.InvalidSpecReason, hubv1.RenderFailedReason, hubv1.FactUnknownReason,
	hubv1.OriginMissingReason, hubv1.ReadFailedReason, hubv1.RegistrationNotFoundReason}

// trouble returns the problem of a whole set that is on the cluster.
func (e *explainer) trouble(s *set) (Row, bool) {
	r := Row{Set: s.String()}
	say := func(state hubv1.AddonState, why string) (Row, bool) {
		r.State, r.Why = state, excerpt.Line(why)
		return r, true
	}
	switch {
	case s.leaving:
		return say(hubv1.AddonRemoving, "the set is being withdrawn from the cluster")
	case s.delivery != nil && s.delivery.DeletionTimestamp != nil:
		return say(Deleted,
			"AddonDelivery "+s.delivery.Namespace+"/"+s.delivery.Name+" was deleted, and not by its set: nothing is uninstalled. "+
				"It is made again, or, where its set does not want it any more, stays until the set withdraws it")
	case s.delivery != nil && e.refused(s) != "":
		return say(hubv1.AddonState(cmp.Or(s.standing.Reason, hubv1.DuplicateReason)), e.refused(s))
	case s.invalid != nil:
		return say(NotCompiled, "what is delivered stays as it is: "+first(s.invalid))
	case s.delivery == nil:
		return r, false
	}
	if c := status.Find(s.delivery, hubv1.RemovalsHeldCondition); c != nil {
		return say(hubv1.AddonHeld, c.Message)
	}
	if !s.told && !s.selects(e.Registration) {
		if s.object.Status.HeldRemovals != nil {
			return say(hubv1.AddonHeld, guard.MessageHere(s.object, guard.WholeSet))
		}
		return say(hubv1.AddonRemoving, "the set is to leave the cluster, and the hub has not withdrawn it yet")
	}
	switch c := status.Find(s.delivery, hubv1.ReadyCondition); {
	case s.isHeld():
		return say(hubv1.AddonState(c.Reason), c.Message)
	case s.frozen:
		return say(hubv1.FrozenReason,
			"an older version of the hub made the revision: what is there stays as it is until its turn in the rollout, and what is missing is made")
	}
	return r, false
}

// isHeld returns whether the hub reports that the whole delivery cannot be rendered. A single add-on may have the
// same reason.
func (s *set) isHeld() bool {
	c := status.Find(s.delivery, hubv1.ReadyCondition)
	return c != nil && slices.Contains(held, c.Reason) &&
		!slices.ContainsFunc(s.delivery.Status.Addons, func(a hubv1.AddonStatus) bool { return a.Reason == c.Reason })
}

// known returns the names of all add-ons that the set has on the cluster, and of those that are still being removed.
func (s *set) known() []string {
	names := s.addons()
	if s.delivery == nil {
		return names
	}
	if s.leaving {
		names = nil
	}
	order := func(name string) int {
		at := slices.Index(names, name)
		if base, ok := strings.CutSuffix(name, compile.CRDSuffix); at < 0 && ok {
			at = slices.Index(names, base)
		}
		if at < 0 {
			return len(names)
		}
		return at
	}
	out := slices.Clone(names)
	for _, a := range s.delivery.Status.Addons {
		if !slices.Contains(out, a.Name) {
			out = append(out, a.Name)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(len(b), len(a))) })
	return out
}

// row returns the state of an add-on of a set that is on the cluster.
func (e *explainer) row(s *set, name string) Row {
	r := Row{Addon: name, Set: s.String(), State: Pending}
	a := s.status(name)
	switch {
	case a != nil:
		r.State, r.Version, r.Why = a.State, excerpt.Line(a.Version), excerpt.Line(a.Message)
		if a.Since != nil {
			r.Since = &a.Since.Time
		}
	case status.Goes(e.Registration):
		r.Why = "the registration is being deleted"
	case s.delivery == nil && e.waitsForWave(s):
		r.Why = "waits for its wave: chandler rollout status " + s.String()
	case s.delivery == nil:
		r.Why = "the set selects the cluster, and the hub has not made an AddonDelivery yet"
	case s.program != nil && s.addon(name) == nil && s.invalid != nil:
		r.Why = "it is new in the set, which does not compile"
	case s.program != nil && s.addon(name) == nil:
		r.Why = "it is new in the set, and the cluster still has an older revision"
	case s.delivery != nil && e.refused(s) != "":
		r.Why = "nothing of the set is delivered here"
	case s.isHeld():
		r.Why = "the set cannot be rendered for this cluster"
	default:
		r.Why = "the hub has not reported on it yet"
	}
	return r
}

// waitsForWave returns whether the hub has said that the set's rollout has not come to the cluster.
func (e *explainer) waitsForWave(s *set) bool {
	return slices.Contains(e.Registration.Status.Sets, hubv1.SetResult{Name: s.String(), Result: hubv1.SetWaits})
}

// header describes the cluster.
func (e *explainer) header() []Line {
	reg := e.Registration
	if e.Unread {
		return []Line{{"Cluster", e.cluster()}, {"Registration", "you may not read it; its AddonDeliveries say what follows"}}
	}
	lines := []Line{{"Cluster", e.cluster()}, {"Origin", e.originText()}}
	add := func(name, text string) { lines = append(lines, Line{name, excerpt.Line(text)}) }
	add("Provider", cmp.Or(reg.Status.Provider, "unknown"))
	add("Kubernetes", cmp.Or(reg.Status.KubernetesVersion, "unknown"))
	nodes := "unknown"
	if reg.Status.Nodes != nil {
		nodes = fmt.Sprint(*reg.Status.Nodes)
	}
	add("Nodes", nodes)
	if status.Goes(reg) {
		add("Deleted", "being unregistered for "+page.Since(&reg.DeletionTimestamp.Time, e.Now))
	}
	for _, typ := range []string{hubv1.ReadyCondition, hubv1.ReachableCondition, hubv1.KubeConfigValidCondition,
		hubv1.UnregisteringCondition} {
		c := status.Find(reg, typ)
		switch {
		case c == nil && (typ == hubv1.ReadyCondition || typ == hubv1.ReachableCondition):
			add(typ, "Unknown: the hub has not looked at it yet")
		case c == nil, typ == hubv1.KubeConfigValidCondition && c.Status == metav1.ConditionTrue:
		default:
			add(typ, condition(c))
		}
	}
	add("Credential", e.credential())
	return lines
}

func condition(c *metav1.Condition) string {
	text := fmt.Sprintf("%s (%s)", c.Status, c.Reason)
	if c.Message != "" {
		text += ": " + c.Message
	}
	return excerpt.Line(text)
}

func (e *explainer) originText() string {
	ref := e.Registration.Spec.OriginRef
	if ref == nil {
		return "none; the registration was written by hand"
	}
	text := sprintf("%s %s/%s", ref.Kind, e.Registration.Namespace, ref.Name)
	if e.Origin == nil && e.NoOrigin != "" {
		text += ", " + excerpt.Line(e.NoOrigin)
	}
	return text
}

func (e *explainer) credential() string {
	c := e.Registration.Status.Credential
	if c == nil {
		return "none yet"
	}
	if c.WorkloadIdentity != "" {
		return "none stored: workload identity of provider " + c.WorkloadIdentity
	}
	text := fmt.Sprintf("Secret %s/%s, key %s", e.Registration.Namespace, c.SecretName, c.Key)
	switch {
	case c.ExpirationTime == nil:
		return text + ", which does not say when it expires"
	case !e.Now.Before(c.ExpirationTime.Time):
		return text + ", expired since " + c.ExpirationTime.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, expires in %s (%s)", text, status.ExpiresIn(c.ExpirationTime.Time, e.Now),
		c.ExpirationTime.UTC().Format(time.RFC3339))
}
