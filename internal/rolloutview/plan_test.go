// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// TestPlanOfAFewClusters: a set that says nothing reaches its only cluster at once, and two or more in waves. Who tries it with one cluster
// learns both.
func TestPlanOfAFewClusters(t *testing.T) {
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
	set.Spec.SelectAll = true
	reg := hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge1"}}
	for name, tc := range map[string]struct {
		rollout *hubv1.Rollout
		want    string
	}{
		"says nothing": {nil, "the only cluster gets a new revision at once; with a second one it goes in waves\n"},
		"all at once":  {&hubv1.Rollout{Strategy: hubv1.AllAtOnceStrategy}, "every cluster gets a new revision at once\n"},
	} {
		set.Spec.Rollout = tc.rollout
		p, err := rolloutview.PlanOfFiles(&rolloutview.Input{Set: set, Reach: match.Reach{Namespace: "flux-system", Platform: true},
			Registrations: []hubv1.ClusterRegistration{reg}, Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := p.Page().Flush(&text); err != nil || !strings.Contains(text.String(), "Strategy:  "+tc.want) {
			t.Errorf("%s: %v, want %q:\n%s", name, err, tc.want, text.String())
		}
	}
}
