// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
)

// The hub's own network fails. The hub sees all clusters fail at the same moment, and suspends none. Then it is started anew, on another node:
// the statuses say that all are down, and it has not asked any itself. It suspends none of them either.
func TestDoubtAfterARestart(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(noon)
	pool := probe.NewPool(probe.PoolOptions{Interval: time.Minute, Clock: clock, Random: func() float64 { return 0.5 },
		Probe: func(context.Context, *kubeconfig.Config) probe.Result {
			return probe.Result{Time: clock.Now(), Err: &probe.Failure{Reason: probe.ReasonDialTimeout}}
		}})
	r := &Reconciler{Clock: clock, Pool: pool, Config: &hubconfig.Config{ProbeInterval: time.Minute}}
	config := configOf(t, kubeConfigFor("https://192.0.2.1:6443"))
	cluster := func(i int, suspended bool) *hubv1.ClusterRegistration {
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: fmt.Sprintf("c%02d", i)}}
		reg.Status.ClusterUID = "u"
		reg.Status.Credential = &hubv1.CredentialStatus{SecretName: "one", Key: "admin.conf", Fingerprint: config.Fingerprint()}
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionFalse, probe.ReasonDialTimeout, "", noon.Add(-time.Hour))
		if suspended {
			status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.ClusterUnreachableReason, "", noon.Add(-time.Hour))
		}
		return reg
	}
	found := resolution{secret: "one", candidates: []candidate{{key: "admin.conf", config: config}}}
	look := func(reg *hubv1.ClusterRegistration) bool {
		if _, _, err := r.suspend(t.Context(), reg, nil, r.probe(reg, found)); err != nil {
			t.Fatal(err)
		}
		return status.IsTrue(reg, hubv1.SuspendedCondition)
	}
	for i := range 20 {
		if look(cluster(i, false)) {
			t.Errorf("cluster %d is suspended before it is asked", i)
		}
	}
	if !look(cluster(20, true)) {
		t.Error("what was suspended is resumed before it is asked")
	}
	pool.Step(t.Context())
	for i := range 20 {
		if look(cluster(i, false)) {
			t.Errorf("cluster %d is suspended, though all fail at the same moment", i)
		}
	}
	clock.SetTime(noon.Add(time.Hour)) // and nobody has asked any for long
	none := cluster(21, false)
	if found.candidates = nil; !look(none) {
		t.Error("there is nothing to ask a cluster with, and it is not suspended")
	}
}
