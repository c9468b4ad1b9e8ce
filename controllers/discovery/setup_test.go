// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
)

// Other origins have both names of a Secret that asks to be registered. When one of their registrations goes, the Secret is looked at again.
func TestANameIsFree(t *testing.T) {
	registered := func(name string, ref hubv1.OriginReference) *hubv1.ClusterRegistration {
		return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name},
			Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
	}
	first, second := registered("one", origin.Kamaji.Reference("one")), registered("one-secret", origin.Secret.Reference("one-secret"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one",
		Labels: map[string]string{hubv1.RegisterLabel: "true"}}}
	api := indexed().WithObjects(first, second, secret).Build()
	config := &hubconfig.Config{Shared: hubconfig.Shared{Origins: origin.Policy{SecretNamespaces: []string{"fleet"}}}}
	r := &Reconciler{Client: api, Live: api, Config: config, Clock: clock.NewFakePassiveClock(time.Now()), Recorder: events.NewFakeRecorder(10),
		Origins: originreader.New(api, api, config.Origins)}
	waits := Request{Kind: origin.Secret, NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "one"}}
	look := func() *hubv1.ClusterRegistration {
		t.Helper()
		must.Get(r.Reconcile(t.Context(), waits)).Or(t)
		return must.Get(r.find(t.Context(), waits)).Or(t)
	}
	if reg := look(); reg != nil {
		t.Fatalf("it is registered as %s", reg.Name)
	}
	for _, gone := range []client.Object{first, second} {
		if woken := r.namesakes(t.Context(), gone); !slices.Contains(woken, waits) {
			t.Errorf("that registration %s goes wakes %v", gone.GetName(), woken)
		}
	}
	must.Do(t, api.Delete(t.Context(), second))
	if reg := look(); reg == nil || reg.Name != "one-secret" {
		t.Errorf("it is registered as %v", reg)
	}
}

// A Secret that belongs to a Cluster of Cluster API is not registered while that exists. That the Cluster goes wakes the Secret, and those that
// were there when the hub started do not, since each Secret is looked at then.
func TestAClusterGoesAndItsSecretStays(t *testing.T) {
	secret := func(name, cluster string, labels map[string]string) *corev1.Secret {
		labels[origin.ClusterNameLabel] = cluster
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: labels}}
	}
	asks := func() map[string]string { return map[string]string{hubv1.RegisterLabel: "true"} }
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(secret("mine", "one", asks()), secret("other", "two", asks()),
		secret("certificates", "one", map[string]string{})).Build()
	r := &Reconciler{Origins: originreader.New(api, api, origin.Policy{SecretNamespaces: []string{"fleet"}})}
	cluster := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
	mine := Request{Kind: origin.Secret, NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "mine"}}
	if woken := r.belonging(t.Context(), cluster); !slices.Equal(woken, []Request{mine}) {
		t.Errorf("it wakes %v", woken)
	}
	is := comesOrGoes()
	if !is.Delete(event.DeleteEvent{Object: cluster}) || !is.Create(event.CreateEvent{Object: cluster}) ||
		is.Create(event.CreateEvent{Object: cluster, IsInInitialList: true}) || is.Update(event.UpdateEvent{ObjectOld: cluster, ObjectNew: cluster}) {
		t.Error("it wakes at the wrong time")
	}
}

// indexed returns a builder of a client with the hub's indexes.
func indexed() *fake.ClientBuilder {
	return crdNamed(indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())))
}

// crdNamed lets a client read a CRD by its name, as a live one does.
func crdNamed(b *fake.ClientBuilder) *fake.ClientBuilder {
	named := func(o client.Object) []string { return []string{o.GetName()} }
	return b.WithIndex(&apiextensionsv1.CustomResourceDefinition{}, metav1.ObjectNameField, named)
}
