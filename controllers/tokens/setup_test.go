// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// What this controller reads of a delivery wakes it: whether the hub has reported on it, and whether the cluster refuses the token.
func TestADeliveryWakesTheTokens(t *testing.T) {
	says := func(addons ...hubv1.AddonStatus) *hubv1.AddonDelivery {
		d := &hubv1.AddonDelivery{}
		d.Status.Addons = addons
		return d
	}
	addon := func(name string, state hubv1.AddonState, message string) hubv1.AddonStatus {
		return hubv1.AddonStatus{Name: name, State: state, Message: message}
	}
	ready := func(name string) hubv1.AddonStatus { return addon(name, hubv1.AddonReady, "") }
	timeout := addon("a", hubv1.AddonFailed, "UpgradeFailed: timeout")
	refused := addon("a", hubv1.AddonFailed, "UpgradeFailed: the server has asked for the client to provide credentials")
	for name, tc := range map[string]struct {
		before, after *hubv1.AddonDelivery
		want          bool
	}{
		"RightsAreReported":     {says(), says(addon("team-shop", hubv1.AddonProgressing, "")), true},
		"TwoAddonsAreReported":  {says(), says(ready("a"), ready("b")), true},
		"OneMore":               {says(ready("a")), says(ready("a"), ready("b")), false},
		"BeginsToFail":          {says(ready("a"), ready("b")), says(timeout, ready("b")), true},
		"FailsAndIsRefused":     {says(timeout, ready("b")), says(refused, ready("b")), true},
		"IsRefusedStill":        {says(refused, ready("b")), says(refused, ready("b")), false},
		"FailsForAnotherReason": {says(refused, ready("b")), says(timeout, ready("b")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := arrives().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("it wakes the controller: %t, want %t", got, tc.want)
			}
		})
	}
}

// Somebody replaces a Secret by one with the same token that asks for its renewal. The registration may not have missed it at all.
func TestASecretThatIsReplacedAsksForRenewal(t *testing.T) {
	secret := &metav1.PartialObjectMetadata{}
	for name, want := range map[string]bool{"": false, "720h": true} {
		if secret.Annotations = nil; name != "" {
			secret.Annotations = map[string]string{hubv1.RenewTokenAnnotation: name}
		}
		if got := asksForRenewal().Create(event.CreateEvent{Object: secret}); got != want {
			t.Errorf("asking for %q it wakes the controller: %t", name, got)
		}
		if asksForRenewal().Create(event.CreateEvent{Object: secret, IsInInitialList: true}) {
			t.Error("all are looked at twice at the start")
		}
	}
}
