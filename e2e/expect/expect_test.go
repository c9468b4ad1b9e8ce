// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
)

// TestDelivered: what was Ready before a change is not taken for Ready after it, at none of the steps by which the hub gets there.
func TestDelivered(t *testing.T) {
	reg := types.NamespacedName{Namespace: "fleet", Name: "one"}
	ready := []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: hubv1.SucceededReason}}
	type state struct {
		set  func(*hubv1.AddonSet)
		d    func(*hubv1.AddonDelivery)
		want string
	}
	for name, tc := range map[string]state{
		"all is new": {},
		"the set has been edited, and nobody has looked": {
			set: func(s *hubv1.AddonSet) { s.Status.ObservedGeneration, s.Status.Revision = 1, "base-1" },
			d: func(d *hubv1.AddonDelivery) {
				d.Spec.RevisionName, d.Status.ObservedRevision, d.Status.ReadyRevision = "base-1", "base-1", "base-1"
			},
			want: "at generation 1 of 2",
		},
		"the delivery has not been told": {
			d: func(d *hubv1.AddonDelivery) {
				d.Spec.RevisionName, d.Status.ObservedRevision, d.Status.ReadyRevision = "base-1", "base-1", "base-1"
			},
			want: `is to have revision "base-1"`,
		},
		"the delivery has been told, and its status is old": {
			d: func(d *hubv1.AddonDelivery) {
				d.Generation, d.Status.ObservedRevision, d.Status.ReadyRevision = 2, "base-1", "base-1"
			},
			want: "at generation 1 of 2",
		},
		"the objects are written, and not Ready yet": {
			d:    func(d *hubv1.AddonDelivery) { d.Status.ReadyRevision = "base-1" },
			want: `was Ready on "base-1"`,
		},
		"there is no delivery": {d: func(d *hubv1.AddonDelivery) { d.Name = "another" }, want: "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", Generation: 2}}
			set.Status.ObservedGeneration, set.Status.Revision, set.Status.Conditions = 2, "base-2", ready
			d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("base", reg), Generation: 1}}
			d.Spec.RevisionName = "base-2"
			d.Status = hubv1.AddonDeliveryStatus{ObservedGeneration: 1, ObservedRevision: "base-2", ReadyRevision: "base-2", Conditions: ready}
			if tc.set != nil {
				tc.set(set)
			}
			if tc.d != nil {
				tc.d(d)
			}
			// Whoever asked the registration alone would be content: it may have said so for half a minute.
			r := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: reg.Namespace, Name: reg.Name, Generation: 1}}
			r.Status.ObservedGeneration, r.Status.Conditions = 1, ready
			c := fakeClient(t, set, d, r)
			if err := Condition(t.Context(), c, r, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason); err != nil {
				t.Fatal(err)
			}
			err := Delivered(t.Context(), c, set, reg)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestAddon: a status that speaks of an older spec says nothing.
func TestAddon(t *testing.T) {
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Name: "d", Generation: 2}}
	d.Status.ObservedGeneration = 1
	d.Status.Addons = []hubv1.AddonStatus{{Name: "a", State: hubv1.AddonReady, Message: "applied"}}
	if err := Addon(d, "a", hubv1.AddonReady, ""); err == nil {
		t.Error("a status of generation 1 passed for one of generation 2")
	}
	d.Status.ObservedGeneration = 2
	if err := Addon(d, "a", hubv1.AddonReady, "appl"); err != nil {
		t.Error(err)
	}
	if err := Addon(d, "a", hubv1.AddonFailed, ""); err == nil {
		t.Error("an add-on that is Ready passed for one that has failed")
	}
}

// TestWait: a process that has slept past its deadline looks once more.
func TestWait(t *testing.T) {
	calls := 0
	if err := wait(time.Nanosecond, func() error {
		if calls++; calls == 1 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Errorf("after %d calls: %v", calls, err)
	}
	never := errors.New("never")
	if err := wait(time.Nanosecond, func() error { return never }); !errors.Is(err, never) {
		t.Errorf("got %v", err)
	}
}

func fakeClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(objects...).Build()
	for _, o := range objects { // the generation is as the case has it
		there := o.DeepCopyObject().(client.Object)
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(o), there); err != nil {
			t.Fatal(err)
		}
		if there.GetGeneration() != o.GetGeneration() {
			t.Fatalf("%T is of generation %d, want %d", o, there.GetGeneration(), o.GetGeneration())
		}
	}
	return c
}
