// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestMessagesAreBounded: what an author's hundred errors say fits a condition, between characters, and says how much is missing.
func TestMessagesAreBounded(t *testing.T) {
	set := &hubv1.AddonSet{}
	status.Summarize(set, status.Summary{Phase: status.Stalled, Reason: hubv1.InvalidSpecReason, Message: strings.Repeat("é", 43_000)}, now)
	for _, c := range set.Status.Conditions {
		if n := utf8.RuneCountInString(c.Message); n > 2048 || !strings.HasSuffix(c.Message, " more characters)") || !utf8.ValidString(c.Message) {
			t.Errorf("%s has a message of %d characters that ends with %q", c.Type, n, c.Message[max(0, len(c.Message)-60):])
		}
	}
	status.Set(set, hubv1.HealthyCondition, metav1.ConditionFalse, hubv1.FailedReason, "short", now)
	if got := status.Find(set, hubv1.HealthyCondition).Message; got != "short" {
		t.Errorf("a short message became %q", got)
	}
}

// TestBound: everything in a status that other people can make long is short after it, and the second time changes nothing.
func TestBound(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	orphans := func() []hubv1.Orphan {
		return []hubv1.Orphan{{Addon: "a", Message: long}, {Addon: "b", Message: "left"}}
	}
	conditions := func() []metav1.Condition { return []metav1.Condition{{Type: "Ready", Message: long}} }
	cases := map[string]struct {
		object status.Object
		kept   []string
		most   int // bytes of JSON
	}{
		"AddonDelivery": {&hubv1.AddonDelivery{Status: hubv1.AddonDeliveryStatus{Conditions: conditions(), Addons: []hubv1.AddonStatus{{Name: "a", Message: long}, {Name: "b", Message: "fine"}}}}, []string{"fine"}, 4000},
		"AddonSet":      {&hubv1.AddonSet{Status: hubv1.AddonSetStatus{Conditions: conditions(), Orphans: orphans(), HeldRemovals: &hubv1.HeldRemovals{Sample: []string{long, "one (a)"}}}}, []string{"left", "one (a)"}, 5000},
		"ClusterRegistration": {&hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{
			Conditions: conditions(), Orphans: orphans(), Sets: []hubv1.SetResult{{Name: "a/b", Result: long}, {Name: "a/c", Result: "Delivered"}},
		}}, []string{"left", "Delivered"}, 5000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := func() string {
				raw := must.Get(json.Marshal(tc.object)).Or(t)
				return string(raw)
			}
			status.Bound(tc.object)
			first := text()
			if len(first) > tc.most {
				t.Errorf("it has %d bytes, want at most %d", len(first), tc.most)
			}
			for _, short := range tc.kept {
				if !strings.Contains(first, `"`+short+`"`) {
					t.Errorf("%q is not what it was", short)
				}
			}
			if status.Bound(tc.object); text() != first {
				t.Error("the second time changes it")
			}
		})
	}
}
