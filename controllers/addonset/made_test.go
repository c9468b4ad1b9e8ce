// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
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

// TestObjectsOf: of one delivery those Flux objects count that stay, of both kinds.
func TestObjectsOf(t *testing.T) {
	kustomization := func(addon string, change func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
		o := &kustomizev1.Kustomization{ObjectMeta: releaseOne(func(*helmv2.HelmRelease) {}).ObjectMeta}
		o.Name, o.Labels[hubv1.AddonLabel] = identity.FluxObject("hub", fleetOne, addon), addon
		if change != nil {
			change(o)
		}
		return o
	}
	objects := []client.Object{
		releaseOne(func(*helmv2.HelmRelease) {}),
		kustomization("folder", nil),
		kustomization("going", func(o *kustomizev1.Kustomization) {
			o.Finalizers, o.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: time.Now()}
		}),
		kustomization("of-another-set", func(o *kustomizev1.Kustomization) {
			o.Annotations[hubv1.DeliveryAnnotation] = identity.Delivery("other", fleetOne)
		}),
		kustomization("elsewhere", func(o *kustomizev1.Kustomization) { o.Namespace = "stranger" }),
		kustomization("of-another-cluster", func(o *kustomizev1.Kustomization) {
			o.Labels[hubv1.ClusterKeyLabel] = identity.ClusterKey("hub", client.ObjectKey{Namespace: "fleet", Name: "two"})
		}),
	}
	got, going, err := newMatcherFixture(t, interceptor.Funcs{}, objects...).objectsOf(t.Context(), deliveryOne(nil))
	if slices.Sort(got); err != nil || !slices.Equal(got, []string{"app", "folder"}) || !going {
		t.Errorf("made are %v, others are going: %t (%v)", got, going, err)
	}
	if _, going, _ := newMatcherFixture(t, interceptor.Funcs{}, objects[:2]...).objectsOf(t.Context(), deliveryOne(nil)); going {
		t.Error("nothing is on its way out, and it is said to be")
	}
	for _, helmFails := range []bool{true, false} {
		r := newMatcherFixture(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, helm := list.(*helmv2.HelmReleaseList); helm == helmFails {
				return errors.New("overloaded")
			}
			return c.List(ctx, list, opts...)
		}}, objects...)
		if got, _, err := r.objectsOf(t.Context(), deliveryOne(nil)); err == nil {
			t.Errorf("one kind cannot be listed (HelmReleases: %t), and made are %v", helmFails, got)
		}
	}
}

// TestUnreported: what is there and not said to be is to be counted. What goes by a grant has been.
func TestUnreported(t *testing.T) {
	for name, tc := range map[string]struct {
		made, reported []string
		states         map[string]hubv1.AddonState
		want           []string
	}{
		"nothing is there":           {want: nil},
		"said":                       {made: []string{"a"}, reported: []string{"a"}},
		"not said":                   {made: []string{"b", "a"}, want: []string{"a", "b"}},
		"said to be lost to another": {made: []string{"a"}, states: map[string]hubv1.AddonState{"a": hubv1.AddonLostTo}, want: []string{"a"}},
		"said to be orphaned, perhaps made again": {made: []string{"a"}, states: map[string]hubv1.AddonState{"a": hubv1.AddonOrphaned}, want: []string{"a"}},
		"on its way out by a grant":               {made: []string{"a"}, states: map[string]hubv1.AddonState{"a": hubv1.AddonRemoving}},
		"one of another name is on its way out":   {made: []string{"a"}, states: map[string]hubv1.AddonState{"b": hubv1.AddonRemoving}, want: []string{"a"}},
		"said, and the other is on its way out":   {made: []string{"a", "b"}, reported: []string{"a"}, states: map[string]hubv1.AddonState{"b": hubv1.AddonRemoving}},
		"it waits for something, and is not made": {states: map[string]hubv1.AddonState{"a": hubv1.AddonWaitingForCluster}},
	} {
		t.Run(name, func(t *testing.T) {
			d := deliveryOne(nil)
			for addon, state := range tc.states {
				d.Status.Addons = append(d.Status.Addons, hubv1.AddonStatus{Name: addon, State: state})
			}
			r := &removals{set: &hubv1.AddonSet{}, made: func(*hubv1.AddonDelivery) ([]string, bool, error) { return tc.made, false, nil }}
			if got, _ := r.unreported(d, tc.reported); !slices.Equal(got, tc.want) || r.failed != nil {
				t.Errorf("it is %v (%v), want %v", got, r.failed, tc.want)
			}
		})
	}
	r := &removals{set: &hubv1.AddonSet{}, made: func(*hubv1.AddonDelivery) ([]string, bool, error) { return nil, false, errors.New("overloaded") }}
	if r.unreported(deliveryOne(nil), nil); r.failed == nil {
		t.Error("what could not be read is taken for nothing")
	}
}
