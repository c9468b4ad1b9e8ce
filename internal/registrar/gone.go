// SPDX-License-Identifier: Apache-2.0

package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// departing is what gone has seen so far.
type departing struct {
	told map[string]bool
	last string
	// asked is true once the registration was there, and not being deleted, after the hub was asked: the hub then deletes it
	// only when nothing is left to do.
	asked bool
	// absent is since when no registration was there.
	absent time.Time
}

// gone waits until the registration has gone for good, and says what it waits for. One that somebody has deleted is made
// again by the hub, with all that it had delivered: that it is absent at one look says nothing.
func (r *Registrar) gone(ctx context.Context, d *Departure) error {
	s := &departing{told: map[string]bool{}}
	err := until(ctx, r.Wait, func(ctx context.Context) (bool, error) {
		reg, err := r.registered(ctx, d.Name)
		if err != nil {
			return false, err
		}
		if reg == nil || !d.is(reg) {
			return r.forGood(ctx, d, s)
		}
		s.absent, s.asked = time.Time{}, s.asked || reg.DeletionTimestamp == nil
		if err := r.orphan(ctx, d, reg); client.IgnoreNotFound(err) != nil {
			return false, err
		}
		return false, r.progress(ctx, d, s, reg)
	})
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case !s.absent.IsZero():
		return fmt.Errorf("ClusterRegistration %s is gone, and after %s %s", d.Name, r.Wait, s.last)
	}
	return fmt.Errorf("ClusterRegistration %s is still there after %s: %s. The hub goes on; run the command again to wait, and to "+
		"remove the rest", d.Name, r.Wait, s.last)
}

// forGood returns whether a registration that is not there does not come back, and has left nothing.
func (r *Registrar) forGood(ctx context.Context, d *Departure, s *departing) (bool, error) {
	if s.absent.IsZero() {
		s.absent = time.Now()
	}
	if !s.asked && d.origin != nil {
		if time.Since(s.absent) < min(settled, r.Wait/3) {
			s.last = "the hub may make it again"
			return false, nil
		}
		left, err := r.deliveries(ctx, d.Name)
		if err != nil {
			return false, err
		}
		if len(left) > 0 {
			s.last = fmt.Sprintf("AddonDelivery %s/%s of it is still there, so its add-ons may be. Set the label %s of the origin to \"true\", "+
				"and run the command again when the hub has registered the cluster", left[0].Namespace, left[0].Name, hubv1.RegisterLabel)
			return false, nil
		}
	}
	r.say("ClusterRegistration %s is gone", d.Name)
	return true, nil
}

// progress says what a registration that is still there waits for.
func (r *Registrar) progress(ctx context.Context, d *Departure, s *departing, reg *hubv1.ClusterRegistration) error {
	tell := func(line string) {
		if line != "" && !s.told[line] {
			r.say("%s", line)
		}
		s.told[line] = true
	}
	if c := status.Find(reg, hubv1.ReadyCondition); c != nil && reg.DeletionTimestamp != nil {
		s.last = c.Message
		tell(fmt.Sprintf("ClusterRegistration %s: %s", d.Name, c.Message))
	}
	if c := status.Find(reg, hubv1.ReachableCondition); c != nil && c.Status == metav1.ConditionFalse {
		tell(fmt.Sprintf("ClusterRegistration %s: the cluster does not answer (%s); the hub lets the add-ons go when its --teardown-grace "+
			"is over, or at once with: kubectl -n %s annotate clreg %s %s=true", d.Name, c.Message, d.Name.Namespace, d.Name.Name,
			hubv1.ForceUnregisterAnnotation))
	}
	deliveries, err := r.deliveries(ctx, d.Name)
	for i := range deliveries {
		if c := status.Find(&deliveries[i], hubv1.RemovalsHeldCondition); c != nil && c.Status == metav1.ConditionTrue {
			tell(c.Message)
		}
	}
	return err
}

// deliveries returns what the hub delivers to a cluster; nothing if the caller may not see it.
func (r *Registrar) deliveries(ctx context.Context, name types.NamespacedName) ([]hubv1.AddonDelivery, error) {
	list := &hubv1.AddonDeliveryList{}
	err := r.Hub.Client.List(ctx, list, client.MatchingLabels{hubv1.ClusterLabel: identity.LabelValue(name.Name)})
	if err != nil {
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list the AddonDeliveries: %w", err)
	}
	var out []hubv1.AddonDelivery
	for i := range list.Items {
		if list.Items[i].Spec.RegistrationRef.Key() == name {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}
