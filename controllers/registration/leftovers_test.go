// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
)

// TestRecalled: a registration waits for a delivery to be made again only if somebody makes it again.
func TestRecalled(t *testing.T) {
	reg := types.NamespacedName{Namespace: "fleet", Name: "one"}
	now, long := metav1.Now(), strings.Repeat("base", 20)
	for name, tc := range map[string]struct {
		object func(o *kustomizev1.Kustomization)
		set    func(s *hubv1.AddonSet)
		taken  bool
		reason string
		want   bool
	}{
		"Left":              {nil, nil, false, hubv1.UnregisteredReason, true},
		"BeingDeleted":      {func(o *kustomizev1.Kustomization) { o.DeletionTimestamp, o.Finalizers = &now, []string{"flux"} }, nil, false, hubv1.UnregisteredReason, false},
		"DeletedAndStuck":   {func(o *kustomizev1.Kustomization) { o.DeletionTimestamp, o.Finalizers = &now, []string{"flux"} }, nil, false, hubv1.OriginDeletedReason, true},
		"NotTheHubs":        {func(o *kustomizev1.Kustomization) { o.Name = "forged" }, nil, false, hubv1.UnregisteredReason, false},
		"OutOfReach":        {func(o *kustomizev1.Kustomization) { o.Namespace = "stranger" }, func(s *hubv1.AddonSet) { s.Namespace = "stranger" }, false, hubv1.UnregisteredReason, false},
		"OfASetThatIsGone":  {nil, func(s *hubv1.AddonSet) { s.Name = "other" }, false, hubv1.UnregisteredReason, false},
		"OfASetThatGoes":    {nil, func(s *hubv1.AddonSet) { s.DeletionTimestamp, s.Finalizers = &now, []string{"f"} }, false, hubv1.UnregisteredReason, false},
		"OfASetThatIsWrong": {nil, func(s *hubv1.AddonSet) { s.Status.Conditions = stalled() }, false, hubv1.UnregisteredReason, false},
		"OfALongName": {func(o *kustomizev1.Kustomization) {
			o.Labels[hubv1.AddonSetLabel], o.Annotations[hubv1.DeliveryAnnotation] = identity.LabelValue(long), identity.Delivery(long, reg)
		}, func(s *hubv1.AddonSet) { s.Name = long }, false, hubv1.UnregisteredReason, true},
		"SaysAnotherDelivery": {func(o *kustomizev1.Kustomization) { o.Annotations[hubv1.DeliveryAnnotation] = "other" }, nil, false, hubv1.UnregisteredReason, false},
		"ItsNameIsTaken":      {nil, nil, true, hubv1.ForcedReason, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{hubv1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
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
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object, set).Build()
			if tc.taken {
				other := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("base", reg)}}
				other.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: "two"}
				if err := api.Create(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{Live: api, Config: &hubconfig.Config{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}
			if got, err := r.recalled(t.Context(), reg, tc.reason); err != nil || got != tc.want {
				t.Errorf("got %t, %v; want %t", got, err, tc.want)
			}
		})
	}
}

func stalled() []metav1.Condition {
	return []metav1.Condition{{Type: hubv1.StalledCondition, Status: metav1.ConditionTrue}}
}
