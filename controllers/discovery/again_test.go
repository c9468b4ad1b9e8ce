// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/origin"
)

// TestUnregisterAgain: of an origin that is unregistered, and whose registration is not there, one is made if something of it is still delivered.
// Whoever writes a delivery beside an origin that nobody wants registered has no registration made by that.
func TestUnregisterAgain(t *testing.T) {
	ref := hubv1.RegistrationReference{Namespace: "fleet", Name: "one"}
	delivery := func(namespace, name string) client.Object {
		return &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: hubv1.AddonDeliverySpec{
			RegistrationRef: ref, AddonSetRef: hubv1.DeliveredSetReference{Name: "base"},
		}}
	}
	named := identity.Delivery("base", ref.Key())
	served := func(d client.Object) client.Object {
		d.(*hubv1.AddonDelivery).Status.Addons = []hubv1.AddonStatus{{Name: "hello", State: hubv1.AddonReady}}
		return d
	}
	for name, tc := range map[string]struct {
		delivery client.Object
		also     client.Object
		secrets  string
		asks     bool
		want     bool
	}{
		"Delivered":         {delivery("flux-system", named), nil, "fleet", false, true},
		"DeliveredBeside":   {served(delivery("fleet", named)), nil, "fleet", false, true},
		"BeingDeleted":      {delivery("flux-system", named), nil, "fleet", false, false},
		"NothingDelivered":  {nil, nil, "fleet", false, false},
		"NotTheHubs":        {delivery("flux-system", "forged"), nil, "fleet", false, false},
		"OutOfReach":        {served(delivery("stranger", named)), nil, "fleet", false, false},
		"ForgedBeside":      {delivery("fleet", named), nil, "fleet", false, false},
		"MayNotRegister":    {served(delivery("fleet", named)), nil, "elsewhere", false, false},
		"AnotherAsks":       {delivery("flux-system", named), nil, "fleet", true, false},
		"SaysNothing":       {served(delivery("fleet", named)), nil, "fleet", false, false}, // somebody may have written the registration by hand
		"NameOfAnotherOnes": {delivery("flux-system", named), &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}, "fleet", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			labels := map[string]string{hubv1.RegisterLabel: strconv.FormatBool(tc.asks)}
			if name == "SaysNothing" {
				labels = nil
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", Labels: labels}}
			if name == "BeingDeleted" {
				secret.DeletionTimestamp, secret.Finalizers = &metav1.Time{Time: time.Now()}, []string{"foregroundDeletion"}
			}
			b := indextest.NoTeams(fake.NewClientBuilder().WithScheme(scheme)).WithObjects(secret).
				WithIndex(&hubv1.ClusterRegistration{}, index.RegistrationOrigin, func(client.Object) []string { return nil }).
				WithIndex(&hubv1.AddonDelivery{}, index.DeliveryRegistration, func(o client.Object) []string {
					return []string{o.(*hubv1.AddonDelivery).Spec.RegistrationRef.Key().String()}
				})
			for _, o := range []client.Object{tc.delivery, tc.also} {
				if o != nil {
					b = b.WithObjects(o)
				}
			}
			api, made := b.Build(), false
			config := &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}, Origins: origin.Policy{SecretNamespaces: []string{tc.secrets}}}}
			r := &Reconciler{
				Live: api, Config: config, Clock: clock.NewFakePassiveClock(time.Now()), Recorder: events.NewFakeRecorder(10),
				Origins: originreader.New(api, api, config.Origins),
				Client: interceptor.NewClient(api, interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					made = true
					return nil
				}}),
			}
			if tc.asks { // the Secret, whose registration is about to be made again, and the request is for another kind of its name
				tenant := &unstructured.Unstructured{}
				tenant.SetNamespace("fleet")
				tenant.SetName("one")
				if err := r.unregisterAgain(t.Context(), Request{Kind: origin.Kamaji, NamespacedName: ref.Key()}, tenant, origin.Verdict{AtOnce: true}); err != nil {
					t.Fatal(err)
				}
			} else if _, err := r.Reconcile(t.Context(), Request{Kind: origin.Secret, NamespacedName: ref.Key()}); err != nil {
				t.Fatal(err)
			}
			if made != tc.want {
				t.Errorf("made a registration: %t, want %t", made, tc.want)
			}
		})
	}
}

// TestAnotherOnesName: an origin does not get the deliveries of another one that is about to have its registration made again, by the name that it has
// with its kind: neither to unregister them, nor to be registered by that name itself.
func TestAnotherOnesName(t *testing.T) {
	ref := hubv1.RegistrationReference{Namespace: "fleet", Name: "one-secret"}
	old, young := metav1.NewTime(time.Now().Add(-time.Hour)), metav1.Now()
	secret := func(name, register string, created metav1.Time) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, CreationTimestamp: created, Labels: map[string]string{hubv1.RegisterLabel: register}}}
	}
	registered := func(name string) *hubv1.ClusterRegistration {
		origin := origin.Secret.Reference("one")
		return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}, Spec: hubv1.ClusterRegistrationSpec{OriginRef: &origin}}
	}
	first := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}, Spec: hubv1.ClusterRegistrationSpec{
		OriginRef: &hubv1.OriginReference{APIGroup: origin.Kamaji.Group, Kind: origin.Kamaji.Kind, Name: "one"},
	}}
	for name, tc := range map[string]struct {
		origin    *corev1.Secret
		also      []client.Object
		delivered bool
		want      string
	}{
		"Unregistered":                 {secret("one-secret", "false", young), []client.Object{first}, true, "one-secret"},
		"UnregisteredWhileOneAsks":     {secret("one-secret", "false", young), []client.Object{first, secret("one", "true", old)}, true, ""},
		"UnregisteredWhileAYoungerOne": {secret("one-secret", "false", old), []client.Object{first, secret("one", "true", young)}, true, ""},
		"TheOtherHasAnotherName":       {secret("one-secret", "false", young), []client.Object{registered("one"), secret("one", "true", old)}, true, "one-secret"},
		"TheOtherDoesNotAsk":           {secret("one-secret", "false", young), []client.Object{first, secret("one", "false", old)}, true, "one-secret"},
		"Asks":                         {secret("one-secret", "true", young), []client.Object{first, secret("one", "true", old)}, true, "one-secret-secret"},
		"AsksAndIsOlder":               {secret("one-secret", "true", old), []client.Object{first, secret("one", "true", young)}, true, "one-secret"},
		"AsksForWhatNobodyHad":         {secret("one-secret", "true", young), []client.Object{first, secret("one", "true", old)}, false, "one-secret"},
		"IsTheOneThatHadIt":            {secret("one", "true", old), []client.Object{first, secret("one-secret", "true", young)}, true, "one-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			objects := append([]client.Object{tc.origin}, tc.also...)
			if tc.delivered {
				objects = append(objects, &hubv1.AddonDelivery{
					ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("base", ref.Key())},
					Spec:       hubv1.AddonDeliverySpec{RegistrationRef: ref, AddonSetRef: hubv1.DeliveredSetReference{Name: "base"}},
				})
			}
			api := indextest.NoTeams(fake.NewClientBuilder().WithScheme(scheme)).WithObjects(objects...).
				WithIndex(&hubv1.ClusterRegistration{}, index.RegistrationOrigin, func(o client.Object) []string {
					return []string{index.Origin(*o.(*hubv1.ClusterRegistration).Spec.OriginRef)}
				}).
				WithIndex(&hubv1.AddonDelivery{}, index.DeliveryRegistration, func(o client.Object) []string {
					return []string{o.(*hubv1.AddonDelivery).Spec.RegistrationRef.Key().String()}
				}).Build()
			config, made := &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}, Origins: origin.Policy{SecretNamespaces: []string{"fleet"}}}}, ""
			r := &Reconciler{
				Live: api, Config: config, Clock: clock.NewFakePassiveClock(time.Now()), Recorder: events.NewFakeRecorder(10),
				Origins: originreader.New(api, api, config.Origins),
				Client: interceptor.NewClient(api, interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					made = obj.(interface{ GetName() string }).GetName()
					return nil
				}}),
			}
			if _, err := r.Reconcile(t.Context(), Request{Kind: origin.Secret, NamespacedName: client.ObjectKeyFromObject(tc.origin)}); err != nil {
				t.Fatal(err)
			}
			if made != tc.want {
				t.Errorf("made registration %q, want %q", made, tc.want)
			}
		})
	}
}
