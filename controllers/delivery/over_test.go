// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
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
			d := &delivery{AddonDelivery: &hubv1.AddonDelivery{}, set: &hubv1.AddonSet{}, result: &render.Result{Objects: []render.Object{{Addon: "a", Kind: "HelmRelease", Namespace: "ns", Name: "one-a",
				MovedFrom: []hubv1.MovedAddon{{AddonSet: "giver", Namespace: "from", Name: "old"}}}}}}
			d.Name, d.Namespace, d.Status.Addons, d.selected = "d", "ns", tc.addons, true
			d.before = d.AddonDelivery
			if !tc.stays {
				d.set.DeletionTimestamp = &metav1.Time{}
			}
			c := &cluster{objects: map[plan.Key]*object{}}
			if tc.unregistered {
				c.registration = &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
				status.Set(c.registration, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.OriginLostReason, "", time.Time{})
			}
			if tc.there {
				k := plan.Key{Namespace: "ns", Name: "one-a"}
				c.objects[k] = &object{Observed: plan.Observed{Key: k, Addon: "a"}, delivery: "d"}
			}
			if got := c.over(d)["a"]; got != tc.want {
				t.Errorf("it is %t, want %t", got, tc.want)
			}
		})
	}
}
