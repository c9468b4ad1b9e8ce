// SPDX-License-Identifier: Apache-2.0

package listing_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/listing"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestStream: a list of none, one and several objects is a list that everybody can read.
func TestStream(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, inYAML := range []bool{false, true} {
			for n := range 3 {
				var b strings.Builder
				s := &listing.Stream{W: &b, YAML: inYAML, Plain: plain}
				for range n {
					must.Do(t, s.Add(map[string]any{"text": "one\n\n  two\n", "list": []int{1}}))
				}
				must.Do(t, s.Close())
				var got struct {
					Kind  string
					Items []struct{ Text string }
				}
				if err := yaml.Unmarshal([]byte(b.String()), &got); err != nil || len(got.Items) != n || (got.Kind == "List") == plain {
					t.Fatalf("%d objects are %q, %v", n, b.String(), err)
				}
				for _, o := range got.Items {
					if o.Text != "one\n\n  two\n" {
						t.Errorf("a text became %q", o.Text)
					}
				}
			}
		}
	}
}

// TestAddonHasFailed: what somebody has to look at.
func TestAddonHasFailed(t *testing.T) {
	for state, want := range map[hubv1.AddonState]bool{hubv1.AddonFailed: true, hubv1.AddonNotOwned: true, hubv1.AddonReady: false,
		hubv1.AddonHeld: false, hubv1.AddonUnreachable: false} {
		if got := (&listing.Addon{AddonStatus: hubv1.AddonStatus{State: state}}).HasFailed(); got != want {
			t.Errorf("%s: %v", state, got)
		}
	}
}

// TestMessageOfWhatIsReady: a message is left out only if the other columns say all of it.
func TestMessageOfWhatIsReady(t *testing.T) {
	for _, tc := range []struct {
		message      string
		ready, total int32 // add-ons of a cluster, clusters of a set
		shown        bool
	}{
		{"the add-on is Ready", 1, 1, false},
		{"all 12 add-ons are Ready", 12, 12, false},
		{"delivered to 12/12 clusters", 12, 12, false},
		{"all 12 add-ons are Ready", 11, 12, true}, // of another moment than the counts
		{"delivered to 0/1 clusters", 0, 1, true},
		{"delivered to 1/1 clusters; 1 paused or suspended", 1, 1, true},
		{"all 2 add-ons are Ready; a removal is held: see condition RemovalsHeld", 2, 2, true},
		{"spec.pause: until 2026-06-01T13:00:00Z; its Flux objects are suspended", 2, 2, true},
	} {
		set, reg := &hubv1.AddonSet{}, &hubv1.ClusterRegistration{}
		set.Status.Clusters = &hubv1.ClusterCounts{Updated: tc.ready, Matched: tc.total, UpdatedSummary: status.Fraction(tc.ready, tc.total)}
		reg.Status.AddonCounts = &hubv1.ObjectCounts{Ready: tc.ready, Total: tc.total}
		for _, o := range []status.Object{set, reg} {
			status.Set(o, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason, tc.message, time.Unix(0, 0))
		}
		is := listing.Cluster(reg, time.Unix(0, 0))
		if strings.HasPrefix(tc.message, "delivered") {
			is = listing.Set(set, time.Unix(0, 0))
		}
		if got := is.Cells[len(is.Cells)-1]; got != tc.message && tc.shown || got != "" && !tc.shown {
			t.Errorf("of %q, with %d of %d, it shows %q", tc.message, tc.ready, tc.total, got)
		}
	}
}
