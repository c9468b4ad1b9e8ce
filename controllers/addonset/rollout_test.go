// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// rollingSet is a set with a canary, and the name of its present revision.
func rollingSet(t *testing.T) (*hubv1.AddonSet, string) {
	t.Helper()
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", Generation: 2, Finalizers: []string{hubv1.Finalizer}}}
	set.Spec.SelectAll = true
	set.Spec.Addons = []hubv1.Addon{{Name: "hello", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"kind":"OCIRepository","name":"x"}}`)}}}}
	set.Spec.Rollout = &hubv1.Rollout{Waves: []hubv1.Wave{{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}}}}}
	_, hash := snapshotOf(t, set)
	return set, identity.Revision("base", hash, render.Epoch)
}

// clusterOf is a registration that answers, and the set's delivery there.
func clusterOf(name string, labels map[string]string, revision string) (*hubv1.ClusterRegistration, *hubv1.AddonDelivery) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name), Labels: labels}}
	status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, "Answers", "", fleetTime)
	d := on{reason: hubv1.AddonsReadyReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonReady, "")}}.delivery(name)
	d.UID, d.Finalizers = types.UID("of-"+name), []string{hubv1.Finalizer}
	d.Labels = map[string]string{hubv1.AddonSetLabel: "base"}
	d.Spec.AddonSetRef.UID, d.Spec.RevisionName, d.Status.ReadyRevision = "set", revision, revision
	return reg, &d
}

// A revision drops an add-on. Each removal asks the guard first; the canary that asks and is granted it works on its revision, and
// nobody goes on without it.
func TestAskingIsNoExcuse(t *testing.T) {
	set, revision := rollingSet(t)
	set.Status.Rollout = &hubv1.RolloutStatus{Revision: revision, CompletedRevision: "base-1-e3", Wave: "canary", Phase: hubv1.RolloutProgressing}
	canary, asks := clusterOf("canary", map[string]string{"ring": "canary"}, revision)
	other, waits := clusterOf("other", nil, "base-1-e3")
	asks.Spec.Start = &hubv1.DeliveryStart{Time: metav1.NewTime(fleetTime.Add(-time.Minute)), Healthy: true}
	asks.Status.ReadyRevision = "base-1-e3"
	asks.Status.Addons = append(asks.Status.Addons, hubv1.AddonStatus{Name: "old", State: hubv1.AddonHeld, Reason: hubv1.DroppedReason, Removal: "drop-old", AppliedGeneration: 1})
	r := newFixture(t, set, canary, asks, other, waits)
	r.starts = enqueue.NewBell(enqueue.Itself)
	stored := &hubv1.AddonSet{}
	for range 2 { // the second time it has been granted, and the delivery has not reported that yet
		must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
		must.Get(r.Reconcile(t.Context(), stored)).Or(t)
		if s := stored.Status.Rollout; s.Wave != "canary" || len(s.Waves) != 2 || s.Waves[0].Running != 1 || s.Waves[1].Running != 0 {
			t.Errorf("%+v", s)
		}
		if starts := r.registry.sets.All()[client.ObjectKeyFromObject(set)].starts; len(starts) != 0 {
			t.Errorf("%+v", starts)
		}
	}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(asks), asks); err != nil || len(asks.Spec.Removals) != 1 {
		t.Errorf("%v, granted: %v", err, asks.Spec.Removals)
	}
}

// Whoever waits for the set waits for the clusters that are about to start, from the first look at the edit on. A Kustomization with
// wait: true took the set for Ready in the second before the canary had the revision.
func TestReadyWaitsForWhoStarts(t *testing.T) {
	set, _ := rollingSet(t)
	set.Status.Rollout = &hubv1.RolloutStatus{Revision: "base-1-e3", CompletedRevision: "base-1-e3", Phase: hubv1.RolloutDone}
	one, canary := clusterOf("canary", map[string]string{"ring": "canary"}, "base-1-e3")
	two, other := clusterOf("other", nil, "base-1-e3")
	r := newFixture(t, set, one, canary, two, other)
	r.starts = enqueue.NewBell(enqueue.Itself)
	stored := &hubv1.AddonSet{}
	for range 2 { // the second time the matcher has been told, and the cache does not show it yet
		must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
		must.Get(r.Reconcile(t.Context(), stored)).Or(t)
		if c := status.Find(stored, hubv1.ReadyCondition); c.Status != metav1.ConditionFalse || c.Reason != hubv1.ProgressingReason ||
			!strings.Contains(c.Message, "not yet: canary") || strings.Contains(c.Message, "other") {
			t.Errorf("Ready is %s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
}

// revisionOf is the revision of a set with its present content.
// snapshotOf returns what a revision stores of a set, and the hash of that.
func snapshotOf(t *testing.T, set *hubv1.AddonSet) (raw []byte, hash string) {
	t.Helper()
	raw, hash, err := compile.Snapshot(&set.Spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw, hash
}

func revisionOf(t *testing.T, set *hubv1.AddonSet, epoch int) *appsv1.ControllerRevision {
	t.Helper()
	raw, hash := snapshotOf(t, set)
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: identity.Revision(set.Name, hash, epoch), Labels: map[string]string{hubv1.AddonSetLabel: set.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, hubv1.GroupVersion.WithKind("AddonSet"))},
	}, Data: runtime.RawExtension{Raw: raw}, Revision: 1}
}

// A revision fails after an upgrade of the hub. The one before is of an older epoch, which the hub leaves as it is: the clusters
// that go back get its content by this epoch's renderer.
func TestGoesBackAcrossAnUpgrade(t *testing.T) {
	set, revision := rollingSet(t)
	set.Spec.Rollout.OnFailure = hubv1.RollbackOnFailure
	before := set.DeepCopy()
	before.Spec.Addons[0].HelmRelease.Raw = []byte(`{"chartRef":{"kind":"OCIRepository","name":"before"}}`)
	old := revisionOf(t, before, render.Epoch-1)
	set.Status.Rollout = &hubv1.RolloutStatus{Revision: revision, CompletedRevision: old.Name, Wave: "canary", Phase: hubv1.RolloutFailed, FailedRevisions: []string{revision}}
	canary, failed := clusterOf("canary", map[string]string{"ring": "canary"}, revision)
	failed.Spec.Start = &hubv1.DeliveryStart{Time: metav1.NewTime(fleetTime.Add(-time.Minute)), Healthy: true}
	failed.Status.ReadyRevision = old.Name
	other, waits := clusterOf("other", nil, old.Name)
	r := newFixture(t, set, old, canary, failed, other, waits)
	r.starts = enqueue.NewBell(enqueue.Itself)
	must.Get(r.Reconcile(t.Context(), set.DeepCopy())).Or(t)
	starts := r.registry.sets.All()[client.ObjectKeyFromObject(set)].starts
	want := identity.Renewed(old.Name, revision)
	if got := starts[client.ObjectKeyFromObject(canary)]; len(starts) != 1 || got.Revision != want {
		t.Errorf("%+v, want %s", starts, want)
	}
	there := &appsv1.ControllerRevision{}
	if err := r.Client.Get(t.Context(), types.NamespacedName{Namespace: set.Namespace, Name: want}, there); err != nil || string(there.Data.Raw) != string(old.Data.Raw) {
		t.Errorf("%v, %s", err, there.Data.Raw)
	}
}

// The cache does not have the newest revision when its rollout begins. What it changes is known all the same.
func TestUnchangedBeforeTheCacheHasIt(t *testing.T) {
	set, _ := rollingSet(t)
	old := revisionOf(t, set, render.Epoch)
	set.Status.Rollout = &hubv1.RolloutStatus{Revision: old.Name, CompletedRevision: old.Name, Phase: hubv1.RolloutDone}
	set.Spec.Overlays = []hubv1.Overlay{{Name: "eu", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}, Variables: map[string]apiextensionsv1.JSON{"a": {Raw: []byte("1")}}}}
	canary, d := clusterOf("canary", map[string]string{"ring": "canary"}, old.Name)
	r := newFixture(t, set, old, canary, d)
	r.starts = enqueue.NewBell(enqueue.Itself)
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		if l, ok := list.(*appsv1.ControllerRevisionList); ok {
			l.Items = slices.DeleteFunc(l.Items, func(r appsv1.ControllerRevision) bool { return r.Name != old.Name })
		}
		return err
	}})
	must.Get(r.Reconcile(t.Context(), set.DeepCopy())).Or(t)
	starts := r.registry.sets.All()[client.ObjectKeyFromObject(set)].starts
	if got, ok := starts[client.ObjectKeyFromObject(canary)]; !ok || got.Start != nil {
		t.Errorf("%+v", starts)
	}
}

// A revision has failed, and the clusters have the one before again. Then the status of the set is lost, as after a restored backup: the
// set still knows what has failed, and what new clusters get. It writes that once.
func TestStatusIsLost(t *testing.T) {
	set, revision := rollingSet(t)
	before := set.DeepCopy()
	before.Spec.Addons[0].HelmRelease.Raw = []byte(`{"chartRef":{"kind":"OCIRepository","name":"before"}}`)
	old := revisionOf(t, before, render.Epoch)
	set.Annotations = map[string]string{hubv1.RetryAnnotation: revision + "/once"}
	set.Spec.Rollout.OnFailure = hubv1.RollbackOnFailure
	set.Status.Rollout = &hubv1.RolloutStatus{Revision: old.Name, CompletedRevision: old.Name, Phase: hubv1.RolloutRolledBack, FailedRevisions: []string{revision}, Retried: revision + "/once"}
	canary, d := clusterOf("canary", map[string]string{"ring": "canary"}, old.Name)
	d.Finalizers = nil
	r := newFixture(t, set, old, canary, d)
	r.starts = enqueue.NewBell(enqueue.Itself)
	writes := 0
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		writes++
		return c.Patch(ctx, obj, patch, opts...)
	}})
	stored := &hubv1.AddonSet{}
	for range 3 {
		must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
		must.Get(r.Reconcile(t.Context(), stored)).Or(t)
		c := r.registry.sets.All()[client.ObjectKeyFromObject(set)]
		if s := stored.Status.Rollout; s.Revision != old.Name || len(s.FailedRevisions) != 1 || s.Phase != hubv1.RolloutRolledBack || len(c.starts) != 0 || c.newcomers != old.Name {
			t.Fatalf("%+v, starts %v, new clusters get %s", s, c.starts, c.newcomers)
		}
		must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
		stored.Status = hubv1.AddonSetStatus{}
		must.Do(t, r.Client.Status().Update(t.Context(), stored))
	}
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
	// Its revisions are lost as well, and its deliveries.
	must.Do(t, errors.Join(r.Client.Delete(t.Context(), old), r.Client.Delete(t.Context(), d)))
	must.Get(r.Reconcile(t.Context(), stored)).Or(t)
	must.Get((&Matcher{Reconciler: r}).Reconcile(t.Context(), canary)).Or(t)
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(t.Context(), list); err != nil || len(list.Items) > 0 {
		t.Errorf("%v: %+v", err, list.Items)
	}
	// All at once, only what has failed is kept. When nothing has, the annotation goes.
	stored.Status.Rollout.Waves, stored.Status.Rollout.FailedRevisions = nil, nil
	must.Do(t, r.keepRecord(t.Context(), stored))
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored); err != nil || stored.Annotations[hubv1.RolloutAnnotation] != "" {
		t.Errorf("%v: %v", err, stored.Annotations)
	}
}

// A process that has just begun to lead does not go by statuses that may be hours old: the canary may have failed in its soak meanwhile.
func TestASoakThatNobodyHasSeen(t *testing.T) {
	set, _ := rollingSet(t)
	set.Spec.Rollout.Waves[0].Soak = &metav1.Duration{Duration: 30 * time.Minute}
	_, hash := snapshotOf(t, set)
	revision := identity.Revision("base", hash, render.Epoch)
	long := metav1.NewTime(fleetTime.Add(-5 * time.Hour))
	set.Status.Rollout = &hubv1.RolloutStatus{Revision: revision, CompletedRevision: "base-1-e3", Wave: "canary", WaveReady: &long, Phase: hubv1.RolloutSoaking, Started: &long}
	canary, has := clusterOf("canary", map[string]string{"ring": "canary"}, revision)
	has.Spec.Start, has.Status.ReadyTime = &hubv1.DeliveryStart{Time: long, Healthy: true}, &long
	other, waits := clusterOf("other", nil, "base-1-e3")
	r := newFixture(t, set, canary, has, other, waits)
	r.starts, r.Tenure = enqueue.NewBell(enqueue.Itself), &tenure.Tenure{}
	r.Tenure.Renew(r.Clock.Now())
	stored := &hubv1.AddonSet{}
	for range 2 { // the first time it makes the revision
		must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
		result := must.Get(r.Reconcile(t.Context(), stored)).Or(t)
		if starts := r.registry.sets.All()[client.ObjectKeyFromObject(set)].starts; len(starts) != 0 || result.RequeueAfter != tenure.Looks {
			t.Errorf("%+v, again after %s", starts, result.RequeueAfter)
		}
	}
}
