// SPDX-License-Identifier: Apache-2.0

// Package provenance decides whether the hub made a delivery, and what the delivery may have it do. It is pure.
//
// A tenant who may create AddonDeliveries in a namespace of his own can write anything into one. So a delivery counts
// only if the addonset controller could have made it: it has the name that the hub gives, there is a set of that name and
// UID, and from its namespace that set may reach the cluster.
package provenance

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
)

// Standing says what a delivery may have the hub do.
type Standing string

const (
	// Ignored: the hub makes and removes nothing for it.
	Ignored Standing = "Ignored"
	// Held: the hub makes nothing for it. Its objects stay as they are, until the addonset controller withdraws it.
	Held Standing = "Held"
	// Unclaimed: like Held, but the set exists, and the addonset controller has not written the set's UID into the
	// delivery. An older hub made the delivery, or it was restored from a backup. The controller claims it if the set
	// selects the cluster, and otherwise withdraws it.
	Unclaimed Standing = "Unclaimed"
	// Genuine: the addonset controller made it.
	Genuine Standing = "Genuine"
)

// Verdict is a standing, and the reason if it is not Genuine.
type Verdict struct {
	Standing        Standing
	Reason, Message string
}

// Known returns whether the addonset controller made the delivery, or may have made it.
func (v Verdict) Known() bool { return v.Standing != Ignored }

// Named returns whether a delivery has the name that the hub gives. Only one delivery of a set to a cluster can have
// that name.
func Named(d *hubv1.AddonDelivery) bool {
	return d.Name == identity.Delivery(d.Spec.AddonSetRef.Name, d.Spec.RegistrationRef.Key())
}

// Of returns the standing of a delivery. set and reg are nil if they do not exist. reach is that of its namespace.
func Of(d *hubv1.AddonDelivery, set *hubv1.AddonSet, reg *hubv1.ClusterRegistration, reach match.Reach) Verdict {
	key := d.Spec.RegistrationRef.Key()
	if reg == nil {
		reg = match.Missing(key)
	}
	claimed := set != nil && set.UID == d.Spec.AddonSetRef.UID
	switch {
	case !Named(d):
		return Verdict{Ignored, hubv1.NotFromAddonSetReason, fmt.Sprintf(
			"the hub did not make this delivery: the delivery of AddonSet %s to ClusterRegistration %s is named %q. It is ignored; delete it",
			d.SetKey(), key, identity.Delivery(d.Spec.AddonSetRef.Name, key))}
	case !reach.To(reg):
		return outOfReach(d, key, reach, claimed)
	case set == nil:
		return Verdict{Held, hubv1.AddonSetNotFoundReason, fmt.Sprintf(
			"there is no AddonSet %s; the hub makes nothing, and what is delivered stays as it is. Apply the AddonSet again, "+
				"and delete it to remove what is there", d.SetKey())}
	case !claimed:
		return Verdict{Unclaimed, hubv1.NotFromAddonSetReason, fmt.Sprintf(
			"spec.addonSetRef.uid is not that of AddonSet %s, and the AddonSet does not select the cluster; what is delivered stays as it is "+
				"until the AddonSet withdraws it", d.SetKey())}
	}
	return Verdict{Standing: Genuine}
}

// outOfReach returns the standing of a delivery that its set does not reach. If it is claimed, its namespace was a
// platform namespace once, or its Team had the cluster.
func outOfReach(d *hubv1.AddonDelivery, key types.NamespacedName, reach match.Reach, claimed bool) Verdict {
	reaches := fmt.Sprintf("namespace %q is not a platform namespace: its AddonSets reach the ClusterRegistrations of that namespace",
		d.Namespace)
	lost := fmt.Sprintf("namespace %q is not a platform namespace (any more): AddonSet %s does not reach ClusterRegistration %s",
		d.Namespace, d.SetKey(), key)
	if reach.ByTeam() {
		reaches = fmt.Sprintf("Team %s/%s governs namespace %q: its AddonSets reach the Team's clusters", reach.Team.Namespace,
			reach.Team.Name, d.Namespace)
		lost = fmt.Sprintf("Team %s/%s, which governs namespace %q, does not select ClusterRegistration %s (any more)", reach.Team.Namespace,
			reach.Team.Name, d.Namespace, key)
	}
	if why := reach.Broken(); why != "" && claimed {
		return Verdict{Held, hubv1.OutOfReachReason, why + ". The hub makes nothing here, and what is delivered stays as it is"}
	}
	if claimed {
		return Verdict{Held, hubv1.OutOfReachReason, lost + ". The hub makes nothing here, and the AddonSet withdraws the delivery"}
	}
	return Verdict{Ignored, hubv1.OutOfReachReason, fmt.Sprintf("%s, and not %s. The delivery is ignored; delete it", reaches, key)}
}
