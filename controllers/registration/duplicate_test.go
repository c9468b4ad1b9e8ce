// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestStandsBack: who is not served says what to do, also where the one that is served is dead, and which one that is.
func TestStandsBack(t *testing.T) {
	reg := func(name string, answers metav1.ConditionStatus) *hubv1.ClusterRegistration {
		r := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
		status.Set(r, hubv1.ReachableCondition, answers, "Test", "", moment)
		return r
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		alive, served metav1.ConditionStatus
		want          string
	}{
		"BothAnswer":     {yes, yes, "Remove one of them"},
		"NeitherAnswers": {no, no, "Remove one of them"},
		"TheServedDoes":  {no, yes, "Remove one of them"},
		"OnlyThisDoes":   {yes, no, "not through fleet/served: mend its kubeconfig, or remove it, and this one is served"},
	} {
		if got := standsBack(reg("alive", tc.alive), reg("served", tc.served)); !strings.Contains(got, "ClusterRegistration fleet/served as well") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
