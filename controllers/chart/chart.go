// SPDX-License-Identifier: Apache-2.0

// Package chart keeps the HelmCharts that clusters share: it is the only writer of them, never updates one in place, and
// removes each a while after its last use.
package chart

import (
	"context"
	"fmt"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/render"
)

// Keeper keeps the charts.
type Keeper struct {
	Client client.Client
	Live   client.Reader
	Config *hubconfig.Config
	Clock  clock.PassiveClock

	mu     sync.Mutex
	charts map[types.NamespacedName]*record
}

// record is what is remembered of one chart. Its lock makes sure that a chart is not removed at the moment in which somebody
// starts to use it, and that a hundred clusters do not all make it.
type record struct {
	mu   sync.Mutex
	made bool
	// idleSince is when it was last asked for, or first seen without a user; zero while it has one.
	idleSince time.Time
}

func (k *Keeper) record(key types.NamespacedName) *record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.charts == nil {
		k.charts = map[types.NamespacedName]*record{}
	}
	r := k.charts[key]
	if r == nil {
		r = &record{}
		k.charts[key] = r
	}
	return r
}

// Ensure makes a chart if it is not there. It does nothing to one that is: its name is its content.
func (k *Keeper) Ensure(ctx context.Context, c *render.Chart) error {
	key := client.ObjectKeyFromObject(c.Object)
	rec := k.record(key)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.idleSince = k.Clock.Now()
	there := &sourcev1.HelmChart{}
	err := k.Client.Get(ctx, key, there)
	switch {
	case err == nil && there.DeletionTimestamp == nil:
		rec.made = true
		return nil
	case err == nil:
		return fmt.Errorf("HelmChart %s is being deleted; it is made again when it is gone", key)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read HelmChart %s: %w", key, err)
	case rec.made:
		return nil // made a moment ago, and not in the cache yet
	}
	_, err = apply.Create(ctx, k.Client, k.Live, c.Object, hubv1.FieldManager, func(o client.Object) bool {
		return o.GetLabels()[hubv1.ChartLabel] == k.Config.HubID
	})
	rec.made = err == nil
	return err
}

// Reconcile removes a chart that nobody has used for a while.
func (k *Keeper) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	rec := k.record(req.NamespacedName)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	there := &sourcev1.HelmChart{}
	if err := k.Client.Get(ctx, req.NamespacedName, there); err != nil {
		if apierrors.IsNotFound(err) {
			rec.made = false
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	users := &helmv2.HelmReleaseList{}
	if err := k.Client.List(ctx, users, client.MatchingFields{index.ChartRef: req.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the users of HelmChart %s: %w", req, err)
	}
	if len(users.Items) > 0 {
		rec.idleSince = time.Time{}
		return ctrl.Result{}, nil
	}
	if there.DeletionTimestamp != nil || there.Labels[hubv1.ChartLabel] != k.Config.HubID {
		return ctrl.Result{}, nil
	}
	if rec.idleSince.IsZero() {
		rec.idleSince = k.Clock.Now()
	}
	if left := k.Config.ChartRetention - k.Clock.Since(rec.idleSince); left > 0 {
		return ctrl.Result{RequeueAfter: left + time.Millisecond}, nil
	}
	rec.made = false
	if err := k.Client.Delete(ctx, there, client.Preconditions{UID: &there.UID}); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("remove HelmChart %s: %w", req, err))
	}
	return ctrl.Result{}, nil
}

// SetupWithManager starts the keeper.
func (k *Keeper) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("chart").
		For(&sourcev1.HelmChart{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		Watches(&helmv2.HelmRelease{}, handler.EnqueueRequestsFromMapFunc(chartOf), builder.WithPredicates(refChanges())).
		Complete(k)
}

// refChanges: a release that goes, or refers to another chart, may have been the last user of one.
func refChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*helmv2.HelmRelease).Spec.ChartRef, e.ObjectNew.(*helmv2.HelmRelease).Spec.ChartRef
			return a != nil && (b == nil || *a != *b)
		},
	}
}

func chartOf(_ context.Context, obj client.Object) []reconcile.Request {
	hr := obj.(*helmv2.HelmRelease)
	ref := hr.Spec.ChartRef
	if ref == nil || ref.Kind != sourcev1.HelmChartKind {
		return nil
	}
	ns := ref.Namespace
	if ns == "" {
		ns = hr.Namespace
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ns, Name: ref.Name}}}
}
