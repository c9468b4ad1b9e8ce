// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/plan"
)

// TestLeftSaysWhatFluxHasBegun: a worker of Flux that had begun to uninstall when the cluster stopped answering may go on after the object is orphaned.
func TestLeftSaysWhatFluxHasBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		deleting, begun bool
	}{
		"OrphanedAtOnce":      {},
		"WasBeingUninstalled": {deleting: true, begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).Build()
			k := plan.Key{Kind: fluxspec.KustomizationKind, Namespace: "flux-system", Name: "one"}
			o := &observed.Object{Observed: plan.Observed{Key: k, Deleting: tc.deleting}}
			r := &Reconciler{Client: api, Live: api}
			got, err := r.left(t.Context(), passOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{k: o}}), plan.Step{Key: k, Verb: plan.Orphan, Reason: "the cluster is gone"})
			if err != nil || strings.Contains(got, "Flux had begun to uninstall it") != tc.begun {
				t.Errorf("got %q, %v; want it to say what Flux has begun: %t", got, err, tc.begun)
			}
		})
	}
}

// TestUnfinalize: what is orphaned does not wait for a worker of Flux that hangs, and what is uninstalled does.
func TestUnfinalize(t *testing.T) {
	scheme := hubscheme.New()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		verb       plan.Verb
		since      time.Duration // since its deletion
		finalizers []string
		another    bool // an object of that name that was made later
		gone       bool
		left       []string
		again      time.Duration
	}{
		"Stuck":          {verb: plan.Orphan, since: time.Minute, finalizers: []string{fluxFinalizer}, gone: true},
		"JustDeleted":    {verb: plan.Orphan, since: 3 * time.Second, finalizers: []string{fluxFinalizer}, left: []string{fluxFinalizer}, again: 7 * time.Second},
		"SomebodyElse's": {verb: plan.Orphan, since: time.Minute, finalizers: []string{fluxFinalizer, "example.org/theirs"}, left: []string{"example.org/theirs"}},
		"Uninstall":      {verb: plan.Uninstall, since: time.Hour, finalizers: []string{fluxFinalizer}, left: []string{fluxFinalizer}},
		"HandOver":       {verb: plan.HandOver, since: time.Hour, finalizers: []string{fluxFinalizer}, gone: true},
		"AnotherOne":     {verb: plan.Orphan, since: time.Minute, another: true, finalizers: []string{fluxFinalizer}, left: []string{fluxFinalizer}},
	} {
		for _, kind := range []string{fluxspec.HelmReleaseKind, fluxspec.KustomizationKind} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				k := plan.Key{Kind: kind, Namespace: "flux-system", Name: "one"}
				deleted := metav1.NewTime(now.Add(-tc.since))
				obj := observed.NewObject(k)
				obj.SetUID("this")
				obj.SetFinalizers(tc.finalizers)
				obj.SetDeletionTimestamp(&deleted)
				api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).Build()
				r := &Reconciler{Client: api, Live: api, Clock: clock.NewFakePassiveClock(now)}
				known := &observed.Object{UID: "this", Deleted: deleted.Time, Observed: plan.Observed{Key: k}}
				if tc.another {
					known.UID = "before"
				}
				c := passOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{k: known}})
				if err := r.unfinalize(t.Context(), c, plan.Step{Key: k, Verb: tc.verb}); err != nil {
					t.Fatal(err)
				}
				err := api.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
				if tc.gone != apierrors.IsNotFound(err) {
					t.Fatalf("got %v, want it gone: %t", err, tc.gone)
				}
				if !tc.gone && len(obj.GetFinalizers()) != len(tc.left) {
					t.Errorf("finalizers %v, want %v", obj.GetFinalizers(), tc.left)
				}
				if c.Again != tc.again {
					t.Errorf("looks again after %s, want %s", c.Again, tc.again)
				}
			})
		}
	}
}

// TestSuspendedBeforeItIsDeleted: if the hub suspends an object and cannot delete it, an annotation on the object says that the hub has
// suspended it. The hub resumes the object later if the set wants it again.
func TestSuspendedBeforeItIsDeleted(t *testing.T) {
	for _, verb := range []plan.Verb{plan.Orphan, plan.HandOver} {
		for _, kind := range []string{fluxspec.HelmReleaseKind, fluxspec.KustomizationKind} {
			k := plan.Key{Kind: kind, Namespace: "flux-system", Name: "one"}
			obj := observed.NewObject(k)
			obj.SetUID("this")
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(obj).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return errors.New("the API server is away")
				},
			}).Build()
			r := &Reconciler{Client: api, Live: api, Clock: clock.NewFakePassiveClock(time.Now())}
			c := passOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{k: {UID: "this", Version: obj.GetResourceVersion(), Observed: plan.Observed{Key: k}}}})
			if err := r.remove(t.Context(), c, plan.Step{Key: k, Verb: verb}, "all of it"); err == nil {
				t.Fatal("it was deleted")
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
			if why := obj.GetAnnotations()[hubv1.SuspendedAnnotation]; why != hubv1.TakenOverSuspension || !fluxstate.Of(obj).Suspended {
				t.Errorf("%s of a %s: suspended %t, since %q", verb, kind, fluxstate.Of(obj).Suspended, why)
			}
		}
	}
}
