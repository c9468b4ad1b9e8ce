// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"reflect"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/plan"
)

// TestCacheKeepsWhatIsRead: what a controller sees of a Flux object is the same whether it comes from the API server or from the cache, which
// keeps but a part of it. A field that is read and not kept looks like one that nobody has set.
func TestCacheKeepsWhatIsRead(t *testing.T) {
	fill := randfill.NewWithSeed(6).NilChance(0).NumElements(1, 3)
	for kind, example := range map[string]client.Object{"HelmRelease": &helmv2.HelmRelease{}, "Kustomization": &kustomizev1.Kustomization{}} {
		slim := transform(t, example)
		for _, whose := range []string{"ours", "somebody else's", "ours, retrying"} {
			t.Run(kind+", "+whose, func(t *testing.T) {
				whole := reflect.New(reflect.TypeOf(example).Elem()).Interface().(client.Object)
				fill.Fill(whole)
				labels := map[string]string{hubv1.AddonLabel: "a", hubv1.AddonSetLabel: "set"}
				if whose != "somebody else's" {
					labels[hubv1.ClusterKeyLabel] = "key"
				}
				whole.SetLabels(labels)
				ready(whole, whose == "ours, retrying")
				cached, err := slim(whole.DeepCopyObject())
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(seen(whole, kind), seen(cached.(client.Object), kind), cmp.AllowUnexported(Object{})); d != "" {
					t.Errorf("-whole +cached:\n%s", d)
				}
				if d := cmp.Diff(index.UsesOf(whole), index.UsesOf(cached.(client.Object))); d != "" {
					t.Errorf("uses: -whole +cached:\n%s", d)
				}
				if whose == "somebody else's" && !cmp.Equal(assembly.LoginOf(whole), assembly.LoginOf(cached.(client.Object))) {
					t.Error("which cluster it is for is not kept")
				}
				if index.ByWorkloadIdentity(whole) != index.ByWorkloadIdentity(cached.(client.Object)) {
					t.Error("how Flux gets at its cluster is not kept")
				}
			})
		}
	}
}

// ready makes one of an object's conditions Ready, or one that has been False and is tried again.
func ready(obj client.Object, retrying bool) {
	obj.SetGeneration(2)
	conditions := []metav1.Condition{{Type: "Other", Status: "False", Reason: "Other"}, {Type: hubv1.ReadyCondition, Status: "True", Reason: "Fine", ObservedGeneration: 2}}
	if retrying {
		conditions[1].Status = "Unknown"
		conditions = append(conditions, metav1.Condition{Type: "Released", Status: "False", Reason: "UpgradeFailed", Message: "no", ObservedGeneration: 2})
	}
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		o.Status.Conditions = conditions
	case *kustomizev1.Kustomization:
		o.Status.Conditions = conditions
	}
}

// seen returns what a controller sees of an object.
func seen(obj client.Object, kind string) *Object {
	r, c := (&Reader{Sightings: &Sightings{}, Ledger: &Ledger{}}), &Cluster{Objects: map[plan.Key]*Object{}}
	r.observe(c, obj, kind)
	return c.Objects[KeyOf(obj, kind)]
}

// transform returns what the cache makes of objects of a type.
func transform(t *testing.T, of client.Object) toolscache.TransformFunc {
	t.Helper()
	for example, options := range index.CacheOptions().ByObject {
		if reflect.TypeOf(example) == reflect.TypeOf(of) {
			return options.Transform
		}
	}
	t.Fatalf("the cache keeps no %T", of)
	return nil
}
