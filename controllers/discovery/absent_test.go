// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/origin"
)

// A Secret is not the cluster. One that is gone, or is being deleted under somebody's finalizer, takes its registration along when it has
// not been there for the grace, and one that the hub never saw does not.
func TestSecretThatIsNotThere(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	missing := func(since time.Duration) *metav1.Condition {
		return &metav1.Condition{Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: hubv1.OriginMissingReason, LastTransitionTime: metav1.NewTime(now.Add(-since))}
	}
	for name, tc := range map[string]struct {
		deleting, there bool
		seen, seenBy    types.UID
		condition       *metav1.Condition
		began           time.Duration // how long ago the process began; 0 if it has been there all the time
		again           time.Duration
		goes            bool
		tier            string
	}{
		"BeingDeletedWithALabel": {deleting: true, seen: "u", tier: "gold"},
		"BeingDeleted":           {deleting: true, seen: "u"},
		"BeingDeletedCounted":    {deleting: true, seen: "u", condition: missing(20 * time.Minute), again: 40*time.Minute + 10*time.Millisecond},
		"BeingDeletedLong":       {deleting: true, seen: "u", condition: missing(time.Hour), goes: true},
		"Gone":                   {seen: "u", condition: missing(time.Minute), again: 59*time.Minute + 10*time.Millisecond},
		"GoneLong":               {seen: "u", condition: missing(time.Hour), goes: true},
		"GoneLongAndNoHub":       {seen: "u", condition: missing(time.Hour), began: 10 * time.Minute, again: 50*time.Minute + 10*time.Millisecond},
		"OutOfABackup":           {seen: "u", seenBy: "before", condition: missing(time.Hour)},
		"NeverSeen":              {condition: missing(time.Hour)},
		"ThereAgain":             {there: true, seen: "u", condition: missing(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			ref := origin.Secret.Reference("one")
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "one", UID: "r"}, Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
			reg.Labels = map[string]string{hubv1.NameLabel: "one", hubv1.ProviderLabel: origin.Secret.Provider}
			reg.Annotations = map[string]string{hubv1.CopiedAnnotation: hubv1.NameLabel + "," + hubv1.ProviderLabel}
			if tc.tier != "" {
				reg.Annotations = nil // the fake client takes it for somebody else's
			}
			reg.Status.OriginUID, reg.Status.OriginSeenBy = tc.seen, cmp.Or(tc.seenBy, reg.UID)
			if tc.condition != nil {
				reg.Status.Conditions = []metav1.Condition{*tc.condition}
			}
			b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(reg).
				WithIndex(reg, index.RegistrationOrigin, func(client.Object) []string { return []string{index.Origin(ref)} }).
				WithIndex(&corev1.Secret{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "one", UID: "u", Labels: map[string]string{hubv1.RegisterLabel: "true"}}}
			if tc.tier != "" {
				secret.Labels["tier"] = tc.tier
			}
			if tc.deleting {
				at := metav1.NewTime(now)
				secret.DeletionTimestamp, secret.Finalizers = &at, []string{"foregroundDeletion"}
			}
			if tc.deleting || tc.there {
				b = b.WithObjects(secret)
			}
			api := b.Build()
			config := &hubconfig.Config{Shared: hubconfig.Shared{Origins: origin.Policy{SecretNamespaces: []string{"*"}}}, TeardownGrace: time.Hour}
			r := &Reconciler{
				Client: api, Live: api, Config: config, Clock: clock.NewFakePassiveClock(now), Recorder: events.NewFakeRecorder(10),
				Origins: originreader.New(api, api, config.Origins), Tenure: &tenure.Tenure{},
			}
			if tc.began > 0 {
				r.Tenure.Renew(now.Add(-tc.began))
			}
			result, err := r.Reconcile(t.Context(), Request{Kind: origin.Secret, NamespacedName: client.ObjectKeyFromObject(reg)})
			if err != nil {
				t.Fatal(err)
			}
			err = api.Get(t.Context(), client.ObjectKeyFromObject(reg), reg)
			if gone := err != nil; gone != tc.goes || result.RequeueAfter != tc.again {
				t.Errorf("gone: %t (%v), looks again after %s; want %t, %s", gone, err, result.RequeueAfter, tc.goes, tc.again)
			}
			if reg.Labels["tier"] != tc.tier {
				t.Errorf("the registration has tier %q, want %q", reg.Labels["tier"], tc.tier)
			}
		})
	}
}
