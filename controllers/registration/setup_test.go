// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// A set that selects a cluster and serves it not yet turns out not to compile, with or without an edit, or to compile again. The cluster says
// so, and an event wakes it.
func TestASetTurnsOutNotToCompile(t *testing.T) {
	compiles := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", Generation: 1}}
	compiles.Spec.SelectAll = true
	stalled := compiles.DeepCopy()
	status.Summarize(stalled, status.Summary{Phase: status.Stalled, Reason: hubv1.InvalidSpecReason, Message: "typo"}, moment)
	say := func(set *hubv1.AddonSet) string {
		api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(set.DeepCopy()).Build()
		r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(moment),
			Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}}
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
		must.Get(r.sets(t.Context(), reg)).Or(t)
		return reg.Status.Sets[0].Result
	}
	for _, e := range []event.UpdateEvent{{ObjectOld: compiles, ObjectNew: stalled}, {ObjectOld: stalled, ObjectNew: compiles}} {
		was, is := say(e.ObjectOld.(*hubv1.AddonSet)), say(e.ObjectNew.(*hubv1.AddonSet))
		if was == is || !setChanges().Update(e) {
			t.Errorf("%q becomes %q, and wakes it: %t", was, is, setChanges().Update(e))
		}
	}
	served := compiles.DeepCopy()
	status.Summarize(served, status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "delivered to 1/1 clusters"}, moment)
	if setChanges().Update(event.UpdateEvent{ObjectOld: compiles, ObjectNew: served}) {
		t.Error("every report of a set wakes all clusters")
	}
}

// A registration of a cluster is drained, and another one is served instead. The drain waits for what came through that one, so it is woken
// when that goes. Nobody else of the cluster is.
func TestADrainWaitsForWhatCameThroughAnother(t *testing.T) {
	registration := func(name string, draining bool) *hubv1.ClusterRegistration {
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name)}}
		if reg.Status.ClusterUID = "c1"; draining {
			status.Set(reg, hubv1.DrainingCondition, metav1.ConditionTrue, hubv1.DrainInProgressReason, "", moment)
		}
		return reg
	}
	served, drained := registration("one", false), registration("drained", true)
	drained.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: "fleet", Name: "one"}
	d := deliveryOf("base", status.Done, hubv1.AddonsReadyReason, hubv1.AddonReady)
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(served, drained, registration("other", false), &d).Build()
	r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(moment),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}}
	left := func() int {
		s := must.Get(r.sets(t.Context(), drained)).Or(t)
		return len(s.Left)
	}
	if left() != 1 {
		t.Errorf("%d are left", left())
	}
	must.Do(t, api.Delete(t.Context(), &d))
	if left() != 0 {
		t.Errorf("%d are left", left())
	}
	var woken []string
	for _, req := range r.countedBy(t.Context(), &d) {
		woken = append(woken, req.Name)
	}
	if !slices.Equal(woken, []string{"one", "drained"}) {
		t.Errorf("that it goes wakes %v", woken)
	}
}
