// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render"
)

// fixture is the delivery controller before an API server in memory. It has a Flux that does as told, and the controllers that keep lists
// of orphans.
type fixture struct {
	t     *testing.T
	api   client.WithWatch
	clock *clock.FakePassiveClock
	// r is the hub. A new one is a hub that has crashed and started again: it remembers nothing.
	r      *Reconciler
	events *events.FakeRecorder
	// told are the orphans that an event told of, as add-on names.
	told []string
	// uninstalled and released are what Flux did with each object that went, by name.
	uninstalled, released []string
	// failing is what a write comes to, nil for a success; effect is whether it takes effect all the same.
	failing func(what string) (err error, effect bool)
	writes  int
	// busy is true while Flux has no time but to finalize what is suspended.
	busy bool
}

const (
	testSet       = "base"
	fluxFinalizer = fluxstate.Finalizer
)

var (
	testCluster = types.NamespacedName{Namespace: "fleet", Name: "one"}
	moment      = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	scheme := runtime.NewScheme() // fewer kinds than hubscheme has: the fake client goes through all of them at each write
	for _, add := range []func(*runtime.Scheme) error{
		hubv1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme, sourcev1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme,
		apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&hubv1.AddonDelivery{}, &hubv1.AddonSet{}, &hubv1.ClusterRegistration{})
	for _, o := range []client.Object{&corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}} {
		b = b.WithIndex(o, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}
	indextest.All(b)
	m := &fixture{t: t, clock: clock.NewFakePassiveClock(time.Now())} // by which the fake client says when something was deleted
	m.api = interceptor.NewClient(b.Build(), m.interceptors())
	m.restart()
	return m
}

// newServedFixture is newFixture with testCluster, which has answered. The cluster is to have the first generation of testSet.
func newServedFixture(t *testing.T, objects ...client.Object) *fixture {
	return newFixture(t, append(objects,
		registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"))...)
}

// newDeliveredFixture is newServedFixture with testSet of these add-ons, which have been delivered to testCluster.
func newDeliveredFixture(t *testing.T, addons ...map[string]any) *fixture {
	objects := addonsOf(testSet, "1", addons...)
	m := newServedFixture(t, objects...)
	m.settle()
	return m
}

// interceptors count the writes of the hub, and fail them as told.
func (m *fixture) interceptors() interceptor.Funcs {
	write := func(what string, do func() error) error {
		m.writes++
		if m.failing == nil {
			return do()
		}
		err, effect := m.failing(what)
		if err == nil {
			return do()
		}
		if effect {
			if real := do(); real != nil {
				return real
			}
		}
		return err
	}
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write(fmt.Sprintf("patch %T", obj), func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			what := fmt.Sprintf("apply %T", obj)
			if o, ok := obj.(interface{ GetKind() string }); ok {
				what = "apply " + o.GetKind()
			}
			return write(what, func() error {
				err := c.Apply(ctx, obj, opts...)
				if o, ok := obj.(metav1.Object); ok && err == nil && o.GetGeneration() == 0 {
					o.SetGeneration(1) // as the API server says it; flux writes it
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(fmt.Sprintf("delete %T", obj), func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return write(fmt.Sprintf("patch %s of %T", sub, obj), func() error {
				if _, flux := obj.(*helmv2.HelmRelease); flux { // its status is written with the rest here
					return c.Patch(ctx, obj, patch)
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			})
		},
	}
}

// onWrite does something at the first write of a kind. What that returns is the API server's answer, if it is an error.
func (m *fixture) onWrite(kind string, do func() error) (done *bool) {
	done = new(bool)
	m.failing = func(what string) (error, bool) {
		if *done || !strings.HasPrefix(what, kind) {
			return nil, false
		}
		*done = true
		return do(), false
	}
	return done
}

// restart makes a hub that remembers nothing.
func (m *fixture) restart() {
	m.events = events.NewFakeRecorder(1000)
	config := &hubconfig.Config{
		Shared: hubconfig.Shared{
			HubID:              "hub",
			PlatformNamespaces: []string{"flux-system"},
			Chart:              render.ManifestChart{URL: "http://hub/chart"},
		},
		TeardownGrace: time.Hour, RemovalDelay: 5 * time.Second, Concurrency: 1,
		Rules: kubeconfig.Rules{AllowMissingCA: true},
	}
	m.r = &Reconciler{
		Client: m.api, Live: m.api, Config: config, Clock: m.clock, Recorder: m.events, resumes: rate.NewLimiter(rate.Inf, 1),
		Shared: &sharedobjects.Keeper{Client: m.api, Live: m.api, Config: config, Clock: m.clock},
	}
}

// reconcile has the hub look at testCluster once.
func (m *fixture) reconcile() error {
	_, err := m.look(testCluster)
	return err
}

// again has the hub look at testCluster once, and returns after how long the hub looks again.
func (m *fixture) again() time.Duration {
	m.t.Helper()
	result, err := m.look(testCluster)
	m.must(err)
	return result.RequeueAfter
}

func (m *fixture) look(cluster types.NamespacedName) (reconcile.Result, error) {
	result, err := m.r.Reconcile(m.t.Context(), reconcile.Request{NamespacedName: cluster})
	m.told = append(m.told, m.orphanEvents()...)
	return result, err
}

// orphanEvents returns the events that tell of orphans since the last call.
func (m *fixture) orphanEvents() []string {
	var out []string
	for {
		select {
		case e := <-m.events.Events:
			if strings.Contains(e, hubv1.AddonOrphanedEvent) {
				out = append(out, e)
			}
		default:
			return out
		}
	}
}

// settle has the hub, Flux and the controllers that keep lists of orphans at work until the hub has written nothing for a while, or for a
// minute.
func (m *fixture) settle(clusters ...types.NamespacedName) {
	m.t.Helper()
	if len(clusters) == 0 {
		clusters = []types.NamespacedName{testCluster}
	}
	for quiet := 0; quiet < 20; quiet++ {
		before := m.writes
		for _, c := range clusters {
			if _, err := m.look(c); err != nil {
				m.t.Logf("reconcile: %v", err)
			}
		}
		m.flux()
		m.bookkeeping()
		if m.writes == before {
			quiet += 4
		}
		m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
	}
}

// wantNoWrites fails if the hub still writes when all is done.
func (m *fixture) wantNoWrites() {
	m.t.Helper()
	before := m.writes
	if m.settle(); m.writes != before {
		m.t.Errorf("%d writes for nothing", m.writes-before)
	}
}

// wantReady fails if an add-on of testSet has no Flux object, or is not Ready, or if Flux has uninstalled anything.
func (m *fixture) wantReady(addon string) {
	m.t.Helper()
	if a := m.addon(addon); m.object(addon) == nil || a.State != hubv1.AddonReady || len(m.uninstalled) > 0 {
		m.t.Errorf("add-on %s is %s: %s; uninstalled: %v", addon, a.State, a.Message, m.uninstalled)
	}
}

// quietly does what the hub has no part in. The write is not counted, and does not fail.
func (m *fixture) quietly(do func()) {
	failing, writes := m.failing, m.writes
	m.failing = nil
	do()
	m.failing, m.writes = failing, writes
}

func (m *fixture) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// objects are all HelmReleases and Kustomizations.
func (m *fixture) objects() []client.Object {
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	m.must(errors.Join(m.api.List(m.t.Context(), releases), m.api.List(m.t.Context(), kustomizations)))
	var out []client.Object
	for i := range releases.Items {
		out = append(out, &releases.Items[i])
	}
	for i := range kustomizations.Items {
		out = append(out, &kustomizations.Items[i])
	}
	return out
}

// object returns the Flux object of an add-on of testCluster, nil if there is none.
func (m *fixture) object(addon string) client.Object {
	for _, o := range m.objects() {
		if o.GetLabels()[hubv1.AddonLabel] == addon && o.GetAnnotations()[hubv1.RegistrationAnnotation] == testCluster.String() {
			return o
		}
	}
	return nil
}

// release returns the HelmRelease of an add-on of testCluster.
func (m *fixture) release(addon string) *helmv2.HelmRelease {
	m.t.Helper()
	hr, _ := m.object(addon).(*helmv2.HelmRelease)
	if hr == nil {
		m.t.Fatalf("add-on %s has no HelmRelease: %v", addon, m.objects())
	}
	return hr
}

// releaseIn returns the HelmRelease of an add-on of testCluster in a namespace, nil if there is none.
func (m *fixture) releaseIn(namespace, addon string) *helmv2.HelmRelease {
	return find(m, namespace, identity.FluxObject("hub", testCluster, addon), &helmv2.HelmRelease{})
}

// delivery returns the delivery of a platform set to testCluster, nil if it is gone.
func (m *fixture) delivery(set string) *hubv1.AddonDelivery { return m.deliveryIn("flux-system", set) }

// deliveryIn returns the delivery of a set of a namespace to testCluster, nil if it is gone.
func (m *fixture) deliveryIn(namespace, set string) *hubv1.AddonDelivery {
	return find(m, namespace, identity.Delivery(set, testCluster), &hubv1.AddonDelivery{})
}

// says returns what the delivery of a platform set to testCluster says of an add-on.
func (m *fixture) says(set, addon string) hubv1.AddonStatus {
	return (&observed.Delivery{Before: m.delivery(set)}).Was(addon)
}

// addon returns what the delivery of testSet says of an add-on.
func (m *fixture) addon(name string) hubv1.AddonStatus { return m.says(testSet, name) }

// firstAddon returns what the delivery of testSet says of its first add-on.
func (m *fixture) firstAddon() hubv1.AddonStatus { return m.delivery(testSet).Status.Addons[0] }

// orphans are the orphans that the registration lists.
func (m *fixture) orphans() []hubv1.Orphan {
	reg := find(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{})
	if reg == nil {
		return nil
	}
	return reg.Status.Orphans
}

// find reads an object, and returns nil if it does not exist.
func find[T client.Object](m *fixture, namespace, name string, obj T) (found T) {
	m.t.Helper()
	err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if m.must(client.IgnoreNotFound(err)); err != nil {
		return found
	}
	return obj
}

// reread reads an object again, and returns nil if it does not exist any more.
func reread[T client.Object](m *fixture, obj T) T {
	return find(m, obj.GetNamespace(), obj.GetName(), obj.DeepCopyObject().(T))
}

// edit changes an object as a user would.
func edit[T client.Object](m *fixture, namespace, name string, obj T, change func(T)) {
	m.t.Helper()
	m.quietly(func() {
		m.must(m.api.Get(m.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, obj))
		change(obj)
		status := obj.DeepCopyObject().(T)
		m.must(m.api.Update(m.t.Context(), obj))
		status.SetResourceVersion(obj.GetResourceVersion())
		m.must(client.IgnoreNotFound(m.api.Status().Update(m.t.Context(), status)))
	})
}

func (m *fixture) editDelivery(set string, change func(*hubv1.AddonDelivery)) {
	m.t.Helper()
	edit(m, "flux-system", identity.Delivery(set, testCluster), &hubv1.AddonDelivery{}, change)
}

func (m *fixture) editRegistration(change func(*hubv1.ClusterRegistration)) {
	m.t.Helper()
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, change)
}

func (m *fixture) editSet(change func(*hubv1.AddonSet)) {
	m.t.Helper()
	edit(m, "flux-system", testSet, &hubv1.AddonSet{}, change)
}

// deselect has testSet select no cluster any more. Its delivery is not withdrawn yet.
func (m *fixture) deselect() {
	m.t.Helper()
	m.editSet(func(s *hubv1.AddonSet) {
		s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
	})
}

// roll gives testCluster a revision of a set.
func (m *fixture) roll(set, generation string) {
	m.t.Helper()
	m.editDelivery(set, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(set, generation) })
}

// next makes a revision of testSet, and gives the revision to testCluster.
func (m *fixture) next(generation string, addons ...map[string]any) {
	m.t.Helper()
	m.create(addonsOf(testSet, generation, addons...)[1:]...)
	m.roll(testSet, generation)
}

// create makes objects as a user does.
func (m *fixture) create(objects ...client.Object) {
	m.t.Helper()
	m.quietly(func() {
		for _, o := range objects {
			m.must(m.api.Create(m.t.Context(), o))
		}
	})
}

// deleteObject deletes an object as a user does.
func (m *fixture) deleteObject(o client.Object) {
	m.t.Helper()
	m.quietly(func() { m.must(m.api.Delete(m.t.Context(), o)) })
}

// strip deletes an object and its finalizers, as a user does who wants it gone at once.
func (m *fixture) strip(o client.Object) {
	m.t.Helper()
	m.quietly(func() {
		o.SetFinalizers(nil)
		m.must(m.api.Update(m.t.Context(), o))
		m.must(client.IgnoreNotFound(m.api.Delete(m.t.Context(), o)))
	})
}

// withdraw deletes the delivery of a platform set as the set's controller does.
func (m *fixture) withdraw(set string) {
	m.t.Helper()
	m.withdrawIn("flux-system", set)
}

func (m *fixture) withdrawIn(namespace, set string) {
	m.t.Helper()
	d := m.deliveryIn(namespace, set)
	edit(m, namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
	m.deleteObject(d)
}

// delete deletes the delivery of a platform set as a user does with kubectl.
func (m *fixture) delete(set string) {
	m.t.Helper()
	m.deleteObject(m.delivery(set))
}

// pause has the registration controller pause testCluster, or end the pause.
func (m *fixture) pause(paused bool) {
	m.editRegistration(func(reg *hubv1.ClusterRegistration) {
		if !paused {
			apimeta.RemoveStatusCondition(&reg.Status.Conditions, hubv1.SuspendedCondition)
			return
		}
		apimeta.SetStatusCondition(&reg.Status.Conditions, metav1.Condition{
			Type: hubv1.SuspendedCondition, Status: metav1.ConditionTrue, Reason: hubv1.PausedReason, Message: "paused",
			LastTransitionTime: metav1.NewTime(m.clock.Now()),
		})
	})
}

// unregister has the registration controller say why testCluster is being unregistered.
func (m *fixture) unregister(reason, message string) {
	m.t.Helper()
	m.editRegistration(func(reg *hubv1.ClusterRegistration) {
		apimeta.SetStatusCondition(&reg.Status.Conditions, metav1.Condition{
			Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	})
}

// passOf returns a pass of a cluster with some deliveries.
func passOf(seen *observed.Cluster, deliveries ...*delivery) *cluster {
	c := newCluster(planned.Begin(seen))
	for _, d := range deliveries {
		seen.Deliveries, c.Deliveries = append(seen.Deliveries, d.Delivery), append(c.Deliveries, d)
	}
	return c
}
