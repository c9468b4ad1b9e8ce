// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestRefusedIsTold: a registration says what of its owner's is refused, of all its deliveries; what each of them cannot read, once.
func TestRefusedIsTold(t *testing.T) {
	broken := &unstructured.Unstructured{Object: map[string]any{"kind": "TenantControlPlane", "metadata": map[string]any{"name": "one", "annotations": map[string]any{hubv1.VariablesAnnotation: "- a list"}}}}
	const unreadable = `annotation chandler.dev/variables of TenantControlPlane "one" is not an object in JSON or YAML; it is ignored`
	delivery := func(set, message string) *hubv1.AddonDelivery {
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: set}}
		d.Spec.AddonSetRef.Name = set
		if message != "" {
			status.Set(d, hubv1.OverridesRefusedCondition, metav1.ConditionTrue, hubv1.OverrideRefusedReason, message, time.Time{})
		}
		return d
	}
	cases := map[string]struct {
		deliveries []*hubv1.AddonDelivery
		origin     *unstructured.Unstructured
		want       string // empty for no condition
	}{
		"Nothing": {[]*hubv1.AddonDelivery{delivery("a", "")}, nil, ""},
		"One":     {[]*hubv1.AddonDelivery{delivery("a", "no")}, nil, "AddonSet flux-system/a: no"},
		"Two": {[]*hubv1.AddonDelivery{delivery("b", "no"), delivery("a", "not that")}, nil,
			"AddonSet flux-system/a: not that; AddonSet flux-system/b: no"},
		"Unreadable":        {nil, broken, unreadable},
		"UnreadableOne":     {[]*hubv1.AddonDelivery{delivery("a", unreadable), delivery("b", unreadable)}, broken, unreadable},
		"UnreadableAndMore": {[]*hubv1.AddonDelivery{delivery("a", unreadable+"; no")}, broken, unreadable + "; AddonSet flux-system/a: no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{}
			status.Set(reg, hubv1.OverridesRefusedCondition, metav1.ConditionTrue, "Old", "of yesterday", time.Time{})
			var s Sets
			for _, d := range tc.deliveries {
				s.refuse(d)
			}
			s.Unreadable(reg, tc.origin)
			ready := s.reportRefused(reg, time.Time{})
			c := status.Find(reg, hubv1.OverridesRefusedCondition)
			if tc.want == "" {
				if c != nil || ready != "" {
					t.Errorf("it says %+v and %q, want nothing", c, ready)
				}
				return
			}
			if c == nil || c.Reason != hubv1.OverrideRefusedReason || c.Message != tc.want {
				t.Errorf("it says %+v, want %s", c, tc.want)
			}
			if ready != "; refused: "+tc.want {
				t.Errorf("Ready says %q", ready)
			}
		})
	}
	var s Sets
	s.refuse(delivery("a", strings.Repeat("x", 2000)))
	if ready := s.reportRefused(&hubv1.ClusterRegistration{}, time.Time{}); len(ready) > 400 {
		t.Errorf("Ready says it in %d characters", len(ready))
	}
}
