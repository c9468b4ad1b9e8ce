// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
)

// TestRemovalComesDue: a removal whose time had not come when the plan was made, and has come when the work is done, is looked at
// again. No event would: what the work wrote was the status alone.
func TestRemovalComesDue(t *testing.T) {
	k := plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: "tenant1-a"}
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-tenant1", DeletionTimestamp: &metav1.Time{Time: moment}}}
	reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{
		Conditions: []metav1.Condition{{Type: hubv1.ReachableCondition, Status: metav1.ConditionTrue}},
	}}
	c := passOf(&observed.Cluster{
		Now: moment.Add(400 * time.Millisecond), Registration: reg,
		Objects: map[plan.Key]*observed.Object{k: {Delivery: d.Name, Observed: plan.Observed{Key: k, Addon: "a"}}},
	}, &delivery{Delivery: &observed.Delivery{AddonDelivery: d.DeepCopy(), Before: d, Leaving: true}})
	r := &Reconciler{
		Clock: clocktesting.NewFakePassiveClock(moment.Add(600 * time.Millisecond)), Recorder: events.NewFakeRecorder(10),
		Config: &hubconfig.Config{RemovalDelay: 500 * time.Millisecond},
		Client: interceptor.NewClient(nil, interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return nil
			},
		}),
	}
	steps := c.Steps(r.Config)
	if len(steps) != 1 || steps[0].Verb != plan.Hold {
		t.Fatalf("the plan is %+v, want the removal held", steps)
	}
	if again, err := r.finish(t.Context(), c, steps, nil); err != nil || again <= 0 || again > 100*time.Millisecond {
		t.Errorf("looks again after %s (%v), want at most 100ms", again, err)
	}
}

// TestLastOut: the last delivery of a namespace takes the kubeconfig copy with it, also if all of them go at once.
func TestLastOut(t *testing.T) {
	at := func(namespace string, leaving bool, addons ...string) *delivery {
		d := &delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}}}
		if leaving {
			d.DeletionTimestamp, d.Leaving = &metav1.Time{}, true
		}
		for _, a := range addons {
			d.Status.Addons = append(d.Status.Addons, hubv1.AddonStatus{Name: a})
		}
		return d
	}
	orphaned := func(d *delivery) *delivery {
		for i := range d.Status.Addons {
			d.Status.Addons[i].State = hubv1.AddonOrphaned
		}
		return d
	}
	for name, tc := range map[string]struct {
		others []*delivery
		want   bool
	}{
		"Alone":                         {nil, true},
		"OtherStays":                    {[]*delivery{at("a", false, "x")}, false},
		"OtherStaysWithNothingYet":      {[]*delivery{at("a", false)}, false},
		"OtherLeavesAndHasSomething":    {[]*delivery{at("a", true, "x")}, false},
		"OtherIsDoneToo":                {[]*delivery{at("a", true)}, true},
		"OtherIsDoneAndAThirdIsNot":     {[]*delivery{at("a", true), at("a", true, "x")}, false},
		"OtherHasOrphansOnly":           {[]*delivery{orphaned(at("a", true, "x"))}, true},
		"OtherHasOrphansAndMore":        {[]*delivery{orphaned(at("a", true, "x")), at("a", true, "y")}, false},
		"OtherStaysWithOrphansOnly":     {[]*delivery{orphaned(at("a", false, "x"))}, false},
		"OtherIsInAnotherNamespaceOnly": {[]*delivery{at("b", false, "x")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := at("a", true)
			c := passOf(&observed.Cluster{}, append([]*delivery{d}, tc.others...)...)
			if got := c.lastOut(d); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
