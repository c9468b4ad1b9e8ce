// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestStrange: of which deliveries the matcher is told though nothing of their set or cluster has changed.
func TestStrange(t *testing.T) {
	for name, tc := range map[string]struct {
		set      compiled
		uid      types.UID
		revision string
		want     bool
	}{
		"AsItsSetSays":     {compiled{uid: "u", everyone: "base-1-e3", newcomers: "base-1-e3"}, "u", "base-1-e3", false},
		"OfAnOlderEpoch":   {compiled{uid: "u", everyone: "base-1-e3", newcomers: "base-1-e3"}, "u", "base-1-e2", true},
		"OutOfABackup":     {compiled{uid: "u", everyone: "base-1-e3", newcomers: "base-1-e3"}, "before", "base-1-e3", true},
		"OtherContent":     {compiled{uid: "u", everyone: "base-1-e3", newcomers: "base-1-e3"}, "u", "base-0-e3", true},
		"OfASetThatGoes":   {compiled{uid: "u", leaving: true}, "u", "base-0-e3", false},
		"OfASetThatIsHeld": {compiled{uid: "u", everyone: "base-1-e3", newcomers: "base-1-e3", held: true}, "u", "base-0-e3", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &registry{}
			r.put(types.NamespacedName{Namespace: "flux-system", Name: "base"}, tc.set)
			d := &hubv1.AddonDelivery{}
			d.Namespace = "flux-system"
			d.Spec.AddonSetRef.Name, d.Spec.AddonSetRef.UID, d.Spec.RevisionName = "base", tc.uid, tc.revision
			if got := r.strange(d); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
