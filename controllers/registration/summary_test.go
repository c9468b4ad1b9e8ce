// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/status"
)

var moment = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// deliveryOf returns a delivery of a set that says this of itself, with add-ons in these states; no reason: it has not been reported on.
func deliveryOf(set string, phase status.Phase, reason string, states ...hubv1.AddonState) hubv1.AddonDelivery {
	key := types.NamespacedName{Namespace: "fleet", Name: "one"}
	d := hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery(set, key), UID: "u"}}
	d.Spec.AddonSetRef.Name, d.Spec.RegistrationRef = set, hubv1.RegistrationReference{Namespace: key.Namespace, Name: key.Name}
	if reason == "" {
		return d
	}
	d.Status.AddonCounts = &hubv1.ObjectCounts{}
	for i, s := range states {
		d.Status.Addons = append(d.Status.Addons, hubv1.AddonStatus{Name: set + string(rune('1'+i)), State: s})
		d.Status.AddonCounts.Total++
		if s == hubv1.AddonReady {
			d.Status.AddonCounts.Ready++
		}
	}
	status.Summarize(&d, status.Summary{Phase: phase, Reason: reason, Message: "says so"}, moment)
	return d
}

func gone(d hubv1.AddonDelivery) hubv1.AddonDelivery {
	d.Spec.Withdrawal = d.UID
	d.DeletionTimestamp = &metav1.Time{Time: moment}
	return d
}

// TestSummary: what a registration says of the deliveries and sets that there are.
func TestSummary(t *testing.T) {
	set := func(name string, deleted bool) hubv1.AddonSet {
		s := hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}, Spec: hubv1.AddonSetSpec{SelectAll: true}}
		if deleted {
			s.DeletionTimestamp = &metav1.Time{Time: moment}
		}
		return s
	}
	ready := func(name string) hubv1.AddonDelivery {
		return deliveryOf(name, status.Done, hubv1.AddonsReadyReason, hubv1.AddonReady, hubv1.AddonReady)
	}
	for name, tc := range map[string]struct {
		deliveries []hubv1.AddonDelivery
		sets       []hubv1.AddonSet
		want       status.Summary
		counts     string
	}{
		"AllReady": {[]hubv1.AddonDelivery{ready("a")}, []hubv1.AddonSet{set("a", false)},
			status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "all 2 add-ons are Ready"}, "2/2"},
		"Deselected": {[]hubv1.AddonDelivery{gone(ready("a"))}, []hubv1.AddonSet{set("a", false)},
			status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: "being withdrawn: flux-system/a (a1, a2)"}, "0/0"},
		"StillThereOfASetBeingDeleted": {[]hubv1.AddonDelivery{gone(ready("a"))}, []hubv1.AddonSet{set("a", true)},
			status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: "being withdrawn: flux-system/a (a1, a2)"}, "0/0"},
		"EmptiedOfASetBeingDeleted": {nil, []hubv1.AddonSet{set("a", true)},
			status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: "no AddonSet is in reach: make one in a platform namespace, or in this one"}, "0/0"},
		"OneStaysOneLeaves": {[]hubv1.AddonDelivery{ready("a"), gone(ready("b"))}, []hubv1.AddonSet{set("a", false), set("b", true)},
			status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: "being withdrawn: flux-system/b (b1, b2)"}, "2/2"},
		"NotReportedYet": {[]hubv1.AddonDelivery{ready("a"), deliveryOf("b", 0, "")}, []hubv1.AddonSet{set("a", false), set("b", false)},
			status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "all 2 add-ons are Ready; about to be delivered: flux-system/b"}, "2/2"},
		"NotMadeYet": {[]hubv1.AddonDelivery{ready("a")}, []hubv1.AddonSet{set("a", false), set("b", false)},
			status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "all 2 add-ons are Ready; about to be delivered: flux-system/b"}, "2/2"},
		"WrittenButNotReady": {[]hubv1.AddonDelivery{deliveryOf("a", status.Working, hubv1.ProgressingReason, hubv1.AddonReady, hubv1.AddonReady)}, []hubv1.AddonSet{set("a", false)},
			status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "all 2 add-ons are Ready; flux-system/a: says so"}, "2/2"},
		"LostToAnother": {[]hubv1.AddonDelivery{ready("a"), deliveryOf("b", status.Broken, hubv1.AddonsLostReason, hubv1.AddonLostTo)}, []hubv1.AddonSet{set("a", false), set("b", false)},
			status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "all 2 add-ons are Ready"}, "2/2"},
		"PartlyLost": {[]hubv1.AddonDelivery{ready("a"), deliveryOf("b", status.Done, hubv1.AddonsLostReason, hubv1.AddonReady, hubv1.AddonLostTo)}, []hubv1.AddonSet{set("a", false), set("b", false)},
			status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "all 3 add-ons are Ready"}, "3/3"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
			status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason, "", moment)
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", moment)
			r := &Reconciler{
				Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}, Clock: clocktesting.NewFakePassiveClock(moment),
				Client: interceptor.NewClient(nil, interceptor.Funcs{
					List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
						switch l := list.(type) {
						case *hubv1.AddonDeliveryList:
							l.Items = tc.deliveries
						case *hubv1.AddonSetList:
							l.Items = tc.sets
						}
						return nil
					},
				}),
			}
			sets := must.Get(r.sets(t.Context(), reg)).Or(t)
			sets.Summarize(reg, serving.Access{}, moment)
			want := &hubv1.ClusterRegistration{}
			status.Summarize(want, tc.want, moment)
			if got, want := status.Find(reg, hubv1.ReadyCondition), status.Find(want, hubv1.ReadyCondition); *got != *want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if reg.Status.AddonCounts.Summary != tc.counts {
				t.Errorf("ADDONS %s, want %s", reg.Status.AddonCounts.Summary, tc.counts)
			}
		})
	}
}
