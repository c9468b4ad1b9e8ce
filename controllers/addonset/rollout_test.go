// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// rollingSet is a set with a canary, and the name of its present revision.
func rollingSet(t *testing.T) (*hubv1.AddonSet, string) {
	t.Helper()
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", Generation: 2, Finalizers: []string{hubv1.AddonSetFinalizer}}}
	set.Spec.SelectAll = true
	set.Spec.Addons = []hubv1.Addon{{Name: "hello", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"kind":"OCIRepository","name":"x"}}`)}}}}
	set.Spec.Rollout = &hubv1.Rollout{Waves: []hubv1.Wave{{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}}}}}
	_, hash, err := compile.Snapshot(&set.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return set, identity.Revision("base", hash, render.Epoch)
}

// clusterOf is a registration that answers, and the set's delivery there.
func clusterOf(name string, labels map[string]string, revision string) (*hubv1.ClusterRegistration, *hubv1.AddonDelivery) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name), Labels: labels}}
	status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, "Answers", "", fleetTime)
	d := on{reason: hubv1.AddonsReadyReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonReady, "")}}.delivery(name)
	d.UID, d.Finalizers = types.UID("of-"+name), []string{hubv1.DeliveryFinalizer}
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
	r := newRoom(t, set, canary, asks, other, waits)
	r.starts = enqueue.NewBell(enqueue.Itself)
	stored := &hubv1.AddonSet{}
	for range 2 { // the second time it has been granted, and the delivery has not reported that yet
		if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		if s := stored.Status.Rollout; s.Wave != "canary" || len(s.Waves) != 2 || s.Waves[0].Running != 1 || s.Waves[1].Running != 0 {
			t.Errorf("%+v", s)
		}
		if starts := r.registry.sets[client.ObjectKeyFromObject(set)].starts; len(starts) != 0 {
			t.Errorf("%+v", starts)
		}
	}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(asks), asks); err != nil || len(asks.Spec.Removals) != 1 {
		t.Errorf("%v, granted: %v", err, asks.Spec.Removals)
	}
}
