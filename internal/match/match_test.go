// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
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
			s := must.Get(match.New(match.Reach{Namespace: tc.namespace, Platform: tc.platform}, &tc.spec)).Or(t)
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
		if _, err := match.New(match.Reach{Namespace: "flux-system", Platform: true}, &spec); err == nil {
			t.Errorf("%s: no error, and it must be refused", name)
		}
	}
}

// TestAllIsAsFarAsTheSetReaches: a set that selects all clusters selects no more than its namespace reaches.
func TestAllIsAsFarAsTheSetReaches(t *testing.T) {
	for want, reach := range map[string]match.Reach{
		"all clusters":                  {Namespace: "flux-system", Platform: true},
		"all clusters of its Team":      {Namespace: "shop", Team: &match.Team{Namespace: "flux-system", Name: "shop"}},
		"all clusters of its namespace": {Namespace: "tenants"},
	} {
		s := must.Get(match.New(reach, &hubv1.AddonSetSpec{SelectAll: true})).Or(t)
		if s.String() != want {
			t.Errorf("it selects %q, want %q", s, want)
		}
	}
}

// TestWhyIsShort: a set that lists a thousand clusters says so to each cluster that it does not select, in one line.
func TestWhyIsShort(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-of-a-long-name-%04d", i)
	}
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "other", Labels: map[string]string{hubv1.NameLabel: "other"}}}
	in := func(op metav1.LabelSelectorOperator) *hubv1.AddonSetSpec {
		return &hubv1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: hubv1.NameLabel, Operator: op, Values: names}}}}
	}
	s, err := match.New(match.Reach{Namespace: "flux-system", Platform: true}, in(metav1.LabelSelectorOpIn))
	if err != nil {
		t.Fatal(err)
	}
	want := `wants chandler.dev/name in (tenant-of-a-long-name-0000,tenant-of-a-long-name-0001,tenant-of-a-long-name-0002 and 997 more), and the label is "other"`
	if got := s.Why(reg); got != want {
		t.Errorf("why has %d characters: %.200q, want %q", len(got), got, want)
	}
	if got := s.String(); len(got) > 200 {
		t.Errorf("the selector has %d characters", len(got))
	}
	if s, err = match.New(match.Reach{Namespace: "flux-system", Platform: true}, in(metav1.LabelSelectorOpNotIn)); err != nil {
		t.Fatal(err)
	}
	reg.Labels[hubv1.NameLabel] = names[0]
	if got := s.Why(reg); len(got) > 200 || !strings.Contains(got, " notin (") {
		t.Errorf("why has %d characters: %.200q", len(got), got)
	}
	few := &hubv1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{
		MatchLabels:      map[string]string{"env": "prod"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b", "c"}}, {Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist}},
	}}
	if s, err = match.New(match.Reach{Namespace: "flux-system", Platform: true}, few); err != nil {
		t.Fatal(err)
	}
	if got, want := s.String(), metav1.FormatLabelSelector(few.ClusterSelector); got != want {
		t.Errorf("a short selector is %q, want %q, as kubectl takes it", got, want)
	}
}

func TestNoneSelectsAClusterThatIsDrained(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "tenant1"}}
	reg.Status.Conditions = []metav1.Condition{{Type: hubv1.DrainingCondition, Status: metav1.ConditionTrue, Reason: hubv1.DrainInProgressReason}}
	s := must.Get(match.New(match.Reach{Namespace: "flux-system", Platform: true}, &hubv1.AddonSetSpec{SelectAll: true})).Or(t)
	if s.Matches(reg) || s.Why(reg) != "the cluster is being drained" {
		t.Errorf("matches %v, why %q", s.Matches(reg), s.Why(reg))
	}
}
