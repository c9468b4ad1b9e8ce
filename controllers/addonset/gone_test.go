// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// A set is deleted, and a user takes its finalizer off, which leaves its deliveries as they are. The cache still shows the set. What the
// removal guard grants then cannot be noted any more, and so nothing goes.
func TestNothingIsWithdrawnForASetThatIsGone(t *testing.T) {
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", Generation: 1,
		Finalizers: []string{hubv1.Finalizer}, DeletionTimestamp: new(metav1.Now())}}
	set.Spec.SelectAll = true
	set.Spec.Addons = []hubv1.Addon{{Name: "hello"}}
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", UID: "one"}}
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("base", client.ObjectKeyFromObject(reg)), UID: "d",
		Labels: map[string]string{hubv1.AddonSetLabel: "base"}, Finalizers: []string{hubv1.Finalizer}}}
	d.Spec.AddonSetRef.Name, d.Spec.AddonSetRef.UID = "base", "set"
	d.Spec.RegistrationRef.Namespace, d.Spec.RegistrationRef.Name = "fleet", "one"
	d.Status.Addons = []hubv1.AddonStatus{{Name: "hello", State: hubv1.AddonReady, AppliedGeneration: 1}}
	d.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded"}}
	r := newFixture(t, reg, d)
	if _, err := r.Reconcile(t.Context(), set); err != nil {
		t.Error(err)
	}
	there := &hubv1.AddonDelivery{}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(d), there); err != nil || there.Spec.Withdrawal != "" || there.DeletionTimestamp != nil {
		t.Errorf("it is withdrawn: %+v, %v", there.Spec, err)
	}
}
