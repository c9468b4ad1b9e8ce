// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
)

func TestMatch(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "tenant1", Labels: map[string]string{"tier": "dev", "region": "eu"}}}
	selector := func(m map[string]string) hubv1.AddonSetSpec {
		return hubv1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: m}}
	}
	cases := map[string]struct {
		namespace string
		platform  bool
		spec      hubv1.AddonSetSpec
		matches   bool
		why       string
	}{
		"Label":            {"flux-system", true, selector(map[string]string{"tier": "dev"}), true, ""},
		"OtherValue":       {"flux-system", true, selector(map[string]string{"tier": "prod"}), false, `wants tier=prod, and the label is "dev"`},
		"NoSuchLabel":      {"flux-system", true, selector(map[string]string{"env": "prod", "tier": "dev"}), false, "wants env=prod, and there is no such label"},
		"All":              {"flux-system", true, hubv1.AddonSetSpec{SelectAll: true}, true, ""},
		"OwnNamespace":     {"tenants", false, hubv1.AddonSetSpec{SelectAll: true}, true, ""},
		"ForeignNamespace": {"team-a", false, hubv1.AddonSetSpec{SelectAll: true}, false, `the set is not in a platform namespace and reaches only clusters in "team-a"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := match.New(tc.namespace, tc.platform, &tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Matches(reg); got != tc.matches {
				t.Errorf("matches %v, want %v", got, tc.matches)
			}
			if got := s.Why(reg); got != tc.why {
				t.Errorf("why %q, want %q", got, tc.why)
			}
		})
	}
	for name, spec := range map[string]hubv1.AddonSetSpec{
		"Absent": {}, "Empty": selector(nil), "Both": {SelectAll: true, ClusterSelector: selector(map[string]string{"a": "b"}).ClusterSelector},
	} {
		if _, err := match.New("flux-system", true, &spec); err == nil {
			t.Errorf("%s: no error, and it must be refused", name)
		}
	}
}

func TestNoneSelectsAClusterThatIsDrained(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "tenant1"}}
	reg.Status.Conditions = []metav1.Condition{{Type: hubv1.DrainingCondition, Status: metav1.ConditionTrue, Reason: hubv1.DrainInProgressReason}}
	s, err := match.New("flux-system", true, &hubv1.AddonSetSpec{SelectAll: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.Matches(reg) || s.Why(reg) != "the cluster is being drained" {
		t.Errorf("matches %v, why %q", s.Matches(reg), s.Why(reg))
	}
}
