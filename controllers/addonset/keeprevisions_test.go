// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"bytes"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
)

// A set is deleted with --cascade=foreground: garbage collection removes its revisions at once, while the guard holds what it delivers. The
// revision that clusters have is made again once garbage collection is done with the set, and no other.
func TestRevisionsOfWhatIsHeldAreMadeAgain(t *testing.T) {
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "flux-system", Name: "base", UID: "set", Finalizers: []string{hubv1.Finalizer, metav1.FinalizerDeleteDependents},
	}}
	set.Spec.SelectAll = true
	set.Spec.Addons = []hubv1.Addon{{Name: "app", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"kind":"OCIRepository","name":"x"}}`)}}}}
	raw, hash := snapshotOf(t, set)
	for name, tc := range map[string]struct {
		revision string
		again    bool
	}{
		"Present":         {identity.Revision("base", hash, render.Epoch), true},
		"OfAnOlderHub":    {identity.Revision("base", hash, render.Epoch-1), true},
		"OfAnEarlierSpec": {identity.Revision("base", "0123456789", render.Epoch), false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{set.DeepCopy()}
			for i := range 5 {
				reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: fmt.Sprintf("c%d", i), UID: types.UID(fmt.Sprintf("c%d", i))}}
				d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{
					Namespace: "flux-system", Name: identity.Delivery("base", client.ObjectKeyFromObject(reg)), UID: types.UID(fmt.Sprintf("d%d", i)), Labels: setLabels("base"),
				}}
				d.Spec = hubv1.AddonDeliverySpec{
					RegistrationRef: hubv1.RegistrationReference{Namespace: "fleet", Name: reg.Name}, AddonSetRef: hubv1.DeliveredSetReference{Name: "base", UID: "set"}, RevisionName: tc.revision,
				}
				d.Status.Addons = []hubv1.AddonStatus{{Name: "app", Kind: "HelmRelease", Object: reg.Name + "-app", State: hubv1.AddonReady, AppliedGeneration: 1}}
				objects = append(objects, reg, d)
			}
			r := newFixture(t, objects...)
			stored := func() *hubv1.AddonSet {
				s := &hubv1.AddonSet{}
				must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), s))
				return s
			}
			reconcile := func() (*appsv1.ControllerRevision, bool) {
				must.Get(r.Reconcile(t.Context(), stored())).Or(t)
				if held := stored().Status.HeldRemovals; held == nil || held.Count != 4 {
					t.Fatalf("the guard holds %+v, want what is more than one cluster of five", held)
				}
				revision := &appsv1.ControllerRevision{}
				err := r.Client.Get(t.Context(), types.NamespacedName{Namespace: "flux-system", Name: tc.revision}, revision)
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				return revision, err == nil
			}
			must.Do(t, r.Client.Delete(t.Context(), stored()))
			if _, there := reconcile(); there {
				t.Error("made while garbage collection is at the set")
			}
			s := stored()
			s.Finalizers = []string{hubv1.Finalizer}
			must.Do(t, r.Client.Update(t.Context(), s))
			got, there := reconcile()
			if there != tc.again || there && (!metav1.IsControlledBy(got, set) || !bytes.Equal(got.Data.Raw, raw)) {
				t.Errorf("there %t, want %t: %+v", there, tc.again, got)
			}
		})
	}
}
