// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// departing is what gone has seen so far.
type departing struct {
	began time.Time
	told  map[string]bool
	// last is what the registration waited for at the last look.
	last string
	// asked is true once the registration was there, and not being deleted, after the hub was asked: the hub then deletes it
	// only when nothing is left to do.
	asked bool
	// absent is true if no registration was there at the last look.
	absent bool
}

// gone waits until the registration has gone for good, and says what it waits for. One that somebody has deleted is made
// again by the hub, with all that it had delivered: as long as that is there, it is not gone.
func (r *Registrar) gone(ctx context.Context, d *Departure) error {
	s := &departing{began: time.Now(), told: map[string]bool{}}
	err := until(ctx, r.Wait, func(ctx context.Context) (bool, error) {
		if err := r.stillUnwanted(ctx, d); err != nil {
			return false, err
		}
		reg, err := r.registered(ctx, d.Name)
		if err != nil {
			return false, err
		}
		if reg == nil || !d.is(reg) {
			return r.forGood(ctx, d, s)
		}
		s.absent, s.asked = false, s.asked || reg.DeletionTimestamp == nil
		if err := r.orphan(ctx, d, reg); client.IgnoreNotFound(err) != nil {
			return false, err
		}
		return false, r.progress(ctx, d, s, reg)
	})
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped; the hub goes on, and has not been told to stop. Run the command again to wait, and to remove the rest of "+
			"cluster %s", d.Name)
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case s.absent:
		return fmt.Errorf("ClusterRegistration %s is gone, and after %s %s", d.Name, r.Wait, s.last)
	}
	return fmt.Errorf("ClusterRegistration %s is still there after %s: %s. The hub goes on; run the command again to wait, and to "+
		"remove the rest", d.Name, r.Wait, s.last)
}

// stillUnwanted returns an error if somebody has set the label of the origin back, as Flux does with what it applies from Git. The
// hub then keeps the cluster, or registers it again, and needs the account and the Secret.
func (r *Registrar) stillUnwanted(ctx context.Context, d *Departure) error {
	if d.origin == nil {
		return nil
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(d.origin.GroupVersionKind())
	if err := r.Hub.Client.Get(ctx, client.ObjectKeyFromObject(d.origin), m); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read %s: %w", account.Called(d.origin), err)
	}
	if m.Labels[hubv1.RegisterLabel] != "true" {
		return nil
	}
	who := cmp.Or(applier(m), "a user, or a tool that applies it,")
	return fmt.Errorf("%s has set label %s of %s to \"true\" again: the cluster stays registered, or is registered again. Write \"false\" "+
		"where the object comes from, and run the command again", who, hubv1.RegisterLabel, account.Called(d.origin))
}

// applier names what of Flux keeps an object; "" if nothing does.
func applier(o metav1.Object) string {
	labels := o.GetLabels()
	for group, kind := range map[string]string{"kustomize.toolkit.fluxcd.io": "Kustomization", "helm.toolkit.fluxcd.io": "HelmRelease"} {
		if name := labels[group+"/name"]; name != "" {
			return fmt.Sprintf("%s %s/%s of Flux", kind, labels[group+"/namespace"], name)
		}
	}
	return ""
}

// forGood returns whether a registration that is not there does not come back, and has left nothing.
func (r *Registrar) forGood(ctx context.Context, d *Departure, s *departing) (bool, error) {
	s.absent = true
	if !s.asked && d.origin != nil {
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
	var now []string
	ready := status.Find(reg, hubv1.ReadyCondition)
	begun := reg.DeletionTimestamp != nil && ready != nil && ready.Reason == hubv1.TerminatingReason
	late := time.Since(s.began) > min(settled, r.Wait/2)
	switch {
	case begun:
		now = append(now, ready.Message)
	case late:
		now = append(now, fmt.Sprintf("the hub has not begun; is it running, and is it the one with --hub-id %s?", r.Hub.Hub.HubID))
	}
	if c := status.Find(reg, hubv1.ReachableCondition); c != nil && c.Status == metav1.ConditionFalse {
		now = append(now, fmt.Sprintf("the cluster does not answer (%s)%s", c.Message, d.wayOut()))
	}
	deliveries, err := r.deliveries(ctx, d.Name)
	for i := range deliveries {
		if c := status.Find(&deliveries[i], hubv1.RemovalsHeldCondition); c != nil && c.Status == metav1.ConditionTrue {
			now = append(now, r.heldBy(ctx, &deliveries[i], c.Message))
		}
	}
	for _, line := range now {
		if !s.told[line] {
			r.say("ClusterRegistration %s: %s", d.Name, line)
		}
		s.told[line] = true
	}
	s.last = strings.Join(now, "; ")
	return err
}

// heldBy says what the removal guard of a set holds. The set names all that its approval would let go; here is what the delivery says
// if the caller may not see the set.
func (r *Registrar) heldBy(ctx context.Context, d *hubv1.AddonDelivery, here string) string {
	set := &hubv1.AddonSet{}
	if err := r.Hub.Client.Get(ctx, d.SetKey(), set); err != nil {
		return here
	}
	c := status.Find(set, hubv1.RemovalsHeldCondition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return here
	}
	return fmt.Sprintf("the removal guard of AddonSet %s holds it, with what else leaves that set: %s", d.SetKey(), c.Message)
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
