// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestRecall: somebody has deleted a delivery, and before it is made again its set selects the cluster no more. What it had made there is still
// there, so the set makes it again to withdraw it.
func TestRecall(t *testing.T) {
	for name, tc := range map[string]struct {
		object *helmv2.HelmRelease
		held   bool
		want   bool
	}{
		"There":          {releaseOne(func(*helmv2.HelmRelease) {}), false, true},
		"DoesNotCompile": {releaseOne(func(*helmv2.HelmRelease) {}), true, false},
		"OfAnotherSet": {releaseOne(func(o *helmv2.HelmRelease) {
			o.Annotations[hubv1.DeliveryAnnotation] = identity.Delivery("other", fleetOne)
		}), false, false},
		"NotTheHubs": {releaseOne(func(o *helmv2.HelmRelease) { o.Name = "mine" }), false, false},
		"Elsewhere":  {releaseOne(func(o *helmv2.HelmRelease) { o.Namespace = "stranger" }), false, false},
		"OnItsWayOut": {releaseOne(func(o *helmv2.HelmRelease) {
			o.Finalizers, o.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: time.Now()}
		}), false, false},
		"Older":           {releaseOne(func(o *helmv2.HelmRelease) { o.CreationTimestamp = metav1.NewTime(time.Now().Add(-2 * time.Hour)) }), false, false},
		"OfAnotherClient": {releaseOne(func(o *helmv2.HelmRelease) { o.Labels = nil }), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			registration := func(tier string) *hubv1.ClusterRegistration {
				reg := registrationOne(tier)
				reg.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
				return reg
			}
			r := newMatcherRoom(t, interceptor.Funcs{}, registration("dev"), tc.object)
			r.publish("base-1-e2", tc.held)
			if d := r.look(); (d != nil) != tc.want || d != nil && d.Spec.AddonSetRef.UID != "set" {
				t.Errorf("the delivery is %+v", d)
			}
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set"}}
			set.Status.Revision = "base-1-e2"
			r = newMatcherRoom(t, interceptor.Funcs{}, registration("prod"), tc.object)
			if made, err := r.recallAll(t.Context(), set); err != nil || made != (tc.want || tc.held) {
				t.Errorf("the set is deleted: made is %t (%v)", made, err)
			}
		})
	}
}

// TestRecallStaysInReach: a tenant writes a HelmRelease that looks as if a set of his had delivered it to a cluster of another namespace, and
// deletes the set. No delivery is made for that cluster.
func TestRecallStaysInReach(t *testing.T) {
	for namespace, want := range map[string]bool{"tenant": false, "flux-system": true, fleetOne.Namespace: true} {
		forged := releaseOne(func(o *helmv2.HelmRelease) { o.Namespace = namespace })
		r := newMatcherRoom(t, interceptor.Funcs{}, registrationOne("prod"), forged)
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "base", UID: "set"}}
		set.Status.Revision = "base-1-e2"
		made, err := r.recallAll(t.Context(), set)
		deliveries := &hubv1.AddonDeliveryList{}
		if err == nil {
			err = r.api.List(t.Context(), deliveries)
		}
		if err != nil || made != want || len(deliveries.Items) > 0 != want {
			t.Errorf("%s: made is %t (%v), and there are %d deliveries", namespace, made, err, len(deliveries.Items))
		}
	}
}
