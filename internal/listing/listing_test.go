// SPDX-License-Identifier: Apache-2.0

package listing_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/listing"
)

// TestStream: a list of none, one and several objects is a list that everybody can read.
func TestStream(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, inYAML := range []bool{false, true} {
			for n := range 3 {
				var b strings.Builder
				s := &listing.Stream{W: &b, YAML: inYAML, Plain: plain}
				for range n {
					if err := s.Add(map[string]any{"text": "one\n\n  two\n", "list": []int{1}}); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
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
