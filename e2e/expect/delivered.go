// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Delivered returns an error until the present spec of a set is Ready on the clusters with these registrations. It
// checks that each delivery has the set's newest revision and a status for it: a condition that was True before the
// change is not enough. If something other than the set changed, such as a label or a kubeconfig, the revision is the
// same as before. Then read back from the cluster instead.
func Delivered(ctx context.Context, c client.Client, set *hubv1.AddonSet, registrations ...types.NamespacedName) error {
	if err := Condition(ctx, c, set, hubv1.ReadyCondition, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	for _, reg := range registrations {
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: identity.Delivery(set.Name, reg)}}
		if err := Condition(ctx, c, d, hubv1.ReadyCondition, metav1.ConditionTrue, ""); err != nil {
			return err
		}
		if want := set.Status.Revision; want == "" || d.Spec.RevisionName != want || d.Status.ObservedRevision != want ||
			d.Status.ReadyRevision != want {
			return fmt.Errorf("delivery %s is to have revision %q, has written %q and was Ready on %q; the newest is %q",
				d.Name, d.Spec.RevisionName, d.Status.ObservedRevision, d.Status.ReadyRevision, want)
		}
	}
	return nil
}

// Addon returns an error unless the status of a delivery's newest spec has an add-on in a state, with a text in its
// message.
func Addon(d *hubv1.AddonDelivery, addon string, state hubv1.AddonState, text string) error {
	if d.Status.ObservedGeneration != d.Generation {
		return fmt.Errorf("the status of delivery %s is of generation %d, and there is %d", d.Name, d.Status.ObservedGeneration, d.Generation)
	}
	for _, a := range d.Status.Addons {
		if a.Name == addon && a.State == state && strings.Contains(a.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("the add-ons of delivery %s are %+v, want %s %s %q", d.Name, d.Status.Addons, addon, state, text)
}
