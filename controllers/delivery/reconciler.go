// SPDX-License-Identifier: Apache-2.0

// Package delivery is the controller that serves one cluster. Its key is the registration, because conflicts, order and
// teardown span all deliveries of a cluster. It never looks at the whole fleet.
//
// A cluster goes through four packages, once and in this order: observed reads what there is, planned renders and decides,
// copies copies what Flux needs to log in and to read, and this package carries out the steps and reports.
package delivery

import (
	"context"
	"errors"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/expectations"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/pace"
)

// Reconciler works on one cluster at a time.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Config   *hubconfig.Config
	Origins  *originreader.Reader
	Shared   *sharedobjects.Keeper
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Programs are compiled sets, of all controllers; nil keeps none.
	Programs *programs.Cache
	// Rejudged is rung when clusters are to be rendered anew, though all that concerns them is as it was.
	Rejudged *enqueue.Bell
	// Tenure is that of this process; nil if nothing is known of it.
	Tenure *tenure.Tenure

	memory       planned.Memory
	documents    documents.Reader
	ledger       observed.Ledger
	resumes      *rate.Limiter
	shares       pace.Shares // of the resumes, by namespace of the registration
	waiting      pace.Waiting
	expectations expectations.Expectations[types.NamespacedName]
	sightings    observed.Sightings
	looks        observed.Looks
}

// Reconcile brings the Flux objects of one cluster in line with its deliveries.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	seen, err := r.reader().Gather(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	c := newCluster(planned.Begin(seen))
	result, err := r.serve(ctx, c)
	again := r.dismiss(ctx, c)
	if err == nil {
		result.RequeueAfter = pace.Sooner(result.RequeueAfter, again)
	}
	return result, err
}

// serve brings what the hub has made for a cluster in line.
func (r *Reconciler) serve(ctx context.Context, c *cluster) (ctrl.Result, error) {
	r.forgetGone(c)
	keeper := r.keeper()
	if len(c.Deliveries) == 0 {
		r.expectations.Forget(c.Key)
		r.documents.Forget(c.Key)
		return c.retried(ctx, c.Again, errors.Join(keeper.DropForsaken(ctx, c.Cluster), keeper.Values(ctx, c.Cluster, nil)))
	}
	if !r.expectations.Satisfied(c.Key, c.Version, c.Now) {
		return ctrl.Result{RequeueAfter: expectations.Wait}, nil
	}
	if forsaken, err := r.forsaken(ctx, c); err != nil {
		return ctrl.Result{}, err
	} else if forsaken {
		return c.retried(ctx, 0, r.forsake(ctx, c))
	}
	if err := r.planner().Render(ctx, c.Planned()); err != nil {
		return ctrl.Result{}, err
	}
	steps := c.Steps(r.Config)
	copyErr := errors.Join(keeper.Kubeconfigs(ctx, c.Cluster), keeper.Values(ctx, c.Cluster, steps))
	waryErr := r.wary(ctx, c, steps)
	r.announce(ctx, c, steps)
	outcomes, applyErr := r.apply(ctx, c, steps)
	shardErr := r.reshard(ctx, c, steps)
	after, finishErr := r.finish(ctx, c, steps, outcomes)
	return c.retried(ctx, after, errors.Join(copyErr, waryErr, applyErr, shardErr, finishErr, keeper.DropForsaken(ctx, c.Cluster)))
}

// forgetGone forgets the deliveries of a cluster that are gone, in whatever way.
func (r *Reconciler) forgetGone(c *cluster) {
	now := make([]types.NamespacedName, len(c.Deliveries))
	for i, d := range c.Deliveries {
		now[i] = client.ObjectKeyFromObject(d)
	}
	for _, d := range r.memory.Look(c.Key, now) {
		r.waiting.Forget(d)
	}
}

// Documents returns how many documents are kept, and how many bytes they take, about.
func (r *Reconciler) Documents() (entries, bytes int) { return r.documents.Kept() }

// Readers returns how many times it is noted that a cluster reads a document.
func (r *Reconciler) Readers() int { return r.documents.Notes() }

// Renderings returns how many deliveries' renderings are kept, without their bodies. Their bytes are not counted.
func (r *Reconciler) Renderings() (entries, bytes int) { return r.memory.Kept(), -1 }
