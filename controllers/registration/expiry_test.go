// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// A year goes by, a day at a time: there is one event 30, 7 and 1 days ahead, and one when it is too late.
func TestExpiry(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	recorder := events.NewFakeRecorder(100)
	r := &Reconciler{Clock: clock, Recorder: recorder}
	at := metav1.NewTime(clock.Now().AddDate(1, 0, 0))
	reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{Credential: &hubv1.CredentialStatus{SecretName: "s", Key: "value", ExpirationTime: &at}}}
	var days []int
	for day := 365; day >= -2; day-- {
		before := reg.DeepCopy()
		r.expiry(reg)
		r.tellExpiry(before, reg)
		select {
		case e := <-recorder.Events:
			days = append(days, day)
			if !strings.Contains(e, `Secret "s", key value`) || !strings.Contains(e, "2027-01-01T00:00:00Z") {
				t.Errorf("the event is %q", e)
			}
		default:
		}
		clock.Step(24 * time.Hour)
	}
	if len(days) != 4 || days[0] != 30 || days[1] != 7 || days[2] != 1 || days[3] != 0 {
		t.Errorf("events at days %v before the end, want 30, 7, 1, 0", days)
	}
	later := metav1.NewTime(clock.Now().AddDate(1, 0, 0))
	reg.Status.Credential.ExpirationTime = &later
	if r.expiry(reg); status.Find(reg, hubv1.CredentialExpiringCondition) != nil {
		t.Error("a renewed credential is still said to expire")
	}
}
