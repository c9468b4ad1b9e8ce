// SPDX-License-Identifier: Apache-2.0

package teams

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// A Team whose AddonSet is somebody else's waits. That this one goes, or is given to the Team by its label, wakes the Team.
func TestAnAddonSetOfSomebodyElseGoes(t *testing.T) {
	theirs := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop"}}
	m := newFixture(shop(nil), theirs)
	if team, _ := m.reconcile(t, "flux-system"); status.Reason(team, hubv1.StalledCondition) != hubv1.NotOwnedReason {
		t.Fatalf("it says %+v", team.Status)
	}
	wakes := func(set *hubv1.AddonSet) bool {
		woken := ofSet(t.Context(), set)
		return len(woken) == 1 && woken[0] == reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "flux-system", Name: "shop"}}
	}
	if !setChanges().Delete(event.DeleteEvent{Object: theirs}) || !wakes(theirs) {
		t.Error("that it goes wakes nobody")
	}
	given := theirs.DeepCopy()
	given.Labels = map[string]string{hubv1.TeamLabel: "shop"}
	for _, e := range []event.UpdateEvent{{ObjectOld: theirs, ObjectNew: given}, {ObjectOld: given, ObjectNew: theirs}} {
		if !setChanges().Update(e) {
			t.Errorf("a label that comes or goes wakes nobody: %v", e.ObjectNew.GetLabels())
		}
	}
	if other := (&hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}); len(ofSet(t.Context(), other)) > 0 {
		t.Error("another set wakes a Team")
	}
}
