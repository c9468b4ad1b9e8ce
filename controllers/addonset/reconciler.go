// SPDX-License-Identifier: Apache-2.0

// Package addonset compiles sets, keeps their revisions, matches them with clusters, and is the only writer and the only
// deleter of AddonDeliveries. It never touches a Flux object.
//
// It is two controllers. The Reconciler works on one set: it compiles, snapshots, and reports. The Matcher works on one
// cluster: which sets deliver to it. So one more cluster costs the hub that cluster, and not the fleet.
package addonset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Reconciler works on one set at a time.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Config   *hubconfig.Config
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Programs are compiled sets, of all rooms; nil keeps none.
	Programs *programs.Cache

	registry registry
	// changed wakes the matcher for every cluster in reach of a set.
	changed *enqueue.Bell
}

// Reconcile compiles a set, keeps its revision, and reports how its clusters stand.
func (r *Reconciler) Reconcile(ctx context.Context, set *hubv1.AddonSet) (ctrl.Result, error) {
	reconcile := r.serve
	switch {
	case !set.DeletionTimestamp.IsZero():
		reconcile = r.finalize
	case controllerutil.AddFinalizer(set, hubv1.AddonSetFinalizer):
		reconcile = r.addFinalizer
	}
	err := reconcile(ctx, set)
	if errors.Is(err, programs.ErrBusy) {
		return ctrl.Result{RequeueAfter: programs.Wait}, nil
	}
	return apply.Retried(ctrl.Result{}, err)
}

// serve does Reconcile's work for a set that stays.
func (r *Reconciler) serve(ctx context.Context, set *hubv1.AddonSet) error {
	before := set.DeepCopy()
	selector, invalid, err := r.compile(ctx, set)
	if err != nil {
		return err
	}
	if invalid == nil {
		if err := r.snapshot(ctx, set); err != nil {
			return err
		}
	}
	r.publish(ctx, set, selector, invalid)
	if invalid != nil {
		selector = nil // clusters keep what they have
	}
	fleet, err := r.observe(ctx, set, selector)
	if err != nil {
		return err
	}
	verdict := r.guard(set, fleet.removals)
	r.summarize(set, fleet, invalid)
	if err := apply.StatusUnchanged(ctx, r.Client, before, set); err != nil {
		return err
	}
	r.tellGuard(before, set, verdict)
	return errors.Join(r.letGo(ctx, fleet.removals, verdict), r.pruneRevisions(ctx, set, fleet))
}

// compile checks the set, by itself and among the others of its namespace. invalid is the user's to mend.
func (r *Reconciler) compile(ctx context.Context, set *hubv1.AddonSet) (selector *match.Selector, invalid, err error) {
	platform := r.Config.IsPlatform(set.Namespace)
	if selector, invalid = match.New(set.Namespace, platform, &set.Spec); invalid != nil {
		return nil, invalid, nil
	}
	author := compile.Author{Namespace: set.Namespace, Set: set.Name, Platform: platform}
	name := ""
	if set.UID != "" && set.Generation > 0 {
		name = fmt.Sprintf("set %s %d", set.UID, set.Generation)
	}
	_, invalid = r.Programs.Get(name, author, func() ([]byte, error) {
		raw, _, err := compile.Snapshot(&set.Spec)
		return raw, err
	})
	if errors.Is(invalid, programs.ErrBusy) {
		return nil, nil, invalid
	}
	if invalid != nil {
		return selector, invalid, nil
	}
	others := &hubv1.AddonSetList{}
	if err := r.Client.List(ctx, others, client.InNamespace(set.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the sets: %w", err)
	}
	specs := map[string]*hubv1.AddonSetSpec{}
	for i := range others.Items {
		if o := &others.Items[i]; o.DeletionTimestamp == nil {
			specs[o.Name] = &o.Spec
		}
	}
	specs[set.Name] = &set.Spec
	return selector, compile.Graph(set.Name, specs), nil
}

// publish tells the matcher. A set that does not compile is held: its clusters keep what they have.
func (r *Reconciler) publish(ctx context.Context, set *hubv1.AddonSet, selector *match.Selector, invalid error) {
	c := compiled{uid: set.UID, generation: set.Generation, selector: selector, revision: set.Status.Revision, held: invalid != nil}
	if r.registry.put(client.ObjectKeyFromObject(set), c) && invalid == nil {
		r.changed.Ring(ctx, set)
	}
}

func (r *Reconciler) addFinalizer(ctx context.Context, set *hubv1.AddonSet) error {
	before := set.DeepCopy()
	controllerutil.RemoveFinalizer(before, hubv1.AddonSetFinalizer)
	err := r.Client.Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("add finalizer: %w", err))
	}
	return nil
}

// finalize withdraws the set from every cluster, and lets it go when the last one is clean.
func (r *Reconciler) finalize(ctx context.Context, set *hubv1.AddonSet) error {
	if !controllerutil.ContainsFinalizer(set, hubv1.AddonSetFinalizer) {
		return nil
	}
	key := client.ObjectKeyFromObject(set)
	if forsaken, err := demise.AnyKind(ctx, r.Live, demise.Sets); err != nil {
		return err
	} else if forsaken {
		return r.forsake(ctx, set)
	}
	r.registry.put(key, compiled{uid: set.UID, generation: set.Generation, leaving: true})
	r.registry.settle(key) // a delivery that lands after we have looked would be left without its set
	// Live: as would one that the cache does not know yet.
	list := &hubv1.AddonDeliveryList{}
	if err := r.Live.List(ctx, list, client.InNamespace(set.Namespace), setLabels(set.Name)); err != nil {
		return fmt.Errorf("list the deliveries: %w", err)
	}
	deliveries := slices.DeleteFunc(list.Items, func(d hubv1.AddonDelivery) bool { return d.Spec.AddonSetRef.Name != set.Name || !provenance.Named(&d) })
	if left := len(deliveries); left > 0 {
		return r.retire(ctx, set, deliveries)
	}
	if err := r.deleteRevisions(ctx, set); err != nil {
		return err
	}
	r.registry.drop(key)
	return apply.RemoveFinalizer(ctx, r.Client, set, hubv1.AddonSetFinalizer)
}

// retire withdraws the set from the clusters that it is still on, as far as the guard lets it.
func (r *Reconciler) retire(ctx context.Context, set *hubv1.AddonSet, deliveries []hubv1.AddonDelivery) error {
	before := set.DeepCopy()
	asked := newRemovals(set)
	var err error
	if asked.doomed, err = demise.Namespace(ctx, r.Live, set.Namespace); err != nil {
		return err
	}
	for i := range deliveries {
		d := &deliveries[i]
		reg := &hubv1.ClusterRegistration{}
		key := d.Spec.RegistrationRef.Key()
		if err := r.Client.Get(ctx, key, reg); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read registration %s: %w", key, err)
		}
		asked.withdraw(d, reg)
	}
	verdict := r.guard(set, asked)
	message := fmt.Sprintf("being withdrawn from %d clusters", len(deliveries))
	if held := set.Status.HeldRemovals; held != nil {
		message += fmt.Sprintf(", of which the removal guard holds %d: see condition %s", held.Count, hubv1.RemovalsHeldCondition)
	}
	status.Summarize(set, status.Outcome{Phase: status.Working, Reason: hubv1.TerminatingReason, Message: message}, r.Clock.Now())
	if err := apply.StatusUnchanged(ctx, r.Client, before, set); err != nil {
		return err
	}
	r.tellGuard(before, set, verdict)
	return r.letGo(ctx, asked, verdict)
}

// forsake lets a set go whose kind is being deleted: nobody has asked for a removal. Its deliveries stay, and are the set's again when
// it is back.
func (r *Reconciler) forsake(ctx context.Context, set *hubv1.AddonSet) error {
	r.Recorder.Eventf(set, nil, corev1.EventTypeWarning, hubv1.HeldEvent, "Withdraw",
		"deleted because the CRD of AddonSets is; nothing is uninstalled, and the clusters keep what they have")
	r.registry.drop(client.ObjectKeyFromObject(set))
	return apply.RemoveFinalizer(ctx, r.Client, set, hubv1.AddonSetFinalizer)
}

// fleet is how the clusters of a set stand.
type fleet struct {
	counts hubv1.ClusterCounts
	// inUse are the revisions that a delivery names.
	inUse map[string]bool
	// behind names clusters in reach that have not been Ready on the newest revision; failed those with a failed add-on.
	behind, failed []string
	// nothing says why no cluster is selected, if none is.
	nothing string
	// removals is what the clusters are to lose.
	removals *removals
}

// observe counts the clusters of a set: those that it delivers to, and those that it selects and that have no delivery yet.
// selector is nil if the set does not compile.
func (r *Reconciler) observe(ctx context.Context, set *hubv1.AddonSet, selector *match.Selector) (*fleet, error) {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingFields{index.DeliverySet: set.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the deliveries: %w", err)
	}
	regs := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, regs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the registrations: %w", err)
	}
	byKey := make(map[types.NamespacedName]*hubv1.ClusterRegistration, len(regs.Items))
	for i := range regs.Items {
		byKey[client.ObjectKeyFromObject(&regs.Items[i])] = &regs.Items[i]
	}
	online := func(reg *hubv1.ClusterRegistration) bool {
		return reg != nil && status.Online(reg)
	}
	f := &fleet{inUse: map[string]bool{}, removals: newRemovals(set)}
	served := make(map[types.NamespacedName]bool, len(list.Items))
	for i := range list.Items {
		d := &list.Items[i]
		if !provenance.Named(d) {
			continue // the hub did not make it
		}
		key := d.Spec.RegistrationRef.Key()
		served[key], f.inUse[d.Spec.RevisionName] = true, true
		if d.Withdrawn() {
			f.counts.Leaving++
			continue
		}
		f.count(set, d, online(byKey[key]))
		f.removals.of(d, byKey[key], selector)
	}
	for i := range regs.Items {
		reg := &regs.Items[i]
		if key := client.ObjectKeyFromObject(reg); selector != nil && !served[key] && reg.DeletionTimestamp == nil && selector.Matches(reg) {
			f.expect(reg.Name, online(reg))
		}
	}
	set.Status.Orphans = teardown.Orphans(set.Status.Orphans, list.Items)
	slices.Sort(f.behind)
	slices.Sort(f.failed)
	f.counts.ReadySummary = status.Summary(f.counts.Ready, f.counts.Matched)
	f.counts.UpdatedSummary = status.Summary(f.counts.Updated, f.counts.Matched)
	set.Status.Clusters = &f.counts
	if selector != nil && f.counts.Matched == 0 {
		f.nothing = r.whyNothing(set, selector, regs)
	}
	return f, nil
}

// expect counts a cluster that is selected and has no delivery yet.
func (f *fleet) expect(name string, online bool) {
	f.counts.Matched++
	if !online {
		f.counts.Offline++
		return
	}
	f.behind = append(f.behind, name)
}

// count counts a cluster that has a delivery.
func (f *fleet) count(set *hubv1.AddonSet, d *hubv1.AddonDelivery, online bool) {
	f.counts.Matched++
	if status.IsTrue(d, hubv1.ReadyCondition) && sameContent(d.Status.ReadyRevision, d.Spec.RevisionName) {
		f.counts.Ready++
	}
	if d.Status.AddonCounts != nil && d.Status.AddonCounts.Failed > 0 {
		f.counts.Failed++
		f.failed = append(f.failed, d.Spec.RegistrationRef.Name)
	}
	if !online {
		f.counts.Offline++
	}
	switch {
	case sameContent(d.Status.ReadyRevision, set.Status.Revision):
		f.counts.Updated++
	case online && !excused(d):
		f.behind = append(f.behind, d.Spec.RegistrationRef.Name)
	}
}

// excused is true if nobody is to wait for a cluster who waits for the set: somebody holds an add-on of it back and knows, or it
// has no node to run anything on.
func excused(d *hubv1.AddonDelivery) bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		switch a.State {
		case hubv1.AddonHeld, hubv1.AddonSuspended, hubv1.AddonPaused, hubv1.AddonUnreachable, hubv1.AddonWaitingForNodes:
			return true
		}
		return false
	})
}

// summarize sets the conditions. A cluster that does not answer is counted, and blocks nobody who waits for the set.
func (r *Reconciler) summarize(set *hubv1.AddonSet, f *fleet, invalid error) {
	now := r.Clock.Now()
	complete, reason, message := metav1.ConditionTrue, hubv1.SucceededReason, "every cluster has been Ready on the newest revision"
	if f.counts.Updated < f.counts.Matched {
		complete, reason = metav1.ConditionFalse, hubv1.ProgressingReason
		message = fmt.Sprintf("%s clusters have been Ready on the newest revision", f.counts.UpdatedSummary)
	}
	status.Set(set, hubv1.RolloutCompleteCondition, complete, reason, message, now)
	set.Status.Rollout = map[metav1.ConditionStatus]string{metav1.ConditionTrue: "Complete", metav1.ConditionFalse: "Progressing"}[complete]

	healthy, reason, message := metav1.ConditionTrue, hubv1.SucceededReason, "every add-on is Ready on every cluster"
	if f.counts.Ready < f.counts.Matched {
		healthy, reason = metav1.ConditionFalse, hubv1.ProgressingReason
		message = fmt.Sprintf("%s clusters are Ready, %d offline", f.counts.ReadySummary, f.counts.Offline)
		if len(f.failed) > 0 {
			reason, message = hubv1.AddonsFailedReason, message+", failed: "+status.List(f.failed, 5)
		}
	}
	status.Set(set, hubv1.HealthyCondition, healthy, reason, message, now)
	status.Summarize(set, outcome(f, invalid), now)
}

func outcome(f *fleet, invalid error) status.Outcome {
	switch {
	case invalid != nil:
		return status.Outcome{Phase: status.Stalled, Reason: hubv1.InvalidSpecReason, Message: invalid.Error() + ". Clusters keep what they have"}
	case f.counts.Matched == 0 && f.counts.Leaving == 0:
		return status.Outcome{Phase: status.Done, Reason: hubv1.NoClusterMatchesReason, Message: f.nothing}
	case len(f.behind) > 0:
		m := fmt.Sprintf("%s clusters have been Ready on this revision; not yet: %s", f.counts.UpdatedSummary, status.List(f.behind, 5))
		if len(f.failed) > 0 {
			m += "; failed: " + status.List(f.failed, 5)
		}
		return status.Outcome{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: m}
	}
	m := fmt.Sprintf("delivered to %s clusters", f.counts.UpdatedSummary)
	if f.counts.Offline > 0 {
		m += fmt.Sprintf("; %d offline", f.counts.Offline)
	}
	return status.Outcome{Phase: status.Done, Reason: hubv1.SucceededReason, Message: m}
}

// whyNothing says why a set selects nothing.
func (r *Reconciler) whyNothing(set *hubv1.AddonSet, selector *match.Selector, regs *hubv1.ClusterRegistrationList) string {
	where := "in any namespace"
	if !r.Config.IsPlatform(set.Namespace) {
		where = fmt.Sprintf("in namespace %q, which is all that a set outside the platform namespaces reaches", set.Namespace)
	}
	var near []string
	for i := range regs.Items {
		if reg := &regs.Items[i]; selector.Reaches(reg.Namespace) && reg.DeletionTimestamp == nil {
			near = append(near, fmt.Sprintf("%s %s", reg.Name, selector.Why(reg)))
		}
	}
	if len(near) == 0 {
		return "there is no ClusterRegistration " + where
	}
	slices.Sort(near)
	return fmt.Sprintf("%s selects none of %d ClusterRegistrations %s: %s", selector, len(near), where, status.List(near, 3))
}

func setLabels(set string) client.MatchingLabels {
	return client.MatchingLabels{hubv1.AddonSetLabel: labelValue(set)}
}

func (r *Reconciler) event(set *hubv1.AddonSet, reason, format string, args ...any) {
	r.Recorder.Eventf(set, nil, corev1.EventTypeNormal, reason, "Compile", format, args...)
}
