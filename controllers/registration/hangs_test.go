// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestFluxHangs: a cluster answers the hub, and Flux waits for its first answer. The breaker of that cluster opens after five minutes, and closes
// when Flux has gone on, or tries again after half an hour. Of an object that waits for a worker of Flux, Flux says nothing.
func TestFluxHangs(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(d))) }
	of := types.NamespacedName{Namespace: "tenants", Name: "evil"}
	begun := func(ago time.Duration, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: "Reconciling", Status: "True", Reason: "Progressing", Message: "Fulfilling prerequisites", ObservedGeneration: generation, LastTransitionTime: *at(-ago)}}
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		progresses time.Duration // so long the add-on is in its state
		open       time.Duration // so long it is suspended
		want       bool
		wait       time.Duration
		woken      bool
	}{
		"NotBegun":      {nil, time.Hour, 0, false, 0, false},
		"JustBegun":     {begun(time.Minute, 2), time.Hour, 0, false, 4 * time.Minute, false},
		"Hangs":         {begun(5*time.Minute, 2), time.Hour, 0, true, 0, true},
		"WasResumed":    {begun(time.Hour, 2), 2 * time.Minute, 0, false, 3 * time.Minute, true},
		"NotBegunAgain": {begun(time.Hour, 1), time.Hour, 0, false, 0, false},
		"StillHangs":    {begun(time.Hour, 1), 29 * time.Minute, 29 * time.Minute, true, time.Minute, false},
		"TriesAgain":    {begun(time.Hour, 1), 30 * time.Minute, 30 * time.Minute, false, 0, false},
		"HasGoneOn":     {nil, time.Minute, time.Minute, false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}, ProbeInterval: 2 * time.Minute}
			release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "a", Generation: 2,
				Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", of)},
				Annotations: map[string]string{hubv1.RegistrationAnnotation: of.String()}},
				Status: helmv2.HelmReleaseStatus{Conditions: tc.conditions}}
			release.Spec.Suspend = tc.open > 0
			delivery := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "d"}}
			delivery.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: of.Namespace, Name: of.Name}
			delivery.Status.Addons = []hubv1.AddonStatus{{Name: "a", Kind: "HelmRelease", Object: "a", Since: at(-tc.progresses)}}
			api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(release, delivery).Build()
			r := &Reconciler{Client: api, Clock: clocktesting.NewFakeClock(noon), Config: config, Pool: probe.NewPool(probe.PoolOptions{})}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
			reg.Status.ClusterUID = "u"
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", noon.Add(-time.Hour))
			if tc.open > 0 {
				status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.FluxHangsReason, "", noon.Add(-tc.open))
			}
			wait, _, err := r.suspend(t.Context(), reg, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := status.Reason(reg, hubv1.SuspendedCondition) == hubv1.FluxHangsReason; got != tc.want || wait != tc.wait {
				t.Errorf("suspended: %t, want %t; it decides again after %s, want %s", got, tc.want, wait, tc.wait)
			}
			woken, err := r.waitedFor(t.Context(), noon)
			if err != nil || woken[client.ObjectKeyFromObject(reg)] != tc.woken {
				t.Errorf("woken: %v, %v", woken, err)
			}
		})
	}
}

// TestRefusedCredential: the message of a cluster that answers 401 does not say that it is silent.
func TestRefusedCredential(t *testing.T) {
	for reason, want := range map[string]string{
		probe.ReasonUnauthorized: hubv1.CredentialRefusedReason, probe.ReasonForbidden: hubv1.CredentialRefusedReason,
		probe.ReasonTimedOut: hubv1.ClusterUnreachableReason,
	} {
		r := &Reconciler{Clock: clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)), Config: &hubconfig.Config{}, Pool: probe.NewPool(probe.PoolOptions{})}
		reg := &hubv1.ClusterRegistration{}
		reg.Status.ClusterUID = "u"
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionFalse, reason, "", r.Clock.Now())
		if _, _, err := r.suspend(t.Context(), reg, nil, nil); err != nil {
			t.Fatal(err)
		}
		if got := status.Reason(reg, hubv1.SuspendedCondition); got != want {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

// TestHangsIsLookedUp: which objects Flux waits for is looked up by an index. Each cluster for which Flux waits asks for it, once a minute.
func TestHangsIsLookedUp(t *testing.T) {
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if o := (&client.ListOptions{}).ApplyOptions(opts); o.FieldSelector == nil {
				t.Errorf("all of a %T are read", list)
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	r := &Reconciler{Client: api}
	if _, err := r.waitedFor(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
}
