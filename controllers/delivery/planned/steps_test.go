// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
)

// TestDrainIsWaitedFor: what leaves a cluster that does not answer is orphaned after a grace, but not while a drain still hopes for it.
func TestDrainIsWaitedFor(t *testing.T) {
	k := plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: "tenant1-a"}
	for name, tc := range map[string]struct {
		draining bool
		timeout  time.Duration
		want     time.Duration
	}{
		"NoDrain":      {false, 2 * time.Hour, time.Hour},
		"LongerDrain":  {true, 2 * time.Hour, 2 * time.Hour},
		"ShorterDrain": {true, time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{DrainBeforeDeletion: &hubv1.DrainBeforeDeletion{Timeout: &metav1.Duration{Duration: tc.timeout}}}}
			if tc.draining {
				reg.Status.Conditions = []metav1.Condition{{Type: hubv1.DrainingCondition, Status: metav1.ConditionTrue, Reason: hubv1.DrainInProgressReason}}
			}
			c := plannedOf(&observed.Cluster{Registration: reg, Objects: map[plan.Key]*observed.Object{k: {}}})
			if got := c.Removal(plan.Observed{Key: k}, &hubconfig.Config{TeardownGrace: time.Hour}).Grace; got != tc.want {
				t.Errorf("orphaned after %s, want %s", got, tc.want)
			}
		})
	}
}

// TestGuarded: a removal guard holds no object that Flux uninstalls already, however it came to that.
func TestGuarded(t *testing.T) {
	for name, tc := range map[string]struct {
		deleting, suspended, granted, want bool
	}{
		"IsThere":              {want: true},
		"Granted":              {granted: true},
		"Deleted":              {deleting: true},
		"DeletedWhenSuspended": {deleting: true, suspended: true, want: true},
	} {
		o := &observed.Object{UID: "u", Observed: plan.Observed{Deleting: tc.deleting, Suspended: tc.suspended}}
		d := &Delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{}}}
		if tc.granted {
			d.Spec.Removals = []string{guard.Dropped("u")}
		}
		if got := d.guarded(o); got != tc.want {
			t.Errorf("%s: guarded is %t", name, got)
		}
	}
}
