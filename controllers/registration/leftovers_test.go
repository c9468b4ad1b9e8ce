// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// TestRecalled: a registration waits for a delivery to be made again only if somebody makes it again.
func TestRecalled(t *testing.T) {
	reg := types.NamespacedName{Namespace: "fleet", Name: "one"}
	now, long := metav1.Now(), strings.Repeat("base", 20)
	for name, tc := range map[string]struct {
		object func(o *kustomizev1.Kustomization)
		set    func(s *hubv1.AddonSet)
		taken  bool
		want   bool
	}{
		"Left": {nil, nil, false, true},
		"BeingDeleted": {func(o *kustomizev1.Kustomization) {
			o.DeletionTimestamp, o.Finalizers = &now, []string{fluxstate.Finalizer}
		}, nil, false, true},
		"DeletedAndDone": {func(o *kustomizev1.Kustomization) {
			o.DeletionTimestamp, o.Finalizers = &now, []string{hubv1.FluxObjectFinalizer}
		}, nil, false, false},
		"DeletedAndKeptByAnother": {func(o *kustomizev1.Kustomization) {
			o.DeletionTimestamp, o.Finalizers = &now, []string{"members.example/held"}
		}, nil, false, false},
		"NotTheHubs":       {func(o *kustomizev1.Kustomization) { o.Name = "forged" }, nil, false, false},
		"OutOfReach":       {func(o *kustomizev1.Kustomization) { o.Namespace = "stranger" }, func(s *hubv1.AddonSet) { s.Namespace = "stranger" }, false, false},
		"OfASetThatIsGone": {nil, func(s *hubv1.AddonSet) { s.Name = "other" }, false, false},
		"OfASetThatGoes":   {nil, func(s *hubv1.AddonSet) { s.DeletionTimestamp, s.Finalizers = &now, []string{"f"} }, false, false},
		"BeingDeletedOfASetThatGoes": {func(o *kustomizev1.Kustomization) {
			o.DeletionTimestamp, o.Finalizers = &now, []string{fluxstate.Finalizer}
		}, func(s *hubv1.AddonSet) { s.DeletionTimestamp, s.Finalizers = &now, []string{hubv1.AddonSetFinalizer} }, false, true},
		"BeingDeletedOfASetThatTheHubIsDoneWith": {func(o *kustomizev1.Kustomization) {
			o.DeletionTimestamp, o.Finalizers = &now, []string{fluxstate.Finalizer}
		}, func(s *hubv1.AddonSet) { s.DeletionTimestamp, s.Finalizers = &now, []string{"f"} }, false, false},
		"OfASetThatIsWrong": {nil, func(s *hubv1.AddonSet) { s.Status.Conditions = stalled() }, false, false},
		"OfALongName": {func(o *kustomizev1.Kustomization) {
			o.Labels[hubv1.AddonSetLabel], o.Annotations[hubv1.DeliveryAnnotation] = identity.LabelValue(long), identity.Delivery(long, reg)
		}, func(s *hubv1.AddonSet) { s.Name = long }, false, true},
		"SaysAnotherDelivery": {func(o *kustomizev1.Kustomization) { o.Annotations[hubv1.DeliveryAnnotation] = "other" }, nil, false, false},
		"ItsNameIsTaken":      {nil, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			object := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{
				Namespace: "flux-system", Name: identity.FluxObject("hub", reg, "web"),
				Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", reg), hubv1.AddonLabel: "web", hubv1.AddonSetLabel: "base"},
				Annotations: map[string]string{hubv1.DeliveryAnnotation: identity.Delivery("base", reg)},
			}}
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
			if tc.object != nil {
				tc.object(object)
			}
			if tc.set != nil {
				tc.set(set)
			}
			api := indextest.All(fake.NewClientBuilder().WithScheme(scheme)).WithObjects(object, set).Build()
			if tc.taken {
				other := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("base", reg)}}
				other.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: "two"}
				if err := api.Create(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
			if got, err := r.recalled(t.Context(), match.Missing(reg)); err != nil || len(got) > 0 != tc.want {
				t.Errorf("got %v, %v; want %t", got, err, tc.want)
			}
		})
	}
}

func stalled() []metav1.Condition {
	return []metav1.Condition{{Type: hubv1.StalledCondition, Status: metav1.ConditionTrue}}
}

// TestForcedThoughNothingIsMadeAgain: what somebody forces waits for no delivery that cannot be made again, and tells what stays without one.
func TestForcedThoughNothingIsMadeAgain(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	scheme := hubscheme.New()
	key := types.NamespacedName{Namespace: "fleet", Name: "one"}
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Finalizers: []string{hubv1.RegistrationFinalizer}, DeletionTimestamp: &metav1.Time{Time: now.Add(-time.Hour)},
	}}
	status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.UnregisteredReason, "", now.Add(-time.Hour))
	left := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{
		Namespace: "flux-system", Name: identity.FluxObject("hub", key, "web"),
		Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", key), hubv1.AddonLabel: "web", hubv1.AddonSetLabel: "base"},
		Annotations: map[string]string{hubv1.DeliveryAnnotation: identity.Delivery("base", key)},
	}}
	b := indextest.All(fake.NewClientBuilder().WithScheme(scheme)).WithStatusSubresource(reg).WithObjects(reg, left, &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}})
	for _, o := range []client.Object{&corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}} {
		b = b.WithIndex(o, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}
	api, clock, told := b.Build(), clocktesting.NewFakeClock(now), events.NewFakeRecorder(10)
	r := &Reconciler{
		Client: api, Live: api, Clock: clock, Recorder: told, Pool: probe.NewPool(probe.PoolOptions{}),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}},
	}
	look := func() (there bool, says string) {
		there = true
		for range 3 {
			got := &hubv1.ClusterRegistration{}
			if err := api.Get(t.Context(), key, got); apierrors.IsNotFound(err) {
				return false, says
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := r.finalize(t.Context(), got, nil, origin.Verdict{Origin: teardown.OriginNone}); err != nil {
				t.Fatal(err)
			}
			says = status.Find(got, hubv1.ReadyCondition).Message
		}
		return there, says
	}
	if there, says := look(); !there || !strings.Contains(says, left.Name) {
		t.Errorf("unregistered: it is there %t, and says %q; want it to name what it waits for", there, says)
	}
	clock.Step(time.Hour)
	if there, _ := look(); !there {
		t.Error("unregistered: it has gone, and nobody uninstalls what is left")
	}
	got := &hubv1.ClusterRegistration{}
	if err := api.Get(t.Context(), key, got); err != nil {
		t.Fatal(err)
	}
	got.Annotations = map[string]string{hubv1.ForceUnregisterAnnotation: "true"}
	if err := api.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if there, _ := look(); !there {
		t.Error("forced: it has gone at once, and the delivery could not be made again")
	}
	clock.Step(recallTime)
	r.Tenure = &tenure.Tenure{}
	r.Tenure.Renew(clock.Now())
	if there, _ := look(); !there {
		t.Error("forced, and no hub was at work since: it has gone at once, and nobody has tried to make the delivery again")
	}
	clock.Step(recallTime)
	if there, says := look(); there {
		t.Errorf("forced: it is there still, and says %q", says)
	}
	if len(told.Events) == 0 || !strings.Contains(<-told.Events, left.Name) {
		t.Error("nobody is told of what stays")
	}
}
