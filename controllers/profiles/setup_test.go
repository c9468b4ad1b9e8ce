// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

const inUse = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: c29tZS1vcGFxdWUtdG9rZW4}}]
`

// A hub that starts while the Secret of a cluster is gone shows no way to it. When the Secret is back as it was, nothing changes in the
// registration but that its kubeconfig is valid again, and that is an event. If the registration controller has missed all that, time helps.
func TestASecretIsBack(t *testing.T) {
	rules := kubeconfig.Rules{AllowMissingCA: true}
	parsed := must.Get(kubeconfig.Parse([]byte(inUse), rules)).Or(t)
	back := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
	back.Status.Credential = &hubv1.CredentialStatus{SecretName: "one", Key: "value", Fingerprint: parsed.Fingerprint()}
	gone := back.DeepCopy()
	set := func(reg *hubv1.ClusterRegistration, valid metav1.ConditionStatus, reason string) {
		status.Set(reg, hubv1.KubeConfigValidCondition, valid, reason, "", time.Now())
	}
	set(back, metav1.ConditionTrue, hubv1.SucceededReason)
	set(gone, metav1.ConditionFalse, hubv1.SecretNotFoundReason)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}, Data: map[string][]byte{"value": []byte(inUse)}}
	for name, tc := range map[string]struct {
		reg    *hubv1.ClusterRegistration
		there  bool
		access bool
		again  bool
	}{
		"Gone":             {gone, false, false, false},
		"Back":             {back, true, true, false},
		"NobodyHasNoticed": {back, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(hubscheme.New())
			if tc.there {
				api = api.WithObjects(secret.DeepCopy())
			}
			r := &Reconciler{Live: api.Build(), Config: &hubconfig.Config{Rules: rules}}
			access, err := r.access(t.Context(), tc.reg, &inventoryv1alpha1.ClusterProfile{})
			if err != nil || (access != nil) != tc.access || (lookAgain(tc.reg, access) > 0) != tc.again {
				t.Errorf("the way is %+v, and it looks again in %s: %v", access, lookAgain(tc.reg, access), err)
			}
		})
	}
	if !showsOtherwise().Update(event.UpdateEvent{ObjectOld: gone, ObjectNew: back}) {
		t.Error("a Secret that is back wakes nobody")
	}
}
