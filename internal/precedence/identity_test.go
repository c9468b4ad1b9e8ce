// SPDX-License-Identifier: Apache-2.0

package precedence_test

import (
	"testing"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/precedence"
)

// A hostile cluster of the platform's reports as UID of kube-system (which may be ^[0-9A-Za-z-]{1,64}$) the fingerprint of another one's workload
// identity, which anybody can compute: 32 hex digits of provider and name. It has no CA to prove, and the other one stands back.
func TestUIDThatIsAWorkloadIdentity(t *testing.T) {
	platform := func(namespace string) bool { return namespace == "fleet" }
	for name, victim := range map[string]hubv1.ClusterRegistration{
		"OfATenant":                   reg("a", "victim", time.Hour, named),
		"OfThePlatformsRegisteredNow": reg("fleet", "victim", -time.Minute, named),
	} {
		t.Run(name, func(t *testing.T) {
			all := []hubv1.ClusterRegistration{victim, reg("fleet", "liar", 0, signed("evil"))}
			if instead := precedence.Holder(&all[0], all, platform); instead != nil {
				t.Errorf("%s stands back for %s", all[0].UID, instead.UID)
			}
			if instead := precedence.Holder(&all[1], all, platform); instead != nil {
				t.Errorf("%s stands back for %s", all[1].UID, instead.UID)
			}
		})
	}
}
