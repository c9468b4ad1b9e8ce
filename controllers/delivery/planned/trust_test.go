// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// A hub has suspended an object, and died before it noted that. What the object brings does not render since, so nobody writes it again.
func TestWhatStaysIsReadyIfFluxSaysSo(t *testing.T) {
	k := plan.Key{Kind: "HelmRelease", Namespace: "ns", Name: "one-a"}
	d := &Delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{}}}
	d.Name, d.Namespace = "d", "ns"
	d.Status.Addons = []hubv1.AddonStatus{{Name: "a", Object: "one-a", Kind: "HelmRelease", State: hubv1.AddonFailed, AppliedGeneration: 1}}
	d.Before = d.AddonDelivery
	for name, tc := range map[string]struct {
		failed map[string]render.Errors
		ready  metav1.ConditionStatus
		want   bool
	}{
		"it renders":                       {ready: metav1.ConditionTrue},
		"it does not":                      {map[string]render.Errors{"a": {}}, metav1.ConditionTrue, true},
		"it does not, and Flux has failed": {map[string]render.Errors{"a": {}}, metav1.ConditionFalse, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observed.Object{Observed: plan.Observed{Key: k, Addon: "a"}, Delivery: "d", State: fluxstate.State{Ready: tc.ready, Generation: 3, ReadyGeneration: 3}}
			o.Applied = 1
			c := plannedOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{k: o}}, d)
			in := assembly.Input{Live: c.live(), Deliveries: []assembly.Delivery{{Namespace: "ns", Name: "d", Result: &render.Result{Failed: tc.failed}}}}
			if c.trustFlux(&in); in.Live[0].Ready != tc.want {
				t.Errorf("Ready is %t, want %t", in.Live[0].Ready, tc.want)
			}
		})
	}
}
