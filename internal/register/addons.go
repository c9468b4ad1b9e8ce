// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/precedence"
	"github.com/chandler-hub/chandler/internal/status"
)

// addons says what becomes of the add-ons.
func (d *Departure) addons() string {
	what, stay, are := "its add-ons", "stay", "are"
	if c := d.reg.Status.AddonCounts; c != nil {
		what = "its " + status.Count(c.Total, "add-on")
		if c.Total == 1 {
			stay, are = "stays", "is"
		}
	}
	switch {
	case len(d.others) > 0:
		return fmt.Sprintf("%s %s on the cluster, which is that of ClusterRegistration %s as well: sets go on through that one", what, stay,
			status.List(d.others, 3))
	case d.leaves():
		return what + " " + stay + " on the cluster without an owner"
	}
	return what + " " + are + " uninstalled from the cluster"
}

// leaves returns whether the add-ons stay on the cluster.
func (d *Departure) leaves() bool {
	return d.Orphan || d.reg != nil && d.reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
}

// othersOf finds the registrations of the same cluster. For them the hub leaves what is there. It finds none if the caller may not list
// them.
func (r *Registrar) othersOf(ctx context.Context, d *Departure) error {
	of := d.reg.Status.ClusterID()
	if of == "" {
		return nil
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Hub.Client.List(ctx, list); err != nil {
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("look for other registrations of the cluster: %w", err)
	}
	var same []hubv1.ClusterRegistration
	for i := range list.Items {
		if o := &list.Items[i]; o.Status.ClusterID() == of && !status.Goes(o) {
			same = append(same, *o)
		}
	}
	d.others = precedence.Stayers(d.reg, same, r.Hub.Hub.IsPlatform)
	return nil
}

// wayOut says how long the hub waits for a cluster that does not answer, and what somebody can do who does not want to wait.
func (d *Departure) wayOut() string {
	if d.leaves() {
		return "" // nothing waits for it
	}
	command := fmt.Sprintf("chandler unregister %s --orphan", d.Name)
	if d.secret != nil {
		command += " --leave-account"
	}
	return "; the hub uninstalls the add-ons when it answers, and leaves them there when its --teardown-grace is over. If the cluster " +
		"is gone, do not wait: " + command
}
