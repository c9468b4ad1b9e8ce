// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/token"
)

// A year goes by, a day at a time: there is one event 30, 7 and 1 days ahead, and one when it is too late.
func TestExpiry(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	recorder := events.NewFakeRecorder(100)
	r := &Reconciler{Clock: clock, Recorder: recorder, Client: fake.NewClientBuilder().WithScheme(hubscheme.New()).Build()}
	at := metav1.NewTime(clock.Now().AddDate(1, 0, 0))
	reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{Credential: &hubv1.CredentialStatus{SecretName: "s", Key: "value", ExpirationTime: &at}}}
	var days []int
	for day := 365; day >= -2; day-- {
		before := reg.DeepCopy()
		must.Do(t, r.expiry(t.Context(), reg))
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
	if err := r.expiry(t.Context(), reg); err != nil || status.Find(reg, hubv1.CredentialExpiringCondition) != nil {
		t.Error("a renewed credential is still said to expire")
	}
}

// A token that the hub renews is reported when the hub is late with it, however short it lives, and not before.
func TestExpiryOfARenewedToken(t *testing.T) {
	issued := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		lifetime, age time.Duration
		says          time.Duration // what the notes say instead
		notes         string
		want          string
	}{
		"Fresh":           {lifetime: 24 * time.Hour, age: time.Hour},
		"ToBeRenewed":     {lifetime: 24 * time.Hour, age: 9 * time.Hour},
		"Late":            {lifetime: 24 * time.Hour, age: 12 * time.Hour, want: hubv1.ExpiresIn1DayReason},
		"LateWithAMonth":  {lifetime: 720 * time.Hour, age: 361 * time.Hour, want: hubv1.ExpiresIn30DaysReason},
		"Expired":         {lifetime: 24 * time.Hour, age: 25 * time.Hour, want: hubv1.ExpiredReason},
		"NotesOfAnother":  {lifetime: 24 * time.Hour, age: time.Hour, notes: "g", want: hubv1.ExpiresIn1DayReason},
		"NotesThatExcuse": {lifetime: 24 * time.Hour, age: 23 * time.Hour, says: 9000 * time.Hour, want: hubv1.ExpiresIn1DayReason},
	} {
		t.Run(name, func(t *testing.T) {
			notes := token.Notes{Issued: issued, Expires: issued.Add(cmp.Or(tc.says, tc.lifetime)), Fingerprint: cmp.Or(tc.notes, "f")}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "s", Annotations: notes.Annotations()}}
			secret.Annotations[hubv1.RenewTokenAnnotation] = "24h"
			at := metav1.NewTime(issued.Add(tc.lifetime))
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
			reg.Status.Credential = &hubv1.CredentialStatus{SecretName: "s", Key: "value", Fingerprint: "f", ExpirationTime: &at}
			r := &Reconciler{Clock: clocktesting.NewFakeClock(issued.Add(tc.age)), Client: fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(secret).Build()}
			must.Do(t, r.expiry(t.Context(), reg))
			if got := status.Reason(reg, hubv1.CredentialExpiringCondition); got != tc.want || !reg.Status.Credential.Renewed {
				t.Errorf("reason %q, want %q; %+v", got, tc.want, reg.Status.Credential)
			}
		})
	}
}
