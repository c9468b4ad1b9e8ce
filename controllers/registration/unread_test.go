// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// A registration was deleted days ago, and stays since for what is written into it, or is being uninstalled. Then the CRD of its origin is not
// there for a moment, as while Kamaji is upgraded. The grace begins with that, and not with the deletion: nothing is orphaned.
func TestUnreadForAMoment(t *testing.T) {
	day := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	type look struct {
		after  time.Duration // of the look before
		origin teardown.Origin
		want   teardown.Mode
	}
	for name, looks := range map[string][]look{
		"ForAMoment":        {{0, teardown.OriginUnknown, teardown.Hold}, {time.Minute, teardown.OriginWanted, teardown.Recreate}},
		"ForTheGrace":       {{0, teardown.OriginUnknown, teardown.Hold}, {59 * time.Minute, teardown.OriginUnknown, teardown.Hold}, {time.Minute, teardown.OriginUnknown, teardown.Orphan}},
		"AgainAndAgain":     {{0, teardown.OriginUnknown, teardown.Hold}, {time.Minute, teardown.OriginWanted, teardown.Recreate}, {time.Hour, teardown.OriginUnknown, teardown.Hold}},
		"WhileItIsLeaving":  {{0, teardown.OriginUnwanted, teardown.Uninstall}, {time.Hour, teardown.OriginUnknown, teardown.Hold}},
		"AndIsGoneWithThat": {{0, teardown.OriginUnknown, teardown.Hold}, {time.Minute, teardown.OriginGone, teardown.Orphan}},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(hubscheme.New())
			for _, o := range []client.Object{&corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}} {
				b = b.WithIndex(o, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
			}
			api, clock := indextest.All(b).Build(), clocktesting.NewFakePassiveClock(day)
			r := &Reconciler{Client: api, Live: api, Config: &hubconfig.Config{TeardownGrace: time.Hour}, Clock: clock}
			ref := origin.Kamaji.Reference("one")
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one",
				Finalizers: []string{hubv1.Finalizer}, DeletionTimestamp: &metav1.Time{Time: day.Add(-72 * time.Hour)}},
				Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref, DeletionPolicy: hubv1.DeletionPolicyOrphan}}
			for i, l := range looks {
				clock.SetTime(clock.Now().Add(l.after))
				verdict := origin.Verdict{Origin: l.origin}
				facts, err := r.endFacts(t.Context(), reg, verdict)
				if got := teardown.Registration(facts); err != nil || got.Mode != l.want {
					t.Errorf("look %d: %+v (%v), want %s", i, got, err, l.want)
				}
			}
		})
	}
}
