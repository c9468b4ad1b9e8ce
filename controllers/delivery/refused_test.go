// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestRefusedOverridesKeepNothingAway: whatever a cluster's owner writes wrongly, before the add-on came or after, it is delivered, is
// Ready, and follows its set to a new revision. The delivery says what is refused, and forgets it when it is taken back.
func TestRefusedOverridesKeepNothingAway(t *testing.T) {
	cases := map[string]struct {
		change func(*hubv1.ClusterRegistration)
		reason string
		says   string
	}{
		"Exclude": {func(reg *hubv1.ClusterRegistration) {
			reg.Spec.Overrides = []hubv1.Override{{Name: "app", Exclude: true}}
		}, hubv1.OverrideRefusedReason, `add-on "app": override exclude: the set does not let a cluster leave this add-on out`},
		"Chart": {func(reg *hubv1.ClusterRegistration) {
			reg.Spec.Overrides = []hubv1.Override{{Name: "app", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"name":"evil"}}`)}}}}
		}, hubv1.OverrideRefusedReason, "is for the set to decide; no override may change it"},
		"Variable": {func(reg *hubv1.ClusterRegistration) {
			reg.Spec.Variables = map[string]apiextensionsv1.JSON{"replicas": {Raw: []byte(`"three"`)}}
		}, hubv1.VariableRefusedReason, `the cluster's variable "replicas" is ignored here`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reg := registered(testCluster, "c1")
			tc.change(reg)
			app := releaseAddon("app", map[string]any{"values": map[string]any{"replicas": "<< has(vars.replicas) ? vars.replicas + 1 : 2 >>"}})
			objects := append(addonsOf(testSet, "1", app), addonsOf(testSet, "2", app, releaseAddon("more"))[1])
			m := newFixture(t, append(objects, reg, kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"))...)
			m.settle()
			d := m.delivery(testCluster, testSet)
			if m.object(testCluster, "app") == nil || !status.IsTrue(d, hubv1.ReadyCondition) || d.Status.AddonCounts.Summary != "1/1" {
				t.Fatalf("the add-on is kept away: %+v", d.Status)
			}
			c := status.Find(d, hubv1.OverridesRefusedCondition)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) {
				t.Errorf("the delivery says %+v, want %s: %s", c, tc.reason, tc.says)
			}
			if ready := status.Find(d, hubv1.ReadyCondition); !strings.Contains(ready.Message, "see condition OverridesRefused") {
				t.Errorf("Ready says %q", ready.Message)
			}
			before := m.writes
			if m.settle(); m.writes != before {
				t.Errorf("%d writes for nothing", m.writes-before)
			}
			edit(m, "flux-system", d.Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
			m.settle()
			if d = m.delivery(testCluster, testSet); d.Status.ReadyRevision != revisionOf(testSet, "2") || m.object(testCluster, "more") == nil {
				t.Errorf("the cluster stays on revision %s", d.Status.ReadyRevision)
			}
			edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) {
				reg.Spec.Overrides, reg.Spec.Variables = nil, nil
			})
			m.settle()
			if d = m.delivery(testCluster, testSet); status.Find(d, hubv1.OverridesRefusedCondition) != nil || !status.IsTrue(d, hubv1.ReadyCondition) {
				t.Errorf("what was taken back is still told of: %+v", d.Status.Conditions)
			}
		})
	}
}
