// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/team"
)

// releaseOne is what the set has made on the cluster.
func releaseOne(change func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	o := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "flux-system", Name: identity.FluxObject("hub", fleetOne, "app"), CreationTimestamp: metav1.NewTime(time.Now()),
		Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", fleetOne), hubv1.AddonLabel: "app", hubv1.AddonSetLabel: "base"},
		Annotations: map[string]string{hubv1.DeliveryAnnotation: identity.Delivery("base", fleetOne), hubv1.RegistrationAnnotation: fleetOne.String()},
	}}
	change(o)
	return o
}

// older is what was made so long ago.
func older(age time.Duration) func(*helmv2.HelmRelease) {
	return func(o *helmv2.HelmRelease) { o.CreationTimestamp = metav1.NewTime(time.Now().Add(-age)) }
}

// uninstalling is what somebody has deleted so long ago, and what Flux has not finished with.
func uninstalling(ago time.Duration) func(*helmv2.HelmRelease) {
	return func(o *helmv2.HelmRelease) {
		o.Finalizers, o.DeletionTimestamp = []string{hubv1.FluxObjectFinalizer, fluxstate.Finalizer}, &metav1.Time{Time: time.Now().Add(-ago)}
	}
}

// leavingFor has a registration go, for a reason.
func leavingFor(reason string) func(*hubv1.ClusterRegistration) {
	return func(reg *hubv1.ClusterRegistration) {
		reg.Finalizers, reg.DeletionTimestamp = []string{hubv1.RegistrationFinalizer}, &metav1.Time{Time: time.Now()}
		reg.Status.Conditions = []metav1.Condition{{Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: reason}}
	}
}

func drained(reg *hubv1.ClusterRegistration) {
	reg.Status.Conditions = []metav1.Condition{{Type: hubv1.DrainingCondition, Status: metav1.ConditionTrue, Reason: hubv1.DrainInProgressReason}}
}

// TestRecall: somebody has deleted a delivery, and before it is made again its set selects the cluster no more, or the cluster goes. What it had
// made there is still there, so the set makes it again to withdraw it.
func TestRecall(t *testing.T) {
	deleting := func(o *helmv2.HelmRelease) {
		o.Finalizers, o.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: time.Now()}
	}
	for name, tc := range map[string]struct {
		object   func(*helmv2.HelmRelease)
		cluster  func(*hubv1.ClusterRegistration)
		held     bool
		age      time.Duration // of the registration and the set; an hour and the grace is an hour as well
		want     bool
		wantWait bool
	}{
		"There":                {want: true},
		"ItsSetDoesNotCompile": {held: true},
		"Selected":             {cluster: func(reg *hubv1.ClusterRegistration) { reg.Labels["tier"] = "prod" }, want: true}, // by match
		"OfAnotherSet": {object: func(o *helmv2.HelmRelease) {
			o.Annotations[hubv1.DeliveryAnnotation] = identity.Delivery("other", fleetOne)
		}},
		"NotTheHubs":                    {object: func(o *helmv2.HelmRelease) { o.Name = "mine" }},
		"Elsewhere":                     {object: func(o *helmv2.HelmRelease) { o.Namespace = "stranger" }},
		"OnItsWayOut":                   {object: deleting},
		"OfAnotherClient":               {object: func(o *helmv2.HelmRelease) { o.Labels = nil }},
		"Older":                         {object: older(2 * time.Hour), wantWait: true},
		"OlderForLong":                  {object: older(4 * time.Hour), age: 2 * time.Hour, want: true},
		"OlderAndUnregistered":          {object: older(2 * time.Hour), cluster: leavingFor(hubv1.UnregisteredReason), want: true},
		"OlderAndDestroyed":             {object: older(2 * time.Hour), cluster: leavingFor(hubv1.OriginDeletedReason), want: true},
		"OlderAndDrained":               {object: older(2 * time.Hour), cluster: drained, want: true},
		"OlderAndMadeAgain":             {object: older(2 * time.Hour), cluster: leavingFor("")},
		"OnItsWayOutOfAClusterThatGoes": {object: uninstalling(0), cluster: leavingFor(hubv1.OriginDeletedReason), want: true},
		"FinishedOfAClusterThatGoes":    {object: deleting, cluster: leavingFor(hubv1.OriginDeletedReason)},
		"FinishedAndUnregistered":       {object: deleting, cluster: leavingFor(hubv1.UnregisteredReason)},
		"OnItsWayOutAndUnregistered":    {object: uninstalling(0), cluster: leavingFor(hubv1.UnregisteredReason), want: true},
		"OnItsWayOutForLong":            {object: uninstalling(2 * time.Hour), want: true},
		"OnItsWayOutByFlux":             {object: uninstalling(0), wantWait: true},
		"OnItsWayOutAndDrained":         {object: uninstalling(0), cluster: drained, wantWait: true},
		"FinishedForLong": {object: func(o *helmv2.HelmRelease) {
			deleting(o)
			o.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-2 * time.Hour)}
		}},
		"UnregisteredAndItsSetIsNotRead": {cluster: leavingFor(hubv1.UnregisteredReason), held: true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrationOne("dev")
			made := time.Now().Add(-30*time.Minute - tc.age)
			reg.CreationTimestamp = metav1.NewTime(made)
			if tc.cluster != nil {
				tc.cluster(reg)
			}
			r := newMatcherRoom(t, interceptor.Funcs{}, reg, releaseOne(func(o *helmv2.HelmRelease) {
				if tc.object != nil {
					tc.object(o)
				}
			}))
			r.publish("base-1-e2", tc.held)
			set := r.registry.all()[r.set]
			set.created = made
			r.registry.put(r.set, set)
			result, err := r.Reconcile(t.Context(), reg)
			if err != nil || (result.RequeueAfter > 0) != tc.wantWait || result.RequeueAfter > r.Config.TeardownGrace {
				t.Errorf("it comes to %+v (%v)", result, err)
			}
			if d := r.look(); (d != nil) != tc.want || d != nil && d.Spec.AddonSetRef.UID != "set" {
				t.Errorf("the delivery is %+v", d)
			}
		})
	}
}

// TestRecallReadsLive: what was withdrawn a moment ago is in the cache still, after its delivery has gone.
func TestRecallReadsLive(t *testing.T) {
	r := newMatcherRoom(t, interceptor.Funcs{}, registrationOne("dev"), releaseOne(func(*helmv2.HelmRelease) {}))
	r.Live = newMatcherRoom(t, interceptor.Funcs{}).api
	if d := r.look(); d != nil {
		t.Errorf("a delivery was made of what is gone: %+v", d)
	}
	r.Live = newMatcherRoom(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		return errors.New("overloaded")
	}}).api
	if _, err := r.Reconcile(t.Context(), registrationOne("dev")); err == nil {
		t.Error("what could not be read is taken for gone")
	}
}

// TestRecallOfMany: a fleet at rest has nothing to recall, and pays a look into the cache for that, however many sets there are.
func TestRecallOfMany(t *testing.T) {
	gets := 0
	r := newMatcherRoom(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		gets++
		return c.Get(ctx, key, obj, opts...)
	}}, registrationOne("prod"), releaseOne(func(*helmv2.HelmRelease) {}), deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
	reg := registrationOne("prod")
	for i := range 100 {
		set := r.registry.all()[r.set]
		selector, err := match.New(match.Reach{Namespace: "flux-system", Platform: true}, &hubv1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": fmt.Sprint(i)}}})
		if err != nil {
			t.Fatal(err)
		}
		set.reach, set.selector = selector.Reach(), selector
		r.registry.put(types.NamespacedName{Namespace: "flux-system", Name: fmt.Sprint(i)}, set)
	}
	existing := map[types.NamespacedName]*hubv1.AddonDelivery{r.set: deliveryOne(nil)}
	if left, err := r.leftovers(t.Context(), reg, existing); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
	if r.look(); gets > 2 { // the registration and the delivery, of which the test asks
		t.Errorf("%d requests", gets)
	}
}

// TestRecallAll: a set is deleted while deliveries of it are not there. Whoever deletes it has said what is to go, however old it is.
func TestRecallAll(t *testing.T) {
	for name, tc := range map[string]struct {
		object  func(*helmv2.HelmRelease)
		cluster func(*hubv1.ClusterRegistration)
		set     func(*hubv1.AddonSet)
		objects []client.Object
		want    bool
		waits   bool
	}{
		"There":                    {want: true},
		"OlderThanTheRegistration": {object: older(2 * time.Hour), want: true},
		"NotSelected":              {cluster: func(reg *hubv1.ClusterRegistration) { reg.Labels["tier"] = "dev" }, want: true},
		"OfAnotherSet":             {object: func(o *helmv2.HelmRelease) { o.Labels[hubv1.AddonSetLabel] = "other" }},
		"OfAnotherDelivery":        {object: func(o *helmv2.HelmRelease) { o.Annotations[hubv1.DeliveryAnnotation] = "other" }},
		"NotTheHubs":               {object: func(o *helmv2.HelmRelease) { o.Name = "mine" }},
		"OfNoCluster":              {object: func(o *helmv2.HelmRelease) { delete(o.Annotations, hubv1.RegistrationAnnotation) }},
		"OfOneThatIsNotRegistered": {object: func(o *helmv2.HelmRelease) { o.Annotations[hubv1.RegistrationAnnotation] = "fleet/two" }},
		"OnItsWayOut": {object: func(o *helmv2.HelmRelease) {
			o.Finalizers, o.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: time.Now()}
		}},
		"OnItsWayOutByFlux":             {object: uninstalling(0), waits: true},
		"OnItsWayOutForLong":            {object: uninstalling(2 * time.Hour), want: true},
		"OnItsWayOutOfAClusterThatGoes": {object: uninstalling(0), cluster: leavingFor(hubv1.OriginDeletedReason), want: true},
		"OnItsWayOutAndUnregistered":    {object: uninstalling(0), cluster: leavingFor(hubv1.UnregisteredReason), want: true},
		"OnItsWayOutOfOneThatIsNotRegistered": {object: func(o *helmv2.HelmRelease) {
			uninstalling(0)(o)
			o.Annotations[hubv1.RegistrationAnnotation] = "fleet/two"
		}},
		"FinishedOfAClusterThatGoes": {object: func(o *helmv2.HelmRelease) {
			uninstalling(0)(o)
			o.Finalizers = []string{hubv1.FluxObjectFinalizer}
		}, cluster: leavingFor(hubv1.OriginDeletedReason)},
		"ItsNamespaceGoes":   {objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flux-system", Finalizers: []string{"x/y"}, DeletionTimestamp: &metav1.Time{Time: time.Now()}}}}},
		"ItHasNeverCompiled": {set: func(set *hubv1.AddonSet) { set.Status.Revision = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrationOne("prod")
			reg.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", CreationTimestamp: reg.CreationTimestamp}}
			set.Status.Revision = "base-1-e2"
			o := releaseOne(func(*helmv2.HelmRelease) {})
			if tc.object != nil {
				tc.object(o)
			}
			if tc.cluster != nil {
				tc.cluster(reg)
			}
			if tc.set != nil {
				tc.set(set)
			}
			r := newMatcherRoom(t, interceptor.Funcs{}, append(tc.objects, reg, o)...)
			left, err := r.recallAll(t.Context(), set, nil)
			if err != nil || left.recalled != tc.want || len(left.uninstalling) > 0 != tc.waits {
				t.Errorf("it comes to %+v (%v)", left, err)
			}
			deliveries := &hubv1.AddonDeliveryList{}
			if err := r.api.List(t.Context(), deliveries); err != nil || len(deliveries.Items) > 0 != tc.want {
				t.Errorf("there are %d deliveries (%v)", len(deliveries.Items), err)
			}
		})
	}
}

// TestRecallAllGivesNothingThatFailed: the guard may hold what is made again to be withdrawn, and the cluster has it meanwhile.
func TestRecallAllGivesNothingThatFailed(t *testing.T) {
	state := &hubv1.RolloutStatus{Revision: "base-2-e2", Phase: hubv1.RolloutFailed, CompletedRevision: "base-1-e2", FailedRevisions: []string{"base-2-e2"}}
	older := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-0-e2", Labels: map[string]string{hubv1.AddonSetLabel: "base"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "chandler.dev/v1alpha1", Kind: "AddonSet", Name: "base", UID: "set", Controller: ptr.To(true)}}}}
	for name, tc := range map[string]struct {
		status      *hubv1.RolloutStatus
		annotations map[string]string
		want        string
	}{
		"nothing has failed":       {&hubv1.RolloutStatus{Revision: "base-2-e2", Phase: hubv1.RolloutDone, CompletedRevision: "base-2-e2"}, nil, "base-2-e2"},
		"it has failed":            {state, nil, "base-1-e2"},
		"it is being withdrawn":    {withdrawing(state), nil, "base-1-e2"},
		"its status is lost":       {nil, map[string]string{hubv1.RolloutAnnotation: rollout.Record("flux-system/base", state)}, "base-1-e2"},
		"none was completed":       {&hubv1.RolloutStatus{FailedRevisions: state.FailedRevisions}, nil, "base-0-e2"},
		"somebody has undone it":   {&hubv1.RolloutStatus{CompletedRevision: "base-2-e2"}, map[string]string{hubv1.UndoAnnotation: "base-2-e2/base-0-e2"}, "base-0-e2"},
		"a set of an older hub's":  {&hubv1.RolloutStatus{Phase: hubv1.RolloutDone}, nil, "base-2-e2"},
		"it has no rollout so far": {nil, nil, "base-2-e2"},
	} {
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", Annotations: tc.annotations}}
		set.Status.Revision, set.Status.Rollout = "base-2-e2", tc.status
		r := newMatcherRoom(t, interceptor.Funcs{}, registrationOne("prod"), releaseOne(func(*helmv2.HelmRelease) {}), older.DeepCopy())
		if left, err := r.recallAll(t.Context(), set, nil); err != nil || !left.recalled {
			t.Errorf("%s: it comes to %+v (%v)", name, left, err)
		}
		d := &hubv1.AddonDelivery{}
		if err := r.api.Get(t.Context(), types.NamespacedName{Namespace: "flux-system", Name: identity.Delivery("base", fleetOne)}, d); err != nil || d.Spec.RevisionName != tc.want {
			t.Errorf("%s: it gets %s, want %s (%v)", name, d.Spec.RevisionName, tc.want, err)
		}
	}
}

// TestRecalledAtOnce: a set that is deleted does not wait with what has no delivery until all others are gone. They may wait for long, and somebody
// has to know meanwhile what becomes of it.
func TestRecalledAtOnce(t *testing.T) {
	two := types.NamespacedName{Namespace: "fleet", Name: "two"}
	other := deliveryOne(func(d *hubv1.AddonDelivery) {
		d.Name, d.UID, d.Spec.RegistrationRef.Name, d.Spec.AddonSetRef.UID = identity.Delivery("base", two), "two", "two", "set"
		d.Spec.Withdrawal, d.DeletionTimestamp = d.UID, &metav1.Time{Time: time.Now()}
	})
	lists := 0
	r := newMatcherRoom(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if l, ok := list.(*metav1.PartialObjectMetadataList); ok && l.Kind == "HelmReleaseList" {
			lists++
		}
		return c.List(ctx, list, opts...)
	}}, registrationOne("prod"), releaseOne(func(*helmv2.HelmRelease) {}), other,
		&hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", Finalizers: []string{hubv1.AddonSetFinalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()}},
			Status: hubv1.AddonSetStatus{Revision: "base-1-e2"}})
	r.Recorder = events.NewFakeRecorder(10)
	for range 4 {
		set := &hubv1.AddonSet{}
		if err := r.api.Get(t.Context(), r.set, set); err != nil {
			t.Fatal(err)
		}
		if _, err := r.finalize(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	d := &hubv1.AddonDelivery{}
	if err := r.api.Get(t.Context(), types.NamespacedName{Namespace: "flux-system", Name: identity.Delivery("base", fleetOne)}, d); err != nil || d.Spec.AddonSetRef.UID != "set" {
		t.Errorf("it is not made again: %+v (%v)", d.Spec, err)
	}
	if lists != 2 {
		t.Errorf("what the set has left is listed %d times, want 2: before and after it was made again", lists)
	}
}

// TestHeldSetSearchesForARegistrationThatGoes: a set that is being deleted has searched, and its guard holds its deliveries. A registration
// that goes waits for one that somebody has deleted.
func TestHeldSetSearchesForARegistrationThatGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		object func(*helmv2.HelmRelease)
		goes   bool
		want   bool
	}{
		"Waits":         {uninstalling(0), true, true},
		"DoesNotGo":     {uninstalling(0), false, false},
		"KeptByAnother": {func(o *helmv2.HelmRelease) { uninstalling(0)(o); o.Finalizers = []string{"members.example/held"} }, true, false},
		"OfAnotherSet": {func(o *helmv2.HelmRelease) {
			o.Annotations[hubv1.DeliveryAnnotation] = identity.Delivery("other", fleetOne)
		}, true, false},
		"NothingDeleted": {func(*helmv2.HelmRelease) {}, true, true},
	} {
		reg := registrationOne("prod")
		reg.Finalizers = []string{hubv1.RegistrationFinalizer}
		if tc.goes {
			reg.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		r := newMatcherRoom(t, interceptor.Funcs{}, reg, releaseOne(tc.object))
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set"}}
		waited, err := r.waitedFor(t.Context(), set, nil)
		if err != nil || waited != tc.want {
			t.Errorf("%s: %t, %v", name, waited, err)
		}
		if waited, err = r.waitedFor(t.Context(), set, []hubv1.AddonDelivery{*deliveryOne(nil)}); err != nil || waited {
			t.Errorf("%s: beside its delivery: %t, %v", name, waited, err)
		}
	}
	found := &search{at: time.Unix(100, 0)}
	for after, want := range map[time.Duration]bool{lookForFlux - 1: false, lookForFlux: true} {
		if found.due(found.at.Add(after), true) != want || found.due(found.at.Add(after), false) {
			t.Errorf("after %s a search is due or not", after)
		}
	}
}

// TestASearchReadsEachClusterOnce: a set that is being deleted may have left many objects on each of many clusters.
func TestASearchReadsEachClusterOnce(t *testing.T) {
	const clusters, addons = 5, 4
	var objects []client.Object
	for i := range clusters {
		key := types.NamespacedName{Namespace: "fleet", Name: fmt.Sprintf("c%d", i)}
		objects = append(objects, &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		for a := range addons {
			name := fmt.Sprintf("app%d", a)
			objects = append(objects, releaseOne(func(o *helmv2.HelmRelease) {
				uninstalling(0)(o)
				o.Name = identity.FluxObject("hub", key, name)
				o.Labels = map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", key), hubv1.AddonLabel: name, hubv1.AddonSetLabel: "base"}
				o.Annotations = map[string]string{
					hubv1.DeliveryAnnotation: identity.Delivery("base", key), hubv1.RegistrationAnnotation: key.String()}
			}))
		}
	}
	r := newMatcherRoom(t, interceptor.Funcs{}, objects...)
	reads := 0
	r.Live = interceptor.NewClient(r.api.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set"}}
	set.Status.Revision = "base-1-e2"
	left, err := r.recallAll(t.Context(), set, nil)
	if err != nil || len(left.uninstalling) != clusters*addons || reads > clusters+1 {
		t.Errorf("%d objects, %d reads, %v", len(left.uninstalling), reads, err)
	}
}

// TestSetWaitsForFlux: somebody deletes a Flux object, its delivery and its set, and Flux cannot uninstall it. The set stays until Flux is done,
// and says so. If the cluster goes meanwhile, the delivery is made again, by which the object is let go.
func TestSetWaitsForFlux(t *testing.T) {
	two := types.NamespacedName{Namespace: "fleet", Name: "two"}
	other := deliveryOne(func(d *hubv1.AddonDelivery) {
		d.Name, d.UID, d.Spec.RegistrationRef.Name, d.Spec.AddonSetRef.UID = identity.Delivery("base", two), "two", "two", "set"
		d.Finalizers = []string{hubv1.DeliveryFinalizer}
		d.Spec.Withdrawal, d.DeletionTimestamp = d.UID, &metav1.Time{Time: time.Now()}
	})
	for name, tc := range map[string]struct {
		deliveries []client.Object
		says       string
	}{
		"alone":                     {nil, "waits until Flux has removed what somebody has deleted: HelmRelease flux-system/"},
		"beside another withdrawal": {[]client.Object{other}, "being withdrawn from 1 cluster: two; waits until Flux has removed"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrationOne("prod")
			reg.Finalizers = []string{hubv1.RegistrationFinalizer}
			r := newMatcherRoom(t, interceptor.Funcs{}, append(tc.deliveries, reg, releaseOne(uninstalling(0)),
				&hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", Finalizers: []string{hubv1.AddonSetFinalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()}},
					Status: hubv1.AddonSetStatus{Revision: "base-1-e2"}})...)
			clock := clocktesting.NewFakePassiveClock(time.Now())
			r.Recorder, r.Clock = events.NewFakeRecorder(10), clock
			look := func() (*hubv1.AddonSet, time.Duration) {
				set := &hubv1.AddonSet{}
				if err := r.api.Get(t.Context(), r.set, set); err != nil {
					t.Fatal(err)
				}
				again, err := r.finalize(t.Context(), set)
				if err != nil {
					t.Fatal(err)
				}
				return set, again
			}
			look()
			set, again := look()
			if c := status.Find(set, hubv1.ReadyCondition); again == 0 || c == nil || !strings.Contains(c.Message, tc.says) {
				t.Errorf("it looks again after %s, and says %+v", again, c)
			}
			if err := r.api.Delete(t.Context(), reg); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(again))
			look()
			d := &hubv1.AddonDelivery{}
			if err := r.api.Get(t.Context(), types.NamespacedName{Namespace: "flux-system", Name: identity.Delivery("base", fleetOne)}, d); err != nil {
				t.Errorf("the delivery is not made again: %v", err)
			}
		})
	}
}

// TestRecallStaysInReach: a tenant writes a HelmRelease that looks as if a set of his had delivered it to a cluster of another namespace, and
// deletes the set. No delivery is made for that cluster.
func TestRecallStaysInReach(t *testing.T) {
	for namespace, want := range map[string]bool{"tenant": false, "flux-system": true, fleetOne.Namespace: true} {
		forged := releaseOne(func(o *helmv2.HelmRelease) { o.Namespace = namespace })
		deleted := releaseOne(func(o *helmv2.HelmRelease) {
			uninstalling(0)(o)
			o.Namespace = namespace
		})
		r := newMatcherRoom(t, interceptor.Funcs{}, registrationOne("prod"), forged)
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "base", UID: "set"}}
		set.Status.Revision = "base-1-e2"
		left, err := r.recallAll(t.Context(), set, nil)
		deliveries := &hubv1.AddonDeliveryList{}
		if err == nil {
			err = r.api.List(t.Context(), deliveries)
		}
		if err != nil || left.recalled != want || len(deliveries.Items) > 0 != want {
			t.Errorf("%s: it comes to %+v (%v), and there are %d deliveries", namespace, left, err, len(deliveries.Items))
		}
		r = newMatcherRoom(t, interceptor.Funcs{}, registrationOne("prod"), deleted)
		if left, err := r.recallAll(t.Context(), set, nil); err != nil || len(left.uninstalling) > 0 != want {
			t.Errorf("%s: of one that Flux uninstalls, it comes to %+v (%v)", namespace, left, err)
		}
	}
}

// TestRecallAfterATeamHasLostTheCluster: while somebody's deletion of a delivery is under way, its Team loses the cluster. The set makes it again
// and withdraws it for as long as the Team has its rights there. Without them, what is there may be forged.
func TestRecallAfterATeamHasLostTheCluster(t *testing.T) {
	rights := deliveryOne(func(d *hubv1.AddonDelivery) { d.Name = identity.Delivery("team-shop", fleetOne) })
	between := releaseOne(func(o *helmv2.HelmRelease) { o.Name = identity.FluxObject("hub", fleetOne, "team-shop") })
	for name, tc := range map[string]struct {
		rights client.Object
		want   int
	}{
		"the rights are there":              {rights, 1},
		"the rights are to be made again":   {between, 1},
		"the rights are another Team's":     {deliveryOne(func(d *hubv1.AddonDelivery) { d.Name = identity.Delivery("team-pay", fleetOne) }), 0},
		"the team has written them":         {deliveryOne(func(d *hubv1.AddonDelivery) { d.Namespace, d.Name = "shop-team", rights.Name }), 0},
		"the rights are of another cluster": {deliveryOne(func(d *hubv1.AddonDelivery) { d.Name = identity.Delivery("team-shop", types.NamespacedName{Name: "x"}) }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMatcherRoom(t, interceptor.Funcs{}, registrationOne("prod"), tc.rights, releaseOne(func(o *helmv2.HelmRelease) { o.Namespace = "shop-team" }),
				&hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: "base", UID: "set"}})
			shop := hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}}
			shop.Spec = hubv1.TeamSpec{HubNamespaces: []string{"shop-team"}, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "dev"}},
				Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}
			from := team.Reach("shop-team", []hubv1.Team{shop}, m.Config.IsPlatform)
			selector, err := match.New(from, &hubv1.AddonSetSpec{SelectAll: true})
			if err != nil {
				t.Fatal(err)
			}
			m.registry.put(types.NamespacedName{Namespace: "shop-team", Name: "base"}, compiled{uid: "set", reach: selector.Reach(), selector: selector, revision: "base-1-e2", everyone: "base-1-e2", newcomers: "base-1-e2"})
			m.look()
			deliveries := &hubv1.AddonDeliveryList{}
			err = m.api.List(t.Context(), deliveries, client.InNamespace("shop-team"))
			again := slices.DeleteFunc(deliveries.Items, func(d hubv1.AddonDelivery) bool { return d.Name != identity.Delivery("base", fleetOne) })
			if err != nil || len(again) != tc.want {
				t.Errorf("there are %d deliveries, want %d (%v)", len(again), tc.want, err)
			}
		})
	}
}
