// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestSetThatIsNotThere: a set that depends on one that does not exist is Stalled, and says which. Its clusters keep the revision that
// they have. It goes on by itself when the other one comes, whichever comes first, and is Stalled again without losing anything when
// that one goes.
func TestSetThatIsNotThere(t *testing.T) {
	for name, depend := range map[string]func(*hubv1.AddonSetSpec){
		"OfTheSet": func(s *hubv1.AddonSetSpec) { s.DependsOn = []hubv1.AddonSetReference{{Name: "netwrk"}} },
		"OfAnAddOn": func(s *hubv1.AddonSetSpec) {
			s.Addons[0].DependsOn = []hubv1.AddonReference{{AddonSet: "netwrk", Name: "cilium"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPinFixture(t)
			other := func(name string) *hubv1.AddonSet {
				s := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
				s.Spec.SelectAll = true
				s.Spec.Addons = []hubv1.Addon{{Name: "cilium", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"kind":"OCIRepository","name":"x"}}`)}}}}
				return s
			}
			must.Do(t, r.api.Create(t.Context(), other("network")))
			r.look()
			r.upstream("1.2.0")
			set, _ := r.look()
			had := set.Status.Revision
			if had == "" || status.IsTrue(set, hubv1.StalledCondition) {
				t.Fatalf("revision %q, %+v", had, set.Status.Conditions)
			}
			depend(&set.Spec)
			set.Generation++
			must.Do(t, r.api.Update(t.Context(), set))
			stalled := func(when string) {
				t.Helper()
				set, _ := r.look()
				c := status.Find(set, hubv1.StalledCondition)
				if !status.IsTrue(set, hubv1.StalledCondition) || !strings.Contains(c.Message, `there is no AddonSet "netwrk" in this namespace; did you mean network?`) {
					t.Errorf("%s: %+v", when, c)
				}
				if when == "before" && set.Status.Revision != had {
					t.Errorf("revision %q, had %q", set.Status.Revision, had)
				}
			}
			stalled("before")
			must.Do(t, r.api.Create(t.Context(), other("netwrk")))
			if woken := r.dependentSets(t.Context(), other("netwrk")); len(woken) != 1 || woken[0].Name != set.Name {
				t.Errorf("its coming wakes %v", woken)
			}
			if set, _ = r.look(); status.IsTrue(set, hubv1.StalledCondition) || set.Status.Revision == had {
				t.Errorf("when it is there: revision %q, %+v", set.Status.Revision, set.Status.Conditions)
			}
			must.Do(t, r.api.Delete(t.Context(), &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "netwrk"}}))
			now := set.Status.Revision
			stalled("when it is gone")
			if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil || set.Status.Revision != now {
				t.Errorf("revision %q, had %q: %v", set.Status.Revision, now, err)
			}
		})
	}
}
