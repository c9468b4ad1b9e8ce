// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/expectations"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
)

// forgetful is a controller with clusters that never answer, on an API server that counts how often a Secret is read.
type forgetful struct {
	*testing.T
	*Reconciler
	api   client.Client
	reads int
}

func newForgetful(t *testing.T) *forgetful {
	t.Helper()
	b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithStatusSubresource(&hubv1.ClusterRegistration{})
	for _, o := range []client.Object{&corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}} {
		b = b.WithIndex(o, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}
	api := b.Build()
	f := &forgetful{T: t, api: api}
	live := interceptor.NewClient(api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		obj client.Object, opts ...client.GetOption) error {
		if _, secret := obj.(*corev1.Secret); secret {
			f.reads++
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	f.Reconciler = &Reconciler{Client: api, Live: live, Recorder: events.NewFakeRecorder(100), Pool: probe.NewPool(probe.PoolOptions{}),
		Clock:   clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)),
		Origins: originreader.New(api, api, origin.Policy{}),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}, Rules: lenient,
			TeardownGrace: time.Hour}}
	return f
}

// secret writes a Secret with a kubeconfig.
func (f *forgetful) secret(name string) *corev1.Secret {
	f.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name, UID: types.UID(name)},
		Data: map[string][]byte{"value": kubeConfigFor("https://192.0.2.1:6443")}}
	f.must(f.api.Create(f.Context(), s))
	return s
}

// register registers a cluster whose kubeconfig is in a Secret.
func (f *forgetful) register(name, secret string) types.NamespacedName {
	f.Helper()
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name, UID: types.UID(name)}}
	reg.Spec.KubeConfig = &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: secret}}
	f.must(f.api.Create(f.Context(), reg))
	f.look(name, 2) // the finalizer comes first
	return client.ObjectKeyFromObject(reg)
}

// change changes a registration, and has the controller look at it.
func (f *forgetful) change(name string, change func(*hubv1.ClusterRegistration)) {
	f.Helper()
	reg := &hubv1.ClusterRegistration{}
	f.must(f.api.Get(f.Context(), types.NamespacedName{Namespace: "tenant", Name: name}, reg))
	change(reg)
	f.must(client.IgnoreNotFound(f.api.Update(f.Context(), reg)))
	f.look(name, 1)
}

// remove deletes an object.
func (f *forgetful) remove(obj client.Object) {
	f.Helper()
	f.must(f.api.Delete(f.Context(), obj))
}

// look has the controller look at a registration.
func (f *forgetful) look(name string, times int) {
	f.Helper()
	for range times {
		_, err := f.reconcileNamed(f.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: name}})
		f.must(err)
	}
}

func (f *forgetful) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// TestSecretsAreForgotten: of each cluster the hub remembers the Secret that it has read last, while that exists and the registration names
// it, also of a cluster that has never answered. Registrations that read the same share it.
func TestSecretsAreForgotten(t *testing.T) {
	f := newForgetful(t)
	remembered := func(want int, why string) {
		t.Helper()
		if is := f.secrets.entries.Len(); is != want {
			t.Errorf("%d Secrets are remembered, want %d: %s", is, want, why)
		}
	}
	names := func(secret string) func(*hubv1.ClusterRegistration) {
		return func(reg *hubv1.ClusterRegistration) { reg.Spec.KubeConfig.SecretRef.Name = secret }
	}
	f.secret("s")
	f.register("one", "s")
	for i := range 5 {
		name := fmt.Sprintf("s%d", i)
		f.secret(name)
		f.change("one", names(name))
	}
	remembered(1, "the registration has named others before")
	f.remove(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "s4"}})
	f.look("one", 1)
	remembered(0, "the Secret has gone")
	f.change("one", names("s"))
	reads := f.reads
	f.register("two", "s")
	if f.look("two", 1); f.reads > reads {
		t.Errorf("what another registration has read of a Secret is read %d times more", f.reads-reads)
	}
	remembered(1, "both read the same")
	f.change("one", func(reg *hubv1.ClusterRegistration) {
		reg.Spec.KubeConfig = &hubv1.KubeConfigSource{WorkloadIdentity: &hubv1.WorkloadIdentity{}}
	})
	remembered(1, "one of them reads it")
	f.remove(&hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "two"}})
	f.look("two", 4)
	remembered(0, "nobody reads it")
}

// TestStrippedRegistrationsAreForgotten: somebody deletes a registration and takes the hub's finalizer off. Nobody logs in to its cluster any
// more, and nothing of it is remembered, also if another finalizer keeps it.
func TestStrippedRegistrationsAreForgotten(t *testing.T) {
	for name, finalizers := range map[string][]string{"gone": nil, "kept": {"example.com/other"}} {
		t.Run(name, func(t *testing.T) {
			f := newForgetful(t)
			f.secret("s")
			key, now := f.register("one", "s"), f.Clock.Now()
			f.notes.turned(key, "Provisioning")
			f.waiting.For(key, true, time.Minute, now)
			if n := f.Pool.Stats().Unknown; n != 1 {
				t.Fatalf("%d clusters are to be probed, want 1", n)
			}
			f.remove(&hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "one"}})
			f.change("one", func(reg *hubv1.ClusterRegistration) { reg.Finalizers = finalizers })
			if n := f.Pool.Stats().Unknown + f.notes.of.Len() + f.secrets.entries.Len(); n != 0 {
				t.Errorf("a cluster is probed that nobody has registered: %+v, notes %v, Secrets %v", f.Pool.Stats(), f.notes.of.All(), f.secrets.entries.All())
			}
			if f.notes.turned(key, "Ready") {
				t.Error("the state of its origin is remembered")
			}
			if f.waiting.For(key, true, time.Minute, now.Add(time.Second)) != time.Minute {
				t.Error("since when its status waits is remembered")
			}
			if !f.expectations.Satisfied(key, func(expectations.Object) string { return "" }, now) {
				t.Error("an expectation of it is remembered")
			}
		})
	}
}
