// SPDX-License-Identifier: Apache-2.0

// Package provenance decides whether the hub made a delivery, and what the delivery may have it do. It is pure.
//
// A tenant who may create AddonDeliveries in a namespace of his own can write anything into one. So a delivery counts
// only if the addonset room could have made it: it has the name that the hub gives, there is a set of that name and
// UID, and from its namespace that set may reach the cluster.
package provenance

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
)

// Standing is how far a delivery counts.
type Standing string

const (
	// Ignored: nothing is made or removed for it.
	Ignored Standing = "Ignored"
	// Held: what is there of it stays as it is, and goes when the set's room withdraws it. Nothing is made for it.
	Held Standing = "Held"
	// Unclaimed: as Held, but the set is there, and its room has not written its UID into the delivery: an older hub made it, or it comes
	// out of a backup. The room claims it if the set selects the cluster, and withdraws it else.
	Unclaimed Standing = "Unclaimed"
	// Genuine: the set's room made it.
	Genuine Standing = "Genuine"
)

// Verdict is a standing, and why it is no better.
type Verdict struct {
	Standing        Standing
	Reason, Message string
}

// Known returns whether the set's room made the delivery, or may have.
func (v Verdict) Known() bool { return v.Standing != Ignored }

// Named returns whether a delivery has the name that the hub gives. Each cluster has only one delivery of a set by that name.
func Named(d *hubv1.AddonDelivery) bool {
	return d.Name == identity.Delivery(d.Spec.AddonSetRef.Name, d.Spec.RegistrationRef.Key())
}

// Object returns whether a Flux object is one that the hub makes for a set on a cluster: it has the name that the hub gives, names the delivery of that
// set, and lies where the set reaches the cluster. The set's name is not read off the object: a label holds no long one.
func Object(o metav1.Object, hubID, set string, reg types.NamespacedName, platform bool) bool {
	return o.GetName() == identity.FluxObject(hubID, reg, o.GetLabels()[hubv1.AddonLabel]) &&
		o.GetAnnotations()[hubv1.DeliveryAnnotation] == identity.Delivery(set, reg) && match.Reaches(o.GetNamespace(), platform, reg.Namespace)
}

// Of returns how far a delivery counts. set is nil if it is not there; platform says whether its namespace is a platform namespace.
func Of(d *hubv1.AddonDelivery, set *hubv1.AddonSet, platform bool) Verdict {
	key := d.Spec.RegistrationRef.Key()
	claimed := set != nil && set.UID == d.Spec.AddonSetRef.UID
	switch {
	case !Named(d):
		return Verdict{Ignored, hubv1.NotFromAddonSetReason, fmt.Sprintf(
			"the hub did not make this delivery: the delivery of AddonSet %s to ClusterRegistration %s is named %q. It is ignored; delete it",
			d.SetKey(), key, identity.Delivery(d.Spec.AddonSetRef.Name, key))}
	case !match.Reaches(d.Namespace, platform, key.Namespace):
		v := Verdict{Ignored, hubv1.OutOfReachReason, fmt.Sprintf(
			"namespace %q is not a platform namespace: its AddonSets reach the ClusterRegistrations of that namespace, and not %s. The delivery is ignored; delete it",
			d.Namespace, key)}
		if claimed { // it was a platform namespace once
			v.Standing = Held
			v.Message = fmt.Sprintf("namespace %q is not a platform namespace (any more): AddonSet %s does not reach ClusterRegistration %s. Nothing is made here; the AddonSet withdraws what is there",
				d.Namespace, d.SetKey(), key)
		}
		return v
	case set == nil:
		return Verdict{Held, hubv1.AddonSetNotFoundReason, fmt.Sprintf(
			"AddonSet %s is not there; nothing is made, and what is delivered stays as it is. Apply the AddonSet again, and delete it to remove what is there", d.SetKey())}
	case !claimed:
		return Verdict{Unclaimed, hubv1.NotFromAddonSetReason, fmt.Sprintf(
			"spec.addonSetRef.uid is not that of AddonSet %s, and the AddonSet does not select the cluster; what is delivered stays as it is until the AddonSet withdraws it", d.SetKey())}
	}
	return Verdict{Standing: Genuine}
}
