// SPDX-License-Identifier: Apache-2.0

// Package addonset compiles sets, keeps their revisions and matches them with clusters. It is the only writer and the
// only deleter of AddonDeliveries. It writes no Flux object, and reads from Flux objects only which set they belong
// to.
//
// It has two controllers. The Reconciler works on one set: it compiles the set, stores its revision and reports. The
// Matcher works on one cluster: it decides which sets deliver to it. So one more cluster costs the hub the work for
// that cluster, and not for the fleet.
package addonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/coverage"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
	"github.com/chandler-hub/chandler/internal/valid"
)

// Reconciler works on one set at a time.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Config   *hubconfig.Config
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Labels returns the labels that a registration is about to have: (*originreader.Reader).Labels; nil in tests that need none.
	Labels func(context.Context, *hubv1.ClusterRegistration) (map[string]string, error)
	// Programs are compiled sets, of all controllers; nil keeps none.
	Programs *programs.Cache
	// Rejudged is rung when sets are to be compiled anew, though they are as they were.
	Rejudged *enqueue.Bell
	// Shared makes what follows a set's sources upstream.
	Shared *sharedobjects.Keeper
	// Tenure is that of this process; nil if nothing is known of it.
	Tenure *tenure.Tenure

	documents documents.Reader
	surveys   surveys
	registry  registry
	// changed wakes the matcher for every cluster in reach of a set, and starts for one cluster.
	changed, starts *enqueue.Bell
}

// Reconcile compiles a set, keeps its revision, and reports how its clusters stand.
func (r *Reconciler) Reconcile(ctx context.Context, set *hubv1.AddonSet) (ctrl.Result, error) {
	var again time.Duration
	var err error
	switch {
	case !set.DeletionTimestamp.IsZero():
		err = r.finalize(ctx, set)
	case controllerutil.AddFinalizer(set, hubv1.Finalizer):
		err = r.addFinalizer(ctx, set)
	default:
		again, err = r.serve(ctx, set)
	}
	if errors.Is(err, programs.ErrBusy) {
		return ctrl.Result{RequeueAfter: programs.Wait}, nil
	}
	return apply.Retried(ctrl.Result{RequeueAfter: again}, err)
}

// serve does Reconcile's work for a set that is not being deleted, and returns after how long to do it again; 0 if only
// when something happens.
func (r *Reconciler) serve(ctx context.Context, set *hubv1.AddonSet) (time.Duration, error) {
	before := set.DeepCopy()
	program, aim, invalid, err := r.compile(ctx, set)
	if err != nil {
		return 0, err
	}
	newest := &revised{}
	if invalid != nil {
		r.publish(ctx, set, aim, nil)
		aim.Selector = nil // clusters in reach keep what they have
	} else if newest, err = r.revise(ctx, set, program, aim.Selector); err != nil {
		return 0, err
	}
	fleet, asked, err := r.observe(ctx, set, aim)
	if err != nil {
		return 0, err
	}
	verdict := r.guard(set, asked)
	var next rollout.Decision
	switch {
	case invalid != nil:
		fleet.Admit(true, nil, nil)
	case set.Status.Revision == "": // the first one waits
		fleet.Admit(true, nil, nil)
		r.publish(ctx, set, aim, nil)
	default:
		granted(fleet.Clusters, asked, &verdict)
		if next, err = r.roll(ctx, set, fleet, newest); err != nil {
			return 0, err
		}
		r.publish(ctx, set, aim, &next)
	}
	fleet.Next, fleet.Held = newest.Next, set.Status.HeldRemovals
	fleet.Summarize(set, invalid, r.Clock.Now())
	if err := apply.Status(ctx, r.Client, before, set); err != nil {
		return 0, err
	}
	r.tellGuard(before, set, verdict)
	if invalid == nil && set.Status.Revision != "" {
		r.tellRollout(ctx, before, set)
		r.begin(ctx, set, &next)
		err = r.keepRecord(ctx, set)
	}
	err = errors.Join(err, r.carryOut(ctx, asked, verdict), r.pruneRevisions(ctx, set, fleet))
	return sooner(sooner(r.until(&next), newest.lookAgain(set)), asked.wait), err
}

// sooner returns the sooner of two times to wait; 0 waits for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// compile checks the set, by itself and against the others of its namespace. invalid is an error that the user must
// fix.
func (r *Reconciler) compile(ctx context.Context, set *hubv1.AddonSet) (p *compile.Program, aim match.Aim, invalid, err error) {
	from, err := reach.Of(ctx, r.Client, r.Config, set.Namespace)
	if err != nil {
		return nil, aim, nil, err
	}
	aim.Reach = from
	others := &hubv1.AddonSetList{}
	if err := r.Client.List(ctx, others, client.InNamespace(set.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, aim, nil, fmt.Errorf("list the sets: %w", err)
	}
	specs := map[string]*hubv1.AddonSetSpec{}
	for i := range others.Items {
		if o := &others.Items[i]; o.DeletionTimestamp == nil {
			specs[o.Name] = &o.Spec
		}
	}
	specs[set.Name] = &set.Spec
	name := ""
	if set.UID != "" && set.Generation > 0 {
		name = fmt.Sprintf("set %s %d", set.UID, set.Generation)
	}
	kept := func(spec *hubv1.AddonSetSpec, author compile.Author) (*compile.Program, error) {
		return r.Programs.Get(name, author, func() ([]byte, error) {
			raw, _, err := compile.Snapshot(spec, nil)
			return raw, err
		})
	}
	result := valid.Check(set, from, from.Author(set.Name), specs, kept)
	aim.Selector = result.Selector
	if errors.Is(result.Content, programs.ErrBusy) {
		return nil, aim, nil, result.Content
	}
	return result.Program, aim, result.Err(), nil
}

// publish tells the matcher about a set, and which revision its clusters get at once. next is nil for a set that does not
// compile: its clusters keep what they have, and the selector may be nil.
func (r *Reconciler) publish(ctx context.Context, set *hubv1.AddonSet, aim match.Aim, next *rollout.Decision) {
	c := compiled{uid: set.UID, generation: set.Generation, reach: aim.Reach, selector: aim.Selector, held: next == nil}
	if next != nil {
		c.everyone, c.newcomers, c.after = next.Everyone, next.Newcomers, next.After
	}
	if r.registry.put(client.ObjectKeyFromObject(set), c) {
		r.changed.Ring(ctx, set)
	}
}

func (r *Reconciler) addFinalizer(ctx context.Context, set *hubv1.AddonSet) error {
	before := set.DeepCopy()
	controllerutil.RemoveFinalizer(before, hubv1.Finalizer)
	err := r.Client.Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("add finalizer: %w", err))
	}
	return nil
}

// finalize withdraws the set from every cluster, and removes its finalizer when nothing is left on any. The last delivery wakes it.
func (r *Reconciler) finalize(ctx context.Context, set *hubv1.AddonSet) error {
	if !controllerutil.ContainsFinalizer(set, hubv1.Finalizer) {
		return nil
	}
	key := client.ObjectKeyFromObject(set)
	if forsaken, err := demise.AnyKind(ctx, r.Live, demise.Sets); err != nil {
		return err
	} else if forsaken {
		return r.forsake(ctx, set)
	}
	r.registry.leave(key, set.UID, set.Generation)
	r.registry.settle(key) // a delivery that lands after we have looked would be left without its set
	// Live: as would a delivery that is not in the cache yet.
	list := &hubv1.AddonDeliveryList{}
	if err := r.Live.List(ctx, list, client.InNamespace(set.Namespace), setLabels(set.Name)); err != nil {
		return fmt.Errorf("list the deliveries: %w", err)
	}
	deliveries := slices.DeleteFunc(list.Items, func(d hubv1.AddonDelivery) bool {
		return d.Spec.AddonSetRef.Name != set.Name || !provenance.Named(&d)
	})
	if len(deliveries) > 0 {
		return r.retire(ctx, set, deliveries)
	}
	if err := r.deleteRevisions(ctx, set); err != nil {
		return err
	}
	r.forget(key)
	return apply.RemoveFinalizer(ctx, r.Client, set, hubv1.Finalizer)
}

// forget drops what is remembered of a set that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.registry.drop(key)
	r.documents.Forget(key)
	r.surveys.all.Delete(key)
}

// retire withdraws the set from its clusters, as far as the guard grants it, and says which it waits for.
func (r *Reconciler) retire(ctx context.Context, set *hubv1.AddonSet, deliveries []hubv1.AddonDelivery) error {
	before := set.DeepCopy()
	asked := r.newRemovals(ctx, set, match.Aim{})
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
		asked.withdraw(d, reg, false)
	}
	if asked.failed != nil {
		return asked.failed
	}
	verdict := r.guard(set, asked)
	set.Status.Clusters, set.Status.Rollout = coverage.LeavingCounts(set, deliveries), &hubv1.RolloutStatus{Phase: hubv1.RolloutWithdrawing}
	status.Summarize(set, status.Summary{Phase: status.Working, Reason: hubv1.TerminatingReason,
		Message: coverage.LeavingText(deliveries, set.Status.HeldRemovals)}, r.Clock.Now())
	if err := apply.Status(ctx, r.Client, before, set); err != nil {
		return err
	}
	r.tellGuard(before, set, verdict)
	var kept error
	if set.Status.HeldRemovals != nil && !asked.doomed {
		kept = r.keepRevisions(ctx, set, deliveries)
	}
	return errors.Join(kept, r.carryOut(ctx, asked, verdict))
}

// forsake removes the finalizer of a set whose CRD is being deleted: no user has asked for a removal. Its deliveries
// stay, and belong to the set again when it is back.
func (r *Reconciler) forsake(ctx context.Context, set *hubv1.AddonSet) error {
	r.Recorder.Eventf(set, nil, corev1.EventTypeWarning, hubv1.HeldEvent, "Withdraw",
		"deleted because the CRD of AddonSets is; nothing is uninstalled, and the clusters keep what they have")
	r.registry.drop(client.ObjectKeyFromObject(set))
	return apply.RemoveFinalizer(ctx, r.Client, set, hubv1.Finalizer)
}

// observe counts the clusters of a set: those that it delivers to, and those that it selects and that have no
// delivery yet. It also returns what they are to lose.
func (r *Reconciler) observe(ctx context.Context, set *hubv1.AddonSet, aim match.Aim) (*coverage.Fleet, *removals, error) {
	selector := aim.Selector
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingFields{index.DeliverySet: set.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the deliveries: %w", err)
	}
	regs := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, regs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the registrations: %w", err)
	}
	byKey := make(map[types.NamespacedName]*hubv1.ClusterRegistration, len(regs.Items))
	for i := range regs.Items {
		byKey[client.ObjectKeyFromObject(&regs.Items[i])] = &regs.Items[i]
	}
	online := func(reg *hubv1.ClusterRegistration) bool {
		return reg != nil && status.Online(reg)
	}
	f, asked := coverage.New(), r.newRemovals(ctx, set, aim)
	asked.elsewhere = func(of *hubv1.ClusterRegistration) bool {
		return selector != nil && selectsAnother(selector, of, regs.Items)
	}
	served := make(map[types.NamespacedName]bool, len(list.Items))
	f.Clusters = make([]rollout.Cluster, 0, len(list.Items))
	for i := range list.Items {
		d := &list.Items[i]
		if !provenance.Named(d) {
			continue // the hub did not make it
		}
		key := d.Spec.RegistrationRef.Key()
		served[key], f.InUse[d.Spec.RevisionName] = true, true
		if d.Withdrawn() {
			f.Withdraw()
			continue
		}
		if leaves, waits := asked.of(d, byKey[key]); leaves {
			f.Leave(d, waits)
			if waits { // the label may be gone for a moment: that ends no soak of the cluster's wave
				f.Clusters = append(f.Clusters, rollout.ObserveLeaving(d, byKey[key]))
			}
			continue
		}
		f.Count(set, d, online(byKey[key]))
		if reg := byKey[key]; reg == nil || selector != nil && !status.Goes(reg) && selector.Matches(reg) {
			f.Clusters = append(f.Clusters, rollout.Observe(d, reg))
		}
	}
	if asked.failed != nil {
		return nil, nil, asked.failed
	}
	r.registry.count(client.ObjectKeyFromObject(set), f.CountNew(selector, regs.Items, served))
	orphans, omitted := teardown.OrphansOfSet(set.Status.Orphans, list.Items)
	set.Status.Orphans, set.Status.OrphansOmitted = orphans, set.Status.OrphansOmitted+omitted
	f.Sum()
	set.Status.Clusters = &f.Counts
	if selector != nil && f.Counts.Matched == 0 {
		f.Nothing = coverage.WhyNothing(set, selector, regs.Items)
	}
	return f, asked, nil
}

// selectsAnother returns whether a set selects another registration of the same cluster that is not going.
func selectsAnother(selector *match.Selector, of *hubv1.ClusterRegistration, all []hubv1.ClusterRegistration) bool {
	return of.Status.ClusterID() != "" && slices.ContainsFunc(all, func(o hubv1.ClusterRegistration) bool {
		return o.UID != of.UID && o.Status.ClusterID() == of.Status.ClusterID() && !status.Goes(&o) && selector.Matches(&o)
	})
}

func setLabels(set string) client.MatchingLabels {
	return client.MatchingLabels{hubv1.AddonSetLabel: labelValue(set)}
}

func (r *Reconciler) event(set *hubv1.AddonSet, reason, format string, args ...any) {
	r.Recorder.Eventf(set, nil, corev1.EventTypeNormal, reason, "Compile", format, args...)
}
