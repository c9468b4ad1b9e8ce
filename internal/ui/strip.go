// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// strip leaves of an object what pages of the whole fleet show, so that a large fleet fits the memory of a laptop. Texts that many
// objects share are kept once. Pages of one object, and orders, read it anew, in full.
func strip(object any) (any, error) {
	switch o := object.(type) {
	case *hubv1.ClusterRegistration:
		return stripRegistration(o), nil
	case *hubv1.AddonSet:
		return stripSet(o), nil
	case *hubv1.AddonDelivery:
		return stripDelivery(o), nil
	}
	return object, nil
}

func one(s string) string { return unique.Make(s).Value() }

func stripMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: one(m.Namespace), Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Generation: m.Generation, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp}
}

func stripConditions(in []metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, len(in))
	for i, c := range in {
		c.Type, c.Status, c.Reason, c.Message = one(c.Type), metav1.ConditionStatus(one(string(c.Status))), one(c.Reason), one(c.Message)
		out[i] = c
	}
	return out
}

func stripRegistration(o *hubv1.ClusterRegistration) *hubv1.ClusterRegistration {
	out := &hubv1.ClusterRegistration{ObjectMeta: stripMeta(&o.ObjectMeta)}
	out.Labels = make(map[string]string, len(o.Labels))
	for k, v := range o.Labels {
		out.Labels[one(k)] = one(v)
	}
	for i := range o.Spec.Overrides {
		v := &o.Spec.Overrides[i]
		out.Spec.Overrides = append(out.Spec.Overrides, hubv1.Override{Name: one(v.Name), Exclude: v.Exclude, Until: v.Until, Reason: v.Reason})
	}
	out.Spec.Pause, out.Spec.DeletionPolicy = o.Spec.Pause, o.Spec.DeletionPolicy
	s := &o.Status
	out.Status = hubv1.ClusterRegistrationStatus{ObservedGeneration: s.ObservedGeneration, Conditions: stripConditions(s.Conditions),
		KubernetesVersion: one(s.KubernetesVersion), Provider: one(s.Provider), Nodes: s.Nodes, AddonCounts: s.AddonCounts}
	if s.UsesWorkloadIdentity() {
		out.Status.Credential = &hubv1.CredentialStatus{WorkloadIdentity: one(s.Credential.WorkloadIdentity)}
	}
	return out
}

func stripDelivery(o *hubv1.AddonDelivery) *hubv1.AddonDelivery {
	out := &hubv1.AddonDelivery{ObjectMeta: stripMeta(&o.ObjectMeta), Spec: o.Spec}
	if policy := o.Annotations[hubv1.DeletionPolicyAnnotation]; policy != "" {
		out.Annotations = map[string]string{hubv1.DeletionPolicyAnnotation: one(policy)}
	}
	out.Spec.RegistrationRef.Namespace, out.Spec.AddonSetRef.Name = one(o.Spec.RegistrationRef.Namespace), one(o.Spec.AddonSetRef.Name)
	out.Spec.AddonSetRef.UID, out.Spec.RevisionName = unique.Make(o.Spec.AddonSetRef.UID).Value(), one(o.Spec.RevisionName)
	s := &o.Status
	out.Status = hubv1.AddonDeliveryStatus{ObservedGeneration: s.ObservedGeneration, Conditions: stripConditions(s.Conditions),
		AddonCounts: s.AddonCounts, ReadyRevision: one(s.ReadyRevision), ReadyTime: s.ReadyTime}
	out.Status.Addons = make([]hubv1.AddonStatus, len(s.Addons))
	for i := range s.Addons {
		a := &s.Addons[i]
		out.Status.Addons[i] = hubv1.AddonStatus{Name: one(a.Name), Kind: one(a.Kind), State: unique.Make(a.State).Value(), Since: a.Since,
			Version: one(a.Version), Reason: one(a.Reason), Message: one(a.Message), Removal: a.Removal,
			AppliedGeneration: a.AppliedGeneration}
	}
	return out
}

// stripSet drops the bodies of add-ons, and of the removal guard's memory all but how much went when.
func stripSet(o *hubv1.AddonSet) *hubv1.AddonSet {
	out := &hubv1.AddonSet{ObjectMeta: stripMeta(&o.ObjectMeta), Status: o.Status}
	if r := o.Status.Removals; r != nil {
		out.Status.Removals = &hubv1.Removals{Counts: r.Counts}
	}
	out.Annotations = map[string]string{}
	for _, key := range []string{hubv1.ApproveRemovalAnnotation, hubv1.ApproveAnnotation, hubv1.ExpediteAnnotation, hubv1.RetryAnnotation,
		hubv1.UndoAnnotation} {
		if v, ok := o.Annotations[key]; ok {
			out.Annotations[key] = v
		}
	}
	s := &o.Spec
	out.Spec = hubv1.AddonSetSpec{ClusterSelector: s.ClusterSelector, SelectAll: s.SelectAll, Priority: s.Priority,
		DeletionPolicy: s.DeletionPolicy, RemovalGuard: s.RemovalGuard, Rollout: s.Rollout, Pause: s.Pause}
	for i := range s.Addons {
		out.Spec.Addons = append(out.Spec.Addons, hubv1.Addon{Name: s.Addons[i].Name, When: s.Addons[i].When})
	}
	for i := range s.Overlays {
		v := &s.Overlays[i]
		overlay := hubv1.Overlay{Name: v.Name, ClusterSelector: v.ClusterSelector, When: v.When}
		for j := range v.Addons {
			overlay.Addons = append(overlay.Addons, hubv1.AddonOverlay{Name: v.Addons[j].Name, Exclude: v.Addons[j].Exclude})
		}
		out.Spec.Overlays = append(out.Spec.Overlays, overlay)
	}
	return out
}
