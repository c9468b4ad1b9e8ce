// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestLastOut: the last delivery of a namespace takes the kubeconfig mirror with it, also if all of them go at once.
func TestLastOut(t *testing.T) {
	at := func(namespace string, leaving bool, addons ...string) *delivery {
		d := &delivery{AddonDelivery: &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}}
		if leaving {
			d.DeletionTimestamp = &metav1.Time{}
		}
		for _, a := range addons {
			d.Status.Addons = append(d.Status.Addons, hubv1.AddonStatus{Name: a})
		}
		return d
	}
	orphaned := func(d *delivery) *delivery {
		for i := range d.Status.Addons {
			d.Status.Addons[i].State = hubv1.AddonOrphaned
		}
		return d
	}
	for name, tc := range map[string]struct {
		others []*delivery
		want   bool
	}{
		"Alone":                         {nil, true},
		"OtherStays":                    {[]*delivery{at("a", false, "x")}, false},
		"OtherStaysWithNothingYet":      {[]*delivery{at("a", false)}, false},
		"OtherLeavesAndHasSomething":    {[]*delivery{at("a", true, "x")}, false},
		"OtherIsDoneToo":                {[]*delivery{at("a", true)}, true},
		"OtherIsDoneAndAThirdIsNot":     {[]*delivery{at("a", true), at("a", true, "x")}, false},
		"OtherHasOrphansOnly":           {[]*delivery{orphaned(at("a", true, "x"))}, true},
		"OtherHasOrphansAndMore":        {[]*delivery{orphaned(at("a", true, "x")), at("a", true, "y")}, false},
		"OtherStaysWithOrphansOnly":     {[]*delivery{orphaned(at("a", false, "x"))}, false},
		"OtherIsInAnotherNamespaceOnly": {[]*delivery{at("b", false, "x")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := at("a", true)
			c := &cluster{deliveries: append([]*delivery{d}, tc.others...)}
			if got := c.lastOut(d); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
