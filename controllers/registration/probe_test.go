// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestHurry: a tenant that comes up minutes after its kubeconfig is probed when Kamaji says so, and not when the back-off ends.
func TestHurry(t *testing.T) {
	config := configOf(t, kubeConfigFor("https://192.0.2.1:6443"))
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		r := &Reconciler{Pool: probe.NewPool(probe.PoolOptions{Probe: func(context.Context, *kubeconfig.Config) probe.Result {
			probes.Add(1)
			return probe.Result{Err: &probe.Failure{Reason: probe.ReasonConnectionRefused}}
		}})}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = r.Pool.Start(ctx) }()
		go func() {
			for range r.Pool.Events() { // until the pool ends
			}
		}()
		defer synctest.Wait()
		defer cancel()
		reg := &hubv1.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "one"},
			Spec:       hubv1.ClusterRegistrationSpec{OriginRef: &hubv1.OriginReference{APIGroup: "kamaji.clastix.io", Kind: "TenantControlPlane", Name: "one"}},
		}
		found := resolution{candidates: []candidate{{key: "admin.conf", config: config}}}
		tenant := func(state string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"kubernetesResources": map[string]any{"version": map[string]any{"status": state}}}}}
		}
		r.Pool.Set(probeKey(types.NamespacedName{Namespace: "tenants", Name: "one"}, "admin.conf"), config)
		r.hurry(reg, tenant("Provisioning"), found)
		time.Sleep(10 * time.Minute)
		for _, step := range []struct {
			state string
			want  int32
		}{{"Provisioning", 0}, {"Ready", 1}, {"Ready", 0}} {
			synctest.Wait()
			before := probes.Load()
			r.hurry(reg, tenant(step.state), found)
			synctest.Wait()
			if got := probes.Load() - before; got != step.want {
				t.Errorf("%s: %d probes at once, want %d", step.state, got, step.want)
			}
		}
	})
}

// TestRestart: a hub that is started again goes on with the kubeconfig that a cluster answered to, and asks it when its turn comes. Whatever
// is otherwise than the status says is asked at once.
func TestRestart(t *testing.T) {
	admin := configOf(t, kubeConfigFor("https://192.0.2.1:6443"))
	other := configOf(t, kubeConfigFor("https://192.0.2.2:6443"))
	for name, tc := range map[string]struct {
		reachable   metav1.ConditionStatus
		fingerprint string
		fails       bool
		atOnce      bool
	}{
		"as it was":           {metav1.ConditionTrue, admin.Fingerprint(), false, false},
		"it fails now":        {metav1.ConditionTrue, admin.Fingerprint(), true, false},
		"was down":            {metav1.ConditionFalse, admin.Fingerprint(), false, true},
		"another kubeconfig":  {metav1.ConditionTrue, "0123", false, true},
		"has not been probed": {metav1.ConditionUnknown, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked sync.Map
				r := &Reconciler{Clock: clock.RealClock{}, Pool: probe.NewPool(probe.PoolOptions{
					Interval: time.Minute, Random: func() float64 { return 0.5 },
					Probe: func(_ context.Context, c *kubeconfig.Config) probe.Result {
						asked.Store(c.Server(), true)
						if tc.fails && c == admin {
							return probe.Result{Time: time.Now(), Err: &probe.Failure{Reason: probe.ReasonUnauthorized}}
						}
						return probe.Result{Time: time.Now(), ClusterUID: "u"}
					},
				})}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = r.Pool.Start(ctx) }()
				reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "one"}}
				reg.Status.Credential = &hubv1.CredentialStatus{SecretName: "one", Key: "admin.conf", Fingerprint: tc.fingerprint}
				reg.Status.Conditions = []metav1.Condition{{Type: hubv1.ReachableCondition, Status: tc.reachable}}
				found := resolution{secret: "one", candidates: []candidate{{key: "admin.conf", config: admin}, {key: "super-admin.conf", config: other}}}
				go func() {
					for range r.Pool.Events() {
						r.probe(reg.DeepCopy(), found)
					}
				}()
				defer synctest.Wait()
				defer cancel()
				r.probe(reg.DeepCopy(), found)
				hasAsked := func(c *kubeconfig.Config) bool { _, ok := asked.Load(c.Server()); return ok }
				time.Sleep(time.Second)
				if got := hasAsked(admin); got != tc.atOnce {
					t.Errorf("asked in the first second: %t", got)
				}
				time.Sleep(time.Minute)
				if !hasAsked(admin) {
					t.Error("not asked in the first minute")
				}
				// Of those that are asked at once, the first to answer is enough.
				if got := hasAsked(other); !tc.atOnce && got != tc.fails {
					t.Errorf("the other kubeconfig was asked: %t", got)
				}
			})
		})
	}
}

func TestTurned(t *testing.T) {
	var p notes
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	for i, step := range []struct {
		key   types.NamespacedName
		state string
		want  bool
		why   string
	}{
		{one, "Provisioning", false, "its first probe is under way anyway"},
		{two, "Ready", false, "each has its own"},
		{one, "Provisioning", false, "no news"},
		{one, "Ready", true, "its API server has come up"},
		{one, "Ready", false, "once"},
		{one, "NotReady", true, "it has gone"},
	} {
		if got := p.turned(step.key, step.state); got != step.want {
			t.Errorf("%d: %s: turned is %t", i, step.why, got)
		}
	}
	p.of.Delete(one)
	if p.turned(one, "Ready") {
		t.Error("what was forgotten is remembered")
	}
}

// TestYoungCluster: a cluster that has never answered has time to come up before anybody is warned of it.
func TestYoungCluster(t *testing.T) {
	failed := func(reason string, times int) probe.Result {
		return probe.Result{Err: &probe.Failure{Reason: reason, Message: "grant the right in the cluster"}, Failures: times}
	}
	for name, tc := range map[string]struct {
		was    metav1.ConditionStatus
		result probe.Result
		want   metav1.ConditionStatus
		warns  bool
	}{
		"ItsRolesAreNotMade":    {"", failed(probe.ReasonForbidden, 1), metav1.ConditionUnknown, false},
		"StillNot":              {metav1.ConditionUnknown, failed(probe.ReasonForbidden, 2), metav1.ConditionUnknown, false},
		"TooLong":               {metav1.ConditionUnknown, failed(probe.ReasonForbidden, probe.FailureThreshold), metav1.ConditionFalse, true},
		"ItDoesNotListenYet":    {metav1.ConditionUnknown, failed(probe.ReasonConnectionRefused, 1), metav1.ConditionUnknown, false},
		"NotItsAddress":         {metav1.ConditionUnknown, failed(probe.ReasonNameNotFound, 1), metav1.ConditionFalse, true},
		"ItAnsweredBefore":      {metav1.ConditionTrue, failed(probe.ReasonForbidden, 1), metav1.ConditionTrue, false},
		"ItWasToldOfBefore":     {metav1.ConditionFalse, failed(probe.ReasonForbidden, 1), metav1.ConditionFalse, false},
		"ItAnsweredAndIsSilent": {metav1.ConditionTrue, failed(probe.ReasonForbidden, probe.FailureThreshold), metav1.ConditionFalse, true},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			r := &Reconciler{Clock: clock.RealClock{}, Recorder: recorder, Pool: probe.NewPool(probe.PoolOptions{})}
			reg := &hubv1.ClusterRegistration{}
			if tc.was != "" {
				status.Set(reg, hubv1.ReachableCondition, tc.was, "Before", "", time.Now())
			}
			before := reg.DeepCopy()
			r.reachable(reg, resolution{candidates: []candidate{{}}}, candidate{}, tc.result, true)
			if got := status.Find(reg, hubv1.ReachableCondition); got.Status != tc.want {
				t.Errorf("Reachable=%s, want %s", got.Status, tc.want)
			}
			r.tell(before, reg)
			select {
			case e := <-recorder.Events:
				if !tc.warns || !strings.HasPrefix(e, "Warning ") {
					t.Errorf("event %q", e)
				}
			default:
				if tc.warns {
					t.Error("nobody is warned")
				}
			}
		})
	}
}
