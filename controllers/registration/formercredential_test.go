// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestFormerCredential: a Secret gets a credential that the cluster refuses. The hub goes on with the copy that the cluster accepts, says at
// once what is refused, and takes the new credential when the cluster accepts it. If the cluster refuses the copy too, or is silent, it counts
// as unreachable, as before.
func TestFormerCredential(t *testing.T) {
	of := types.NamespacedName{Namespace: "tenants", Name: "one"}
	before := kubeConfigFor("https://192.0.2.1:6443")
	after := bytes.Replace(before, []byte("c29tZS1vcGFxdWUtdG9rZW4"), []byte("YW5vdGhlci10b2tlbg"), 1)
	former, next := configOf(t, before), configOf(t, after)
	for name, tc := range map[string]struct {
		reason, formerReason string
		reachable            metav1.ConditionStatus
		valid                string
	}{
		"Unauthorized": {probe.ReasonUnauthorized, "", metav1.ConditionTrue, hubv1.CredentialRefusedReason},
		"Forbidden":    {probe.ReasonForbidden, "", metav1.ConditionTrue, hubv1.CredentialRefusedReason},
		"BothRefused":  {probe.ReasonUnauthorized, probe.ReasonUnauthorized, metav1.ConditionFalse, hubv1.CredentialRefusedReason},
		"Silent":       {probe.ReasonDialTimeout, "", metav1.ConditionFalse, hubv1.SucceededReason},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var accepted atomic.Bool
				pool := probe.NewPool(probe.PoolOptions{Interval: time.Minute, Random: func() float64 { return 0.5 },
					Probe: func(_ context.Context, c *kubeconfig.Config) probe.Result {
						reason := tc.reason
						if c.Fingerprint() == former.Fingerprint() {
							reason = tc.formerReason
						} else if accepted.Load() {
							reason = ""
						}
						if reason != "" {
							return probe.Result{Time: time.Now(), Err: &probe.Failure{Reason: reason, Message: "the server says no"}}
						}
						return probe.Result{Time: time.Now(), ClusterUID: "u", Version: "v1.34.1"}
					}})
				config := &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}, Rules: lenient}
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}, Data: map[string][]byte{"value": after}}
				copied := kubeconfigOf(t, of, "flux-system", before, before)
				api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(secret, copied).Build()
				r := &Reconciler{Client: api, Live: api, Config: config, Pool: pool, Clock: clock.RealClock{}, HubUID: "hub"}
				reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
				reg.Spec.KubeConfig = &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: of.Name}}
				reg.Status.Credential = &hubv1.CredentialStatus{SecretName: of.Name, Key: "value", FromSpec: true,
					Fingerprint: former.Fingerprint(), TargetFingerprint: former.TargetFingerprint()}
				reg.Status.Conditions = []metav1.Condition{{Type: hubv1.ReachableCondition, Status: metav1.ConditionTrue}}
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go func() { _ = pool.Start(ctx) }()
				look := func() {
					if _, _, err := r.access(ctx, reg, nil, origin.Verdict{}); err != nil {
						t.Error(err)
					}
				}
				look()
				go func() {
					for range pool.Events() {
						look()
					}
				}()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				look() // an event of something else
				reachable, valid := status.Find(reg, hubv1.ReachableCondition), status.Find(reg, hubv1.KubeConfigValidCondition)
				if reachable.Status != tc.reachable {
					t.Errorf("Reachable is %s: %s: %s", reachable.Status, reachable.Reason, reachable.Message)
				}
				if valid.Reason != tc.valid || tc.valid != hubv1.SucceededReason && !strings.Contains(valid.Message, `key value: the server says no`) {
					t.Errorf("KubeConfigValid is %s: %s: %s", valid.Status, valid.Reason, valid.Message)
				}
				if time.Since(valid.LastTransitionTime.Time) < 2*time.Minute {
					t.Errorf("KubeConfigValid has changed again at %s", valid.LastTransitionTime)
				}
				if got := reg.Status.Credential; got.Fingerprint != former.Fingerprint() || got.Key != "value" || got.SecretName != of.Name || !got.FromSpec {
					t.Errorf("in use is %+v", got)
				}
				accepted.Store(true)
				time.Sleep(15 * time.Minute)
				synctest.Wait()
				valid = status.Find(reg, hubv1.KubeConfigValidCondition)
				if reg.Status.Credential.Fingerprint != next.Fingerprint() || valid.Status != metav1.ConditionTrue {
					t.Errorf("the cluster takes the new credential: in use is %+v, KubeConfigValid is %s: %s", reg.Status.Credential, valid.Status, valid.Message)
				}
				if is, _ := r.notes.of.Get(of); len(is.keys) != 1 {
					t.Errorf("probed are %v", is.keys)
				}
			})
		})
	}
}
