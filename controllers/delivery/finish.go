// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// finish reports on every delivery and lets those go that are done. It returns when to look again by time alone.
func (r *Reconciler) finish(ctx context.Context, c *cluster, steps []plan.Step, outcomes map[plan.Key]outcome) (time.Duration, error) {
	var errs []error
	again := false
	for _, d := range c.deliveries {
		r.report(c, d, steps, outcomes)
		again = again || d.Status.ReadyRevision != d.before.Status.ReadyRevision || d.tookOver()
		if err := apply.Status(ctx, r.Client, d.before, d.AddonDelivery); err != nil {
			errs = append(errs, err)
			continue
		}
		r.tell(d)
		if d.DeletionTimestamp != nil && len(d.Status.Addons) == 0 {
			errs = append(errs, r.release(ctx, c, d))
		}
	}
	after := c.wait(steps, r.Clock.Now(), r.Config)
	if again && (after == 0 || after > soon) {
		after = soon // what was written now opens the way for something else on this cluster
	}
	return after, errors.Join(errs...)
}

// soon is when to look again after something that no event tells of.
const soon = 100 * time.Millisecond

// tookOver returns whether a release to take over has been recorded just now.
func (d *delivery) tookOver() bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		before := d.addon(a.Name)
		return a.Release != nil && (before == nil || before.Release == nil || *before.Release != *a.Release)
	})
}

// report fills the status of one delivery, in memory.
func (r *Reconciler) report(c *cluster, d *delivery, steps []plan.Step, outcomes map[plan.Key]outcome) {
	now := metav1.NewTime(r.Clock.Now())
	addons := r.heldAddons(c, d)
	for _, s := range steps {
		if a, ok := r.addonStatus(c, d, s, outcomes[s.Key]); ok {
			addons = append(addons, a)
		}
	}
	for name, why := range d.Lost {
		addons = append(addons, hubv1.AddonStatus{Name: name, State: hubv1.AddonLostTo, Message: why})
	}
	for name, why := range d.NotOwned {
		addons = append(addons, hubv1.AddonStatus{Name: name, State: hubv1.AddonNotOwned, Message: why})
	}
	if d.result != nil {
		for name, why := range d.result.Excluded {
			addons = append(addons, hubv1.AddonStatus{Name: name, State: hubv1.AddonExcluded, Message: why})
		}
	}
	held := d.DeletionTimestamp == nil && d.result == nil
	slices.SortStableFunc(addons, func(a, b hubv1.AddonStatus) int { return compareNames(a.Name, b.Name) })
	// An add-on that changes its form has two steps, and one entry: what still has to go is the news.
	addons = slices.CompactFunc(addons, func(a, b hubv1.AddonStatus) bool { return a.Name == b.Name })
	for i := range addons {
		addons[i].Since = &now
		if was := d.addon(addons[i].Name); was != nil && was.State == addons[i].State && was.Since != nil {
			addons[i].Since = was.Since
		}
	}
	d.Status.Addons = addons
	d.Status.AddonCounts = count(addons)
	out := r.outcome(c, d)
	if out.Phase == status.Done && !held && d.Status.ReadyRevision != d.Spec.RevisionName {
		d.Status.ReadyRevision, d.Status.ReadyTime = d.Spec.RevisionName, &now
	}
	if !held && d.DeletionTimestamp == nil && written(addons, steps, d.Namespace) {
		d.Status.ObservedRevision = d.Spec.RevisionName
	}
	status.Summarize(d.AddonDelivery, out, r.Clock.Now())
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// heldAddons reports the add-ons that cannot be rendered: what is there of them stays, and is told of all the same.
func (r *Reconciler) heldAddons(c *cluster, d *delivery) []hubv1.AddonStatus {
	if d.DeletionTimestamp != nil {
		return nil
	}
	var out []hubv1.AddonStatus
	for k, o := range c.objects {
		if k.Namespace != d.Namespace || o.delivery != d.Name || !d.holds(o.Addon) {
			continue
		}
		a := hubv1.AddonStatus{Name: o.Addon, Kind: k.Kind, Object: k.Name, Version: o.state.Version, AppliedGeneration: o.Applied}
		a.State, a.Message = fluxstate.Addon(was(d, o.Addon), o.state, o.Applied)
		out = append(out, a)
	}
	if d.result == nil {
		return out
	}
	for name, errs := range d.result.Failed {
		i := slices.IndexFunc(out, func(a hubv1.AddonStatus) bool { return a.Name == name })
		if i < 0 {
			out, i = append(out, hubv1.AddonStatus{Name: name}), len(out)
		}
		out[i].State, out[i].Reason, out[i].Message = hubv1.AddonFailed, hubv1.RenderFailedReason, shorten(withoutName(errs))
	}
	return out
}

// withoutName leaves out the add-on's name, which the status says already.
func withoutName(errs render.Errors) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		e.Addon = ""
		lines[i] = e.Error()
	}
	return strings.Join(lines, "; ")
}

// maxMessage bounds what is said about one add-on.
const maxMessage = 500

func shorten(s string) string {
	if r := []rune(s); len(r) > maxMessage {
		return string(r[:maxMessage-1]) + "…"
	}
	return s
}

func was(d *delivery, addon string) hubv1.AddonStatus {
	if s := d.addon(addon); s != nil {
		return *s
	}
	return hubv1.AddonStatus{}
}

// addonStatus says where the add-on of one step stands; false if the step is another delivery's.
func (r *Reconciler) addonStatus(c *cluster, d *delivery, s plan.Step, out outcome) (hubv1.AddonStatus, bool) {
	o := c.objects[s.Key]
	a := hubv1.AddonStatus{Name: s.Addon, Kind: s.Key.Kind, Object: s.Key.Name, AppliedGeneration: out.applied, Message: s.Reason}
	if s.Leaving() {
		mine := o.delivery == d.Name && s.Key.Namespace == d.Namespace && !o.Foreign
		a.State = hubv1.AddonRemoving
		if out.err != nil {
			a.Message = out.err.Error()
		} else if a.Message == "" {
			a.Message = "Flux is uninstalling it"
		}
		return a, mine
	}
	by, w := c.wanted(s.Key)
	if by != d {
		return a, false
	}
	if !w.DefaultRelease && w.Kind == fluxspec.HelmReleaseKind {
		a.Release = &w.Release
	}
	if o != nil {
		a.Version = o.state.Version
	}
	switch {
	case errors.Is(out.err, apply.ErrNotOwned):
		a.State, a.Message = hubv1.AddonNotOwned, out.err.Error()+"; it is left alone. Rename the add-on, or remove that object"
	case errors.Is(out.err, errNoMirror):
		a.State, a.Message = hubv1.AddonWaitingForCluster, out.err.Error()
	case out.err != nil:
		a.State, a.Message = hubv1.AddonFailed, out.err.Error()
		if o != nil {
			a.AppliedGeneration = o.Applied
		}
	case s.Verb == plan.AwaitCluster:
		a.State = hubv1.AddonWaitingForCluster
	case s.Verb == plan.AwaitDependency:
		a.State = hubv1.AddonWaitingForDependency
		if o != nil {
			a.AppliedGeneration = o.Applied
		}
	case s.Verb == plan.AwaitRemoval || o == nil:
		a.State = hubv1.AddonProgressing
	default:
		a.State, a.Message = fluxstate.Addon(was(d, s.Addon), o.state, out.applied)
		c.explainState(&a, o.state)
	}
	return a, true
}

// explainState says more about an add-on that is not Ready, where more is known.
func (c *cluster) explainState(a *hubv1.AddonStatus, s fluxstate.State) {
	if reason, remedy := fluxstate.Reason(s); reason != "" && a.State == hubv1.AddonFailed {
		a.Reason, a.Message = reason, remedy
		return
	}
	if n := c.registration.Status.Nodes; n != nil && *n == 0 && fluxstate.WaitsForNodes(a.State, s) {
		message := "the cluster has no node yet"
		if a.Message != "" {
			message += "; Flux says: " + a.Message
		}
		a.State, a.Message = hubv1.AddonWaitingForNodes, message
	}
}

// count counts the add-ons of a delivery. One that another set delivers is not counted here: it is counted there.
func count(addons []hubv1.AddonStatus) *hubv1.ObjectCounts {
	var c hubv1.ObjectCounts
	for _, a := range addons {
		switch a.State {
		case hubv1.AddonLostTo, hubv1.AddonExcluded, hubv1.AddonRemoving, hubv1.AddonOrphaned:
			continue
		case hubv1.AddonReady:
			c.Ready++
		case hubv1.AddonFailed, hubv1.AddonNotOwned:
			c.Failed++
		}
		c.Total++
	}
	c.Summary = status.Summary(c.Ready, c.Total)
	return &c
}

// written is true if every add-on has been written as the revision wants it.
func written(addons []hubv1.AddonStatus, steps []plan.Step, namespace string) bool {
	for _, a := range addons {
		switch a.State {
		case hubv1.AddonLostTo, hubv1.AddonExcluded, hubv1.AddonRemoving:
			continue
		}
		gated := slices.ContainsFunc(steps, func(s plan.Step) bool {
			return s.Verb == plan.AwaitDependency && s.Addon == a.Name && s.Key.Namespace == namespace && s.Key.Name == a.Object
		})
		if a.AppliedGeneration == 0 || a.Reason == hubv1.RenderFailedReason || gated {
			return false
		}
	}
	return true
}

// outcome sums up a delivery.
func (r *Reconciler) outcome(c *cluster, d *delivery) status.Outcome {
	counts := d.Status.AddonCounts
	var failed, waiting []string
	reasons := map[string]int{}
	for _, a := range d.Status.Addons {
		switch a.State {
		case hubv1.AddonFailed, hubv1.AddonNotOwned:
			failed = append(failed, fmt.Sprintf("%s: %s", a.Name, a.Message))
			reasons[a.Reason]++
		case hubv1.AddonReady, hubv1.AddonLostTo, hubv1.AddonExcluded:
		default:
			text := fmt.Sprintf("%s is %s", a.Name, a.State)
			if a.Message != "" {
				text += " (" + a.Message + ")"
			}
			waiting = append(waiting, text)
		}
	}
	switch {
	case d.DeletionTimestamp != nil:
		return status.Outcome{Phase: status.Working, Reason: hubv1.TerminatingReason, Message: status.List(append([]string{"being withdrawn"}, waiting...), 4)}
	case c.registration == nil:
		return status.Outcome{Phase: status.Broken, Reason: hubv1.RegistrationNotFoundReason, Message: fmt.Sprintf("ClusterRegistration %s is not there; what is delivered stays as it is", c.key)}
	case d.result == nil:
		phase := status.Broken
		if d.reason == hubv1.FrozenReason && counts.Ready == counts.Total {
			phase = status.Done
		}
		return status.Outcome{Phase: phase, Reason: d.reason, Message: d.unrenderable}
	case len(failed) > 0:
		reason := hubv1.AddonsFailedReason
		for _, one := range []string{hubv1.FluxObjectsInFolderReason, hubv1.RenderFailedReason} {
			if reasons[one] == len(failed) {
				reason = one // all of them for the one reason
			}
		}
		return status.Outcome{Phase: status.Broken, Reason: reason, Message: status.List(failed, 2)}
	case !c.answered():
		return status.Outcome{Phase: status.Working, Reason: hubv1.WaitingForClusterReason, Message: "nothing is made before the cluster has answered"}
	case len(waiting) > 0:
		return status.Outcome{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: status.List(waiting, 3)}
	}
	message := fmt.Sprintf("all %d add-ons are Ready", counts.Total)
	if counts.Total == 0 {
		message = "no add-on of this set is for this cluster"
	}
	if n := len(d.Lost); n > 0 {
		message += fmt.Sprintf("; %d are delivered by other sets", n)
	}
	return status.Outcome{Phase: status.Done, Reason: hubv1.AddonsReadyReason, Message: message}
}

// wait returns the shortest time after which something may be otherwise by the passing of time alone: a held removal may go
// on, an override is over, a hand-written object that is taken over is gone.
func (c *cluster) wait(steps []plan.Step, now time.Time, config *hubconfig.Config) time.Duration {
	var shortest time.Duration
	atMost := func(w time.Duration) {
		if w > 0 && (shortest == 0 || w < shortest) {
			shortest = w
		}
	}
	for _, s := range steps {
		switch {
		case s.Leaving() && c.objects[s.Key].Foreign:
			atMost(time.Second)
		case s.Verb == plan.Hold:
			atMost(teardown.Wait(c.removal(c.objects[s.Key].Observed, now, config)))
		}
	}
	for _, d := range c.deliveries {
		if d.result != nil && !d.result.Until.IsZero() {
			atMost(max(d.result.Until.Sub(now), time.Millisecond))
		}
	}
	return shortest
}

// release lets a delivery go that has nothing on the cluster any more, and with the last one of its namespace the mirror. It
// looks live: an object that the cache does not know yet would be left behind.
func (r *Reconciler) release(ctx context.Context, c *cluster, d *delivery) error {
	others, err := r.objectsLeft(ctx, c, d.Namespace)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(o metav1.PartialObjectMetadata) bool { return o.Annotations[hubv1.DeliveryAnnotation] == d.Name }) {
		return nil // its deletion wakes us
	}
	alone := !slices.ContainsFunc(c.deliveries, func(other *delivery) bool { return other != d && other.Namespace == d.Namespace })
	if alone && len(others) == 0 {
		if err := r.dropMirror(ctx, c, d.Namespace); err != nil {
			return err
		}
	}
	r.memory.drop(client.ObjectKeyFromObject(d))
	return apply.RemoveFinalizer(ctx, r.Client, d.AddonDelivery, hubv1.DeliveryFinalizer)
}

func (r *Reconciler) objectsLeft(ctx context.Context, c *cluster, namespace string) ([]metav1.PartialObjectMetadata, error) {
	var left []metav1.PartialObjectMetadata
	for kind, gv := range map[string]string{
		fluxspec.HelmReleaseKind: helmv2.GroupVersion.String(), fluxspec.KustomizationKind: kustomizev1.GroupVersion.String(),
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: kind + "List"}}
		err := r.Live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{hubv1.ClusterKeyLabel: identity.ClusterKey(r.Config.HubID, c.key)})
		if err != nil {
			return nil, fmt.Errorf("look for what is left: %w", err)
		}
		left = append(left, list.Items...)
	}
	return left, nil
}

// tell sends an event for each add-on that became Ready or failed.
func (r *Reconciler) tell(d *delivery) {
	for _, a := range d.Status.Addons {
		if was(d, a.Name).State == a.State {
			continue
		}
		var object runtime.Object
		if a.Object != "" {
			object = newObject(plan.Key{Kind: a.Kind, Namespace: d.Namespace, Name: a.Object})
		}
		switch a.State {
		case hubv1.AddonFailed, hubv1.AddonNotOwned:
			r.Recorder.Eventf(d.AddonDelivery, object, corev1.EventTypeWarning, hubv1.AddonFailedEvent, "Deliver", "add-on %q: %s", a.Name, a.Message)
		case hubv1.AddonReady:
			r.Recorder.Eventf(d.AddonDelivery, object, corev1.EventTypeNormal, hubv1.AddonReadyEvent, "Deliver", "add-on %q is Ready", a.Name)
		}
	}
}
