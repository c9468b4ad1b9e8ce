// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/deliverywriter"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// matcherFixture is the matcher with an API server of its own, one cluster and one set in a platform namespace that selects tier=prod.
type matcherFixture struct {
	*Matcher
	t   *testing.T
	api client.Client
	set types.NamespacedName
}

func newMatcherFixture(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *matcherFixture {
	t.Helper()
	if !slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == "base" }) {
		objects = append(objects, setBase())
	}
	scheme := hubscheme.New()
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().
		WithStatusSubresource(&hubv1.AddonDelivery{}, &hubv1.ClusterRegistration{}, &hubv1.AddonSet{}).WithInterceptorFuncs(funcs)
	indextest.All(b)
	for _, o := range []client.Object{&corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}} {
		b.WithIndex(o, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}
	api := b.Build()
	config := &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}, TeardownGrace: time.Hour}
	r := &Reconciler{Client: api, Live: api, Config: config, Clock: clock.RealClock{}}
	out := &matcherFixture{Matcher: &Matcher{Reconciler: r}, t: t, api: api, set: types.NamespacedName{Namespace: "flux-system", Name: "base"}}
	out.publish("base-1-e2", false)
	return out
}

func setBase() *hubv1.AddonSet {
	return &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set"}}
}

// publish has the set compiled, or found not to compile.
func (r *matcherFixture) publish(revision string, held bool) {
	r.t.Helper()
	selector, err := match.New(match.Reach{Namespace: "flux-system", Platform: true}, &hubv1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.registry.put(r.set, compiled{uid: "set", reach: selector.Reach(), selector: selector, everyone: revision, newcomers: revision, held: held})
}

// look has the matcher look at the cluster once, and returns its delivery, nil if there is none.
func (r *matcherFixture) look() *hubv1.AddonDelivery {
	r.t.Helper()
	reg := &hubv1.ClusterRegistration{}
	if err := r.api.Get(r.t.Context(), fleetOne, reg); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.Reconcile(r.t.Context(), reg); err != nil {
		r.t.Fatal(err)
	}
	d := &hubv1.AddonDelivery{}
	if err := r.api.Get(r.t.Context(), types.NamespacedName{Namespace: "flux-system", Name: identity.Delivery("base", fleetOne)}, d); err != nil {
		if client.IgnoreNotFound(err) != nil {
			r.t.Fatal(err)
		}
		return nil
	}
	return d
}

func (r *matcherFixture) delete(o client.Object) {
	r.t.Helper()
	if err := r.api.Delete(r.t.Context(), o); err != nil {
		r.t.Fatal(err)
	}
}

var fleetOne = types.NamespacedName{Namespace: "fleet", Name: "one"}

func registrationOne(tier string) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", UID: "reg", Labels: map[string]string{"tier": tier}}}
}

// deliveryOne is the delivery of the set to the cluster, as an older hub or a backup has left it.
func deliveryOne(change func(*hubv1.AddonDelivery)) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{
		Namespace: "flux-system", Name: identity.Delivery("base", fleetOne), UID: "delivery", Finalizers: []string{hubv1.Finalizer},
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", fleetOne), hubv1.AddonSetLabel: "base"},
	}}
	d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: "one"}
	d.Spec.AddonSetRef.Name = "base"
	d.Spec.RevisionName = "base-1-e2"
	if change != nil {
		change(d)
	}
	return d
}

func TestMatcherSaysWhoseADeliveryIs(t *testing.T) {
	if d := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("prod")).look(); d == nil || d.Spec.AddonSetRef.UID != "set" {
		t.Errorf("a delivery was made without the UID of its set: %+v", d)
	}
}

// TestMatcherStoresStarts: how a cluster came to its revision outlives the process, also that it had no nodes then.
func TestMatcherStoresStarts(t *testing.T) {
	r := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("prod"), deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
	for _, want := range []hubv1.DeliveryStart{{Time: metav1.NewTime(fleetTime), Healthy: true, WithoutNodes: true}, {Time: metav1.NewTime(fleetTime.Add(time.Hour))}} {
		c := r.registry.sets.All()[r.set]
		c.everyone, c.starts = "", map[types.NamespacedName]rollout.Start{fleetOne: {Cluster: fleetOne, Delivery: "delivery", Revision: "base-2-e2", Start: &want}}
		r.registry.sets.Put(r.set, c)
		got := r.look().Spec.Start
		if got == nil || !got.Time.Equal(&want.Time) || got.Healthy != want.Healthy || got.WithoutNodes != want.WithoutNodes {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestMatcherClaims: deliveries of an older hub have no UID of their set, and those out of a backup that of a set that was.
func TestMatcherClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		tier, uid, revision string
		held                bool
		want                types.UID
		wantRevision        string
	}{
		"OfAnOlderHub":             {"prod", "", "base-1-e2", false, "set", "base-1-e2"},
		"OutOfABackup":             {"prod", "was", "base-1-e2", false, "set", "base-1-e2"},
		"OfAnOlderEpoch":           {"prod", "", "base-1-e1", false, "set", "base-1-e2"},
		"OfAnOlderContent":         {"prod", "", "base-0-e1", false, "set", "base-1-e2"},
		"OfASetThatDoesNotCompile": {"prod", "was", "base-0-e1", true, "set", "base-0-e1"},
		"NotSelected":              {"dev", "was", "base-1-e2", false, "was", "base-1-e2"},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			r := newMatcherFixture(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				writes++
				return c.Apply(ctx, obj, opts...)
			}}, registrationOne(tc.tier), deliveryOne(func(d *hubv1.AddonDelivery) {
				d.Spec.AddonSetRef.UID, d.Spec.RevisionName = types.UID(tc.uid), tc.revision
			}))
			r.publish("base-1-e2", tc.held)
			d := r.look()
			if d == nil || d.UID != "delivery" || d.Spec.AddonSetRef.UID != tc.want || d.Spec.RevisionName != tc.wantRevision {
				t.Fatalf("the delivery has become %+v", d)
			}
			wrote := writes
			if r.look(); writes != wrote {
				t.Error("it is written again, with nothing to say")
			}
		})
	}
}

// TestUpdateMakesNothing: the cache still shows a delivery that the hub that led before has orphaned, and its set says something else by now.
func TestUpdateMakesNothing(t *testing.T) {
	was := deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" })
	r := newMatcherFixture(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if l, ok := list.(*hubv1.AddonDeliveryList); ok {
				l.Items = []hubv1.AddonDelivery{*was}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	}, registrationOne("prod"))
	r.publish("base-2-e2", false)
	if d := r.look(); d != nil {
		t.Errorf("it was made again: %+v", d)
	}
}

// TestSetThatIsGoneIsForgotten: somebody has taken the finalizer off a set, or the hub that led before has. It delivers nothing any more.
func TestSetThatIsGoneIsForgotten(t *testing.T) {
	r := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("prod"))
	r.delete(setBase())
	if _, err := r.reconcileNamed(t.Context(), reconcile.Request{NamespacedName: r.set}); err != nil || len(r.registry.sets.All()) > 0 {
		t.Errorf("remembered: %v (%v)", r.registry.sets.All(), err)
	}
}

// TestMatcherIsNotFooledByAName: a delivery of another name that says the same must not stand in the real one's place.
func TestMatcherIsNotFooledByAName(t *testing.T) {
	forged := deliveryOne(func(d *hubv1.AddonDelivery) { d.Name, d.UID = "forged", "forged" })
	if newMatcherFixture(t, interceptor.Funcs{}, registrationOne("prod"), forged).look() == nil {
		t.Error("no delivery was made: a forged one stands in its place")
	}
}

// TestRevisionOutOfABackup: a revision belongs to the set that was, or holds what its name does not say.
func TestRevisionOutOfABackup(t *testing.T) {
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set"}}
	set.Spec.Addons = []hubv1.Addon{{Name: "a"}}
	raw, hash := snapshotOf(t, set)
	was := set.DeepCopy()
	was.UID = "was"
	for name, tc := range map[string]struct {
		data  string
		fails bool
	}{"OutOfABackup": {string(raw), false}, "Forged": {`{"addons":[{"name":"evil"}]}`, true}} {
		t.Run(name, func(t *testing.T) {
			there := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
				Namespace: "flux-system", Name: identity.Revision("base", hash, render.Epoch), UID: "revision", Labels: map[string]string{hubv1.AddonSetLabel: "base"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(was, hubv1.GroupVersion.WithKind("AddonSet"))},
			}, Data: runtime.RawExtension{Raw: []byte(tc.data)}}
			r := newMatcherFixture(t, interceptor.Funcs{}, there)
			r.Recorder = events.NewFakeRecorder(10)
			if _, err := r.snapshot(t.Context(), set, nil); (err != nil) != tc.fails {
				t.Fatal(err)
			}
			must.Get(r.snapshot(t.Context(), set, nil)).Or(t)
			must.Do(t, r.api.Get(t.Context(), client.ObjectKeyFromObject(there), there))
			if !metav1.IsControlledBy(there, set) || string(there.Data.Raw) != string(raw) || (there.UID == "revision") == tc.fails {
				t.Errorf("it is %+v", there)
			}
		})
	}
}

// TestMatcherOrphans: what goes on through another registration of the cluster is orphaned at once, and not counted by the guard. So its
// delivery says that it stays: the cluster may be registered again before the delivery has gone. What no set delivers any more then is left
// to the set's controller, which counts it.
func TestMatcherOrphans(t *testing.T) {
	for name, tc := range map[string]struct {
		other    string // the tier of the other registration
		leaves   bool   // already
		orphaned bool
	}{
		"GoesOn":           {other: "prod", orphaned: true},
		"NobodyDelivers":   {other: "test"},
		"LeavesAlready":    {other: "test", leaves: true, orphaned: true},
		"OfAnotherCluster": {other: ""},
	} {
		t.Run(name, func(t *testing.T) {
			other := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "two", UID: "two", Labels: map[string]string{"tier": tc.other}}}
			if other.Status.ClusterUID = "cluster"; tc.other == "" {
				other.Labels["tier"], other.Status.ClusterUID = "prod", ""
			}
			r := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("prod"), other,
				deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
			d := r.look()
			if tc.leaves {
				must.Do(t, deliverywriter.Withdraw(t.Context(), r.Client, d, false))
			}
			reg := registrationOne("prod")
			if reg.Status.ClusterUID = "cluster"; tc.other == "" {
				reg.Status.ClusterUID = "" // nobody knows that two clusters without a UID are one
			}
			reg.Finalizers, reg.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: time.Now()}
			reg.Status.Conditions = []metav1.Condition{{Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: hubv1.SameClusterReason}}
			must.Get(r.Reconcile(t.Context(), reg)).Or(t)
			if d = r.look(); d == nil || (d.DeletionTimestamp != nil) != tc.orphaned || d.Orphaned() != tc.orphaned {
				t.Errorf("the delivery is %+v", d)
			}
		})
	}
}

// TestAFormerLeaderGivesNothingBack: what gives a delivery another revision arrives late, from a process that stood still. Another process
// has given the cluster a newer one meanwhile.
func TestAFormerLeaderGivesNothingBack(t *testing.T) {
	reg := registrationOne("prod")
	m := newMatcherFixture(t, interceptor.Funcs{}, reg, deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
	read := func() *hubv1.AddonDelivery {
		d := deliveryOne(nil)
		must.Do(t, m.api.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		return d
	}
	there, set := read(), types.NamespacedName{Namespace: "flux-system", Name: "base"}
	must.Do(t, m.deliver(t.Context(), reg, set, "set", gift{revision: "newer"}, there))
	if err := m.deliver(t.Context(), reg, set, "set", gift{revision: "older"}, there); !apply.Lagged(err) {
		t.Errorf("the older one is written: %v", err)
	}
	if got := read().Spec.RevisionName; got != "newer" {
		t.Errorf("the cluster has %s", got)
	}
}
