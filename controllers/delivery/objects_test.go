// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
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
			c := &cluster{registration: reg, objects: map[plan.Key]*object{k: {}}}
			if got := c.removal(plan.Observed{Key: k}, &hubconfig.Config{TeardownGrace: time.Hour}).Grace; got != tc.want {
				t.Errorf("orphaned after %s, want %s", got, tc.want)
			}
		})
	}
}

// An annotation may have 256 KiB, and whoever may write Flux objects in his own namespace can write it on many: all that leaves the cluster
// waited for what it cost to look up each name. What a set can have is read.
func TestDependsOnMoreThanASetCan(t *testing.T) {
	names := func(n int, prefix string, length int) string {
		return strings.Join(slices.Repeat([]string{prefix + strings.Repeat("a", length)}, n), ",")
	}
	for name, tc := range map[string]struct {
		annotation string
		want       int
	}{
		"Nothing":       {"", 0},
		"One":           {"app", 1},
		"AsMuchAsItCan": {names(17, "", 53) + "," + names(16, plan.SetBefore(""), 63), 33},
		"OneMore":       {names(34, "", 1), 0},
		"ManyOfNothing": {strings.Repeat(",", 200_000), 0},
		"OneLongName":   {strings.Repeat("a", 200_000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "x", Annotations: map[string]string{hubv1.DependsOnAnnotation: tc.annotation}}}
			o := (&Reconciler{}).observe(&cluster{objects: map[plan.Key]*object{}}, k, fluxspec.KustomizationKind)
			if len(o.DependsOn) != tc.want {
				t.Errorf("%d names, want %d", len(o.DependsOn), tc.want)
			}
		})
	}
}
