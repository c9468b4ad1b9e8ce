// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestOver: what a set does not have on a cluster that it is to leave has no claim against another set, whatever its status says that it waits for.
func TestOver(t *testing.T) {
	last := func(s hubv1.AddonStatus) []hubv1.AddonStatus { s.Name = "a"; return []hubv1.AddonStatus{s} }
	for name, tc := range map[string]struct {
		addons       []hubv1.AddonStatus
		there, stays bool
		unregistered bool
		want         bool
	}{
		"never had":                {want: true},
		"lost to another set":      {addons: last(hubv1.AddonStatus{State: hubv1.AddonLostTo}), want: true},
		"to be made after a pause": {addons: last(hubv1.AddonStatus{State: hubv1.AddonPaused}), want: true},
		"there":                    {there: true},
		"the set stays":            {stays: true},
		"the cluster goes":         {stays: true, unregistered: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{}, Set: &hubv1.AddonSet{}}, Result: &render.Result{Objects: []flux.Object{{Addon: "a", Kind: "HelmRelease", Namespace: "ns", Name: "one-a",
				MovedFrom: []hubv1.MovedAddon{{AddonSet: "giver", Namespace: "from", Name: "old"}}}}}}
			d.Name, d.Namespace, d.Status.Addons, d.Selected = "d", "ns", tc.addons, true
			d.Before = d.AddonDelivery
			if !tc.stays {
				d.Set.DeletionTimestamp = &metav1.Time{}
			}
			c := plannedOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{}})
			if tc.unregistered {
				c.Registration = &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
				status.Set(c.Registration, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.OriginLostReason, "", time.Time{})
			}
			if tc.there {
				k := plan.Key{Namespace: "ns", Name: "one-a"}
				c.Objects[k] = &observed.Object{Observed: plan.Observed{Key: k, Addon: "a"}, Delivery: "d"}
			}
			if got := c.over(d)["a"]; got != tc.want {
				t.Errorf("it is %t, want %t", got, tc.want)
			}
		})
	}
}

// plannedOf returns a cluster with some deliveries, before anything is planned for them.
func plannedOf(seen *observed.Cluster, deliveries ...*Delivery) *Cluster {
	c := Begin(seen)
	for _, d := range deliveries {
		seen.Deliveries, c.Deliveries = append(seen.Deliveries, d.Delivery), append(c.Deliveries, d)
	}
	return c
}
