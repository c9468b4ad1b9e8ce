// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// controller is the delivery controller before an API server in memory, with a Flux that does as told, and the controllers that keep a list of orphans.
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

const testSet = "base"

var testCluster = types.NamespacedName{Namespace: "fleet", Name: "one"}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	scheme := runtime.NewScheme() // fewer kinds than hubscheme has: the fake client goes through all of them at each write
	for _, add := range []func(*runtime.Scheme) error{
		hubv1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme, sourcev1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, apiextensionsv1.AddToScheme,
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

// newServedFixture is newFixture, and testCluster has answered, and is to have the first generation of testSet.
func newServedFixture(t *testing.T, objects ...client.Object) *fixture {
	return newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"))...)
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
			return write(fmt.Sprintf("apply %T", obj), func() error {
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
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return write(fmt.Sprintf("patch %s of %T", sub, obj), func() error {
				if _, flux := obj.(*helmv2.HelmRelease); flux { // its status is written with the rest here
					return c.Patch(ctx, obj, patch)
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			})
		},
	}
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

const fluxFinalizer = fluxstate.Finalizer

// reconcile has the hub look at a cluster once.
func (m *fixture) reconcile(cluster types.NamespacedName) error {
	_, err := m.r.Reconcile(m.t.Context(), reconcile.Request{NamespacedName: cluster})
	for {
		select {
		case e := <-m.events.Events:
			if strings.Contains(e, hubv1.AddonOrphanedEvent) {
				m.told = append(m.told, e)
			}
			continue
		default:
		}
		return err
	}
}

// settle has everybody do what they do, until the hub has written nothing for a while, or for a minute: the hub, Flux, and the controllers that keep
// the lists of orphans.
func (m *fixture) settle(clusters ...types.NamespacedName) {
	m.t.Helper()
	if len(clusters) == 0 {
		clusters = []types.NamespacedName{testCluster}
	}
	for quiet := 0; quiet < 20; quiet++ {
		before := m.writes
		for _, c := range clusters {
			if err := m.reconcile(c); err != nil {
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

// flux finalizes what is deleted, and makes Ready what is not suspended: as reference/flux-semantics.md has it.
func (m *fixture) flux() {
	m.t.Helper()
	m.quietly(func() {
		for _, obj := range m.objects() {
			suspended := false
			switch o := obj.(type) {
			case *helmv2.HelmRelease:
				suspended = o.Spec.Suspend
			case *kustomizev1.Kustomization:
				suspended = o.Spec.Suspend
			}
			if m.busy && (obj.GetDeletionTimestamp() == nil || !suspended) {
				continue
			}
			if obj.GetDeletionTimestamp() != nil {
				if !slices.Contains(obj.GetFinalizers(), fluxFinalizer) {
					continue
				}
				if suspended {
					m.released = append(m.released, obj.GetName())
				} else {
					m.uninstalled = append(m.uninstalled, obj.GetName())
				}
				if hr, ok := obj.(*helmv2.HelmRelease); ok && !suspended {
					hr.Status.History = nil
					apimeta.SetStatusCondition(&hr.Status.Conditions, metav1.Condition{Type: helmv2.ReleasedCondition, Status: metav1.ConditionFalse, Reason: helmv2.UninstallSucceededReason})
				}
				controllerutil.RemoveFinalizer(obj, fluxFinalizer)
				m.must(m.api.Update(m.t.Context(), obj))
				continue
			}
			controllerutil.AddFinalizer(obj, fluxFinalizer)
			obj.SetGeneration(1)
			if hr, ok := obj.(*helmv2.HelmRelease); ok {
				hr.Status.ObservedGeneration = 1
			}
			if !suspended {
				ready := metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", ObservedGeneration: 1}
				switch o := obj.(type) {
				case *helmv2.HelmRelease:
					apimeta.SetStatusCondition(&o.Status.Conditions, ready)
					if latest := o.Status.History.Latest(); latest == nil || latest.Digest == "" {
						o.Status.History = helmv2.Snapshots{{Name: o.Spec.ReleaseName, ChartName: m.chartOf(o), ChartVersion: "1.0.0"}}
					}
				case *kustomizev1.Kustomization:
					if !apimeta.IsStatusConditionFalse(o.Status.Conditions, hubv1.ReadyCondition) {
						apimeta.SetStatusCondition(&o.Status.Conditions, ready)
						o.Status.LastAppliedRevision, o.Status.ObservedGeneration = "main@sha1:1", 1
						o.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "default_a__ConfigMap"}}}
					}
				}
			}
			m.must(m.api.Update(m.t.Context(), obj))
		}
	})
}

// chartOf returns the name of the chart that Flux finds for a HelmRelease.
func (m *fixture) chartOf(o *helmv2.HelmRelease) string {
	ref, chart := o.Spec.ChartRef, &sourcev1.HelmChart{}
	if source := (&sourcev1.OCIRepository{}); ref.Kind != sourcev1.HelmChartKind {
		err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}, source)
		if err == nil && source.Spec.Reference.Digest == m.r.Config.Chart.Digest {
			return m.r.Config.Chart.Name
		}
		return "chart-of-" + ref.Name
	}
	m.must(m.api.Get(m.t.Context(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, chart))
	return path.Base(chart.Spec.Chart)
}

// bookkeeping keeps the lists of orphans of registrations and sets, as their controllers do.
func (m *fixture) bookkeeping() {
	m.quietly(func() {
		ctx := m.t.Context()
		all, regs, sets := &hubv1.AddonDeliveryList{}, &hubv1.ClusterRegistrationList{}, &hubv1.AddonSetList{}
		m.must(errors.Join(m.api.List(ctx, all), m.api.List(ctx, regs), m.api.List(ctx, sets)))
		for i := range regs.Items {
			reg := &regs.Items[i]
			mine := slices.DeleteFunc(slices.Clone(all.Items), func(d hubv1.AddonDelivery) bool {
				return d.Spec.RegistrationRef.Key() != client.ObjectKeyFromObject(reg)
			})
			reg.Status.Orphans, _ = teardown.Orphans(reg.Status.Orphans, mine, nil)
			m.must(m.api.Status().Update(ctx, reg))
		}
		for i := range sets.Items {
			set := &sets.Items[i]
			mine := slices.DeleteFunc(slices.Clone(all.Items), func(d hubv1.AddonDelivery) bool { return d.SetKey() != client.ObjectKeyFromObject(set) })
			set.Status.Orphans, _ = teardown.Orphans(set.Status.Orphans, mine, nil)
			m.must(m.api.Status().Update(ctx, set))
		}
	})
}

// quietly does what the hub has no part in: it is not counted, and does not fail.
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

// object returns the Flux object of an add-on of a cluster, nil if there is none.
func (m *fixture) object(cluster types.NamespacedName, addon string) client.Object {
	for _, o := range m.objects() {
		if o.GetLabels()[hubv1.AddonLabel] == addon && o.GetAnnotations()[hubv1.RegistrationAnnotation] == cluster.String() {
			return o
		}
	}
	return nil
}

// delivery returns the delivery of a set to a cluster; nil if it is gone.
func (m *fixture) delivery(cluster types.NamespacedName, set string) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{}
	if err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: "flux-system", Name: identity.Delivery(set, cluster)}, d); err != nil {
		m.must(client.IgnoreNotFound(err))
		return nil
	}
	return d
}

// orphans are the orphans that the registration and the set list.
func (m *fixture) orphans(cluster types.NamespacedName) []hubv1.Orphan {
	reg := &hubv1.ClusterRegistration{}
	if m.api.Get(m.t.Context(), cluster, reg) != nil {
		return nil
	}
	return reg.Status.Orphans
}

// edit changes an object as somebody else would.
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

// withdraw deletes a delivery as the set's controller does.
func (m *fixture) withdraw(cluster types.NamespacedName, set string) {
	m.t.Helper()
	d := m.delivery(cluster, set)
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
	m.delete(cluster, set)
}

// delete deletes a delivery as somebody with kubectl does.
func (m *fixture) delete(cluster types.NamespacedName, set string) {
	m.t.Helper()
	m.quietly(func() { m.must(m.api.Delete(m.t.Context(), m.delivery(cluster, set))) })
}

// Registrations, sets and what belongs to them.

func registered(cluster types.NamespacedName, uid string) *hubv1.ClusterRegistration {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name, UID: types.UID("uid-" + cluster.Name), Labels: map[string]string{"env": "prod"}}}
	reg.Spec.KubeConfig = &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: cluster.Name}}
	reg.Status.ClusterUID = types.UID(uid)
	config, err := kubeconfig.Parse(testKubeconfig("t0"), kubeconfig.Rules{AllowMissingCA: true})
	if err != nil {
		panic(err)
	}
	reg.Status.Credential = &hubv1.CredentialStatus{SecretName: cluster.Name, Key: "value", Fingerprint: config.Fingerprint(), TargetFingerprint: config.TargetFingerprint(), AuthorityFingerprint: config.AuthorityFingerprint()}
	apimeta.SetStatusCondition(&reg.Status.Conditions, metav1.Condition{Type: hubv1.ReachableCondition, Status: metav1.ConditionTrue, Reason: "Answers", LastTransitionTime: metav1.NewTime(moment.Add(-time.Hour))})
	return reg
}

func testKubeconfig(token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.7:6443"}}]
users: [{name: u, user: {token: %s}}]
`, token)
}

func kubeconfigSecret(cluster types.NamespacedName, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}, Data: map[string][]byte{"value": testKubeconfig(token)}}
}

// addonsOf returns a set of these add-ons and its revision.
func addonsOf(set, generation string, addons ...map[string]any) []client.Object {
	return setOf(set, generation, map[string]any{"selectAll": true, "addons": addons})
}

// setOf returns a set of this spec and its revision.
func setOf(set, generation string, spec map[string]any) []client.Object {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	s := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: set, UID: types.UID("uid-" + set)}}
	if err := json.Unmarshal(raw, &s.Spec); err != nil {
		panic(err)
	}
	content, hash, err := compile.Snapshot(&s.Spec, nil)
	if err != nil {
		panic(err)
	}
	revisions[set+"/"+generation] = identity.Revision(set, hash, render.Epoch)
	return []client.Object{s, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "flux-system", Name: revisionOf(set, generation), UID: types.UID("uid-" + set + generation),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, hubv1.GroupVersion.WithKind("AddonSet"))},
		},
		Data: runtime.RawExtension{Raw: content},
	}}
}

// revisions are the names of those that addonsOf made, by set and generation.
var revisions = map[string]string{}

func revisionOf(set, generation string) string { return revisions[set+"/"+generation] }

func deliveredTo(cluster types.NamespacedName, set, generation string) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{
		Namespace: "flux-system", Name: identity.Delivery(set, cluster), UID: types.UID("uid-" + set + "-" + cluster.Name), Finalizers: []string{hubv1.DeliveryFinalizer},
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", cluster), hubv1.AddonSetLabel: set},
	}}
	d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: cluster.Namespace, Name: cluster.Name}
	d.Spec.AddonSetRef = hubv1.DeliveredSetReference{Name: set, UID: types.UID("uid-" + set)}
	d.Spec.RevisionName = revisionOf(set, generation)
	return d
}

func releaseAddon(name string, more ...map[string]any) map[string]any {
	body := map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": "chart"}}
	out := map[string]any{"name": name, "helmRelease": body}
	for _, m := range more {
		for k, v := range m {
			if k == "deletionPolicy" || k == "movedFrom" {
				out[k] = v
			} else {
				body[k] = v
			}
		}
	}
	return out
}

func kustomizationAddon(name string, more ...map[string]any) map[string]any {
	body := map[string]any{"path": "./app", "sourceRef": map[string]any{"kind": "GitRepository", "name": "git"}}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	return map[string]any{"name": name, "kustomization": body}
}

// A set arrives, is Ready, costs nothing more, and leaves.
func TestRoom(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), kustomizationAddon("git"))...)
	m.settle()
	for _, a := range m.delivery(testCluster, testSet).Status.Addons {
		if a.State != hubv1.AddonReady {
			t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
		}
	}
	before := m.writes
	m.settle()
	if m.writes != before {
		t.Errorf("%d writes for nothing", m.writes-before)
	}
	m.withdraw(testCluster, testSet)
	m.settle()
	if m.delivery(testCluster, testSet) != nil || len(m.objects()) > 0 || len(m.uninstalled) != 2 || len(m.orphans(testCluster)) > 0 {
		t.Errorf("left: %v; uninstalled: %v; orphans: %v", m.objects(), m.uninstalled, m.orphans(testCluster))
	}
}

// passOf returns a pass of a cluster with some deliveries.
func passOf(seen *observed.Cluster, deliveries ...*delivery) *cluster {
	c := newCluster(planned.Begin(seen))
	for _, d := range deliveries {
		seen.Deliveries, c.Deliveries = append(seen.Deliveries, d.Delivery), append(c.Deliveries, d)
	}
	return c
}
