// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
)

// A set that comes back to the content of an older revision has that one as its newest: the number says so, and is raised once.
func TestARevisionThatIsUsedAgainIsTheNewest(t *testing.T) {
	set, name := rollingSet(t)
	raw, _ := snapshotOf(t, set)
	revision := func(name string, number int64, raw []byte) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: map[string]string{hubv1.AddonSetLabel: "base"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, hubv1.GroupVersion.WithKind("AddonSet"))}},
			Revision: number, Data: runtime.RawExtension{Raw: raw},
		}
	}
	r := newFixture(t, set, revision(name, 1, raw), revision("base-2-e1", 2, []byte(`{}`)), revision("base-3-e1", 3, []byte(`{}`)))
	for range 2 {
		must.Get(r.snapshot(t.Context(), set, nil)).Or(t)
		got := &appsv1.ControllerRevision{}
		must.Do(t, r.Client.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: name}, got))
		if got.Revision != 4 {
			t.Errorf("it has number %d, want 4", got.Revision)
		}
	}
}
