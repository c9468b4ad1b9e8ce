// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/status"
)

// What the controller counts and decides about a set in the middle of a rollout, without the reading and the writing. It does
// that about once a second while something happens.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			look := busyFixture(b, n)
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
		})
	}
}

// TestReconcileIsCheap: it looks at every cluster each time, so it may do little for one. It once made sixty objects in memory for each,
// and took three times as long; then nine, one of them a copy of the delivery.
func TestReconcileIsCheap(t *testing.T) {
	const n, most = 500, 7
	if is := testing.AllocsPerRun(5, busyFixture(t, n)) / n; is > most {
		t.Errorf("%.1f allocations for each cluster, at most %d", is, most)
	}
}

// busyFixture returns a function that looks at a set with so many clusters.
func busyFixture(tb testing.TB, n int) func() {
	tb.Helper()
	deliveries, registrations := busyFleet(n)
	reader := interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			switch l := list.(type) {
			case *hubv1.AddonDeliveryList:
				l.Items = deliveries
			case *hubv1.ClusterRegistrationList:
				l.Items = registrations
			}
			return nil
		},
	})
	quarter := intstr.FromString("25%")
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
	set.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}}
	set.Spec.Rollout = &hubv1.Rollout{Waves: []hubv1.Wave{{Name: "first", Size: &quarter}, {Name: "second", Size: &quarter}}}
	set.Status.Revision = "base-3-e1"
	selector, err := match.New(match.Reach{Namespace: set.Namespace, Platform: true}, &set.Spec)
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		r := &Reconciler{Config: &hubconfig.Config{}, Clock: clocktesting.NewFakePassiveClock(fleetTime), Client: reader}
		f, _, err := r.observe(tb.Context(), set, match.Aim{Reach: selector.Reach(), Selector: selector})
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := r.roll(tb.Context(), set, f, &revised{}); err != nil {
			tb.Fatal(err)
		}
		f.Summarize(set, nil, r.Clock.Now())
	}
}

// busyFleet returns the deliveries and registrations of a fleet, of which a part has the newest revision.
func busyFleet(n int) ([]hubv1.AddonDelivery, []hubv1.ClusterRegistration) {
	ready := on{reason: hubv1.AddonsReadyReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonReady, "")}}
	deliveries, registrations := make([]hubv1.AddonDelivery, n), make([]hubv1.ClusterRegistration, n)
	for i := range n {
		name := fmt.Sprintf("c%05d", i)
		deliveries[i] = ready.delivery(name)
		if i%4 == 0 {
			d := &deliveries[i]
			d.Spec.RevisionName, d.Spec.Start = "base-3-e1", &hubv1.DeliveryStart{Time: metav1.NewTime(fleetTime), Healthy: true}
		}
		reg := hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name,
			Labels: map[string]string{"fleet": "yes", "region": "eu"}}}
		status.Set(&reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", fleetTime)
		registrations[i] = reg
	}
	return deliveries, registrations
}

// TestDelay: a look takes longer the more clusters there are, so there are fewer looks.
func TestDelay(t *testing.T) {
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
	r := newMatcherFixture(t, interceptor.Funcs{}, set)
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}
	for clusters, want := range map[int32]time.Duration{0: time.Second, 2500: time.Second, 5000: 2 * time.Second} {
		set.Status.Clusters = &hubv1.ClusterCounts{Matched: clusters}
		if err := r.api.Status().Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		if got := r.delay(t.Context(), req); got != want {
			t.Errorf("%d clusters: %v, want %v", clusters, got, want)
		}
	}
}
