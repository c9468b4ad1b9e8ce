// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
)

// reported returns a set with long manifests, before and after its status has changed.
func reported() (before, after *hubv1.AddonSet) {
	before = &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", ResourceVersion: "7"}}
	for range 20 {
		before.Spec.Addons = append(before.Spec.Addons, hubv1.Addon{
			Name: "a", AddonBody: hubv1.AddonBody{Manifests: &apiextensionsv1.JSON{Raw: []byte(`{"data":"` + strings.Repeat("x", 5000) + `"}`)}},
		})
	}
	before.Status.ObservedGeneration = 3
	before.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}}
	after = before.DeepCopy()
	after.Status.ObservedGeneration, after.Status.Conditions = 4, nil
	return before, after
}

// TestStatusPatch: the patch of a status is what client.MergeFrom makes of the whole object, with its optimistic lock.
func TestStatusPatch(t *testing.T) {
	before, after := reported()
	before.ResourceVersion, after.ResourceVersion = "7", "7"
	ours := must.Get(statusPatch{before: before}.Data(after)).Or(t)
	theirs := must.Get(client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)).Or(t)
	if string(ours) != string(theirs) {
		t.Errorf("%s, and client.MergeFrom has %s", ours, theirs)
	}
}

func BenchmarkStatusPatch(b *testing.B) {
	before, after := reported()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (statusPatch{before: before}).Data(after); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMergeFrom(b *testing.B) {
	before, after := reported()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatusAsItWas(b *testing.B) {
	before, _ := reported()
	after := before.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if err := Status(b.Context(), nil, before, after); err != nil {
			b.Fatal(err)
		}
	}
}
