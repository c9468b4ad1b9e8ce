// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestOriginIgnored: a registration that somebody has written says that it keeps the origin of its name from being registered, as long as
// that is so. Whatever happens to the origin wakes the registration.
func TestOriginIgnored(t *testing.T) {
	own := origin.Secret.Reference("edge")
	kubeConfig := &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "mine"}}
	for name, tc := range map[string]struct {
		spec         hubv1.ClusterRegistrationSpec
		label        string
		another      bool // registration of the origin
		want, awakes bool
	}{
		"ByHand":           {hubv1.ClusterRegistrationSpec{KubeConfig: kubeConfig}, "true", false, true, true},
		"NothingAsked":     {hubv1.ClusterRegistrationSpec{KubeConfig: kubeConfig}, "", false, false, false},
		"RegisteredBefore": {hubv1.ClusterRegistrationSpec{KubeConfig: kubeConfig}, "true", true, false, true},
		"OfTheOrigin":      {hubv1.ClusterRegistrationSpec{KubeConfig: kubeConfig, OriginRef: &own}, "true", false, false, false},
		"KeptInGit":        {hubv1.ClusterRegistrationSpec{}, "true", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge"}, Spec: tc.spec}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge", UID: "u"}}
			if tc.label != "" {
				secret.Labels = map[string]string{hubv1.RegisterLabel: tc.label}
			}
			b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(reg, secret).
				WithIndex(reg, index.RegistrationSecret, func(client.Object) []string { return nil }).
				WithIndex(reg, index.RegistrationOrigin, func(o client.Object) []string {
					if ref := o.(*hubv1.ClusterRegistration).Spec.OriginRef; ref != nil {
						return []string{index.Origin(*ref)}
					}
					return nil
				})
			if tc.another {
				b = b.WithObjects(&hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge-secret"}, Spec: hubv1.ClusterRegistrationSpec{OriginRef: &own}})
			}
			api := b.Build()
			r := &Reconciler{
				Client: api, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)), Config: &hubconfig.Config{},
				Origins: originreader.New(api, api, origin.Policy{SecretNamespaces: []string{"*"}}),
			}
			must.Do(t, r.namesake(t.Context(), reg))
			c := status.Find(reg, hubv1.OriginIgnoredCondition)
			if (c != nil) != tc.want || c != nil && !strings.Contains(c.Message, `write spec.originRef: {apiGroup: "", kind: Secret, name: edge} here`) {
				t.Errorf("the condition is %+v", c)
			}
			if woken := len(r.usersOfSecret(t.Context(), secret)) > 0; woken != tc.awakes {
				t.Errorf("woken by the Secret: %t, want %t", woken, tc.awakes)
			}
			before := reg.DeepCopy()
			secret.Labels = nil
			must.Do(t, api.Update(t.Context(), secret))
			if err := r.namesake(t.Context(), reg); err != nil || status.Find(reg, hubv1.OriginIgnoredCondition) != nil {
				t.Errorf("it stays when nobody asks any more: %+v, %v", before.Status.Conditions, err)
			}
		})
	}
}
