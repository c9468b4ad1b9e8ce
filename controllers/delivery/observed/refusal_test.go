// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestRefusalOfOneThatIsUnregistered: nothing is begun on a cluster that is being unregistered, as when the registration that was served
// leaves at the same moment. What is there already is served on.
func TestRefusalOfOneThatIsUnregistered(t *testing.T) {
	mine, other := plan.Key{Kind: "HelmRelease", Namespace: "ns", Name: "one-a"}, plan.Key{Kind: "HelmRelease", Namespace: "ns", Name: "one-b"}
	for name, tc := range map[string]struct {
		stays  bool
		object *Object
		want   string
	}{
		"It stays":                  {stays: true},
		"Nothing is there":          {want: hubv1.NotSelectedReason},
		"Something is there":        {object: &Object{Observed: plan.Observed{Key: mine}, Delivery: "d"}},
		"Another set has something": {object: &Object{Observed: plan.Observed{Key: other}, Delivery: "e"}, want: hubv1.NotSelectedReason},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Delivery{AddonDelivery: &hubv1.AddonDelivery{}, Set: &hubv1.AddonSet{}, Selected: true}
			d.Name, d.Namespace, d.Before = "d", "ns", d.AddonDelivery
			c := &Cluster{Objects: map[plan.Key]*Object{}, Registration: &hubv1.ClusterRegistration{}}
			if !tc.stays {
				c.Registration.DeletionTimestamp = &metav1.Time{}
				status.Set(c.Registration, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.UnregisteredReason, "", time.Time{})
			}
			if tc.object != nil {
				c.Objects[tc.object.Key] = tc.object
			}
			if got, why := c.refusal(d); got != tc.want {
				t.Errorf("%q (%s), want %q", got, why, tc.want)
			}
		})
	}
}
