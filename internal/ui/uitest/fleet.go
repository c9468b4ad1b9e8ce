// SPDX-License-Identifier: Apache-2.0

// Package uitest makes fleets for the tests of the page. They are pure data.
package uitest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// Now is when the fleets are looked at.
var Now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Addons are the names of the add-ons of a fleet.
var Addons = []string{"cert-manager", "cilium", "coredns", "external-dns", "ingress-nginx",
	"kyverno", "metrics-server", "prometheus", "trivy", "velero"}

// Fleet makes a fleet: each add-on has a set of its own. The same numbers always make the same fleet. Of a hundred clusters about one
// has an add-on that failed, and a few do not answer, are paused or are on their way.
func Fleet(clusters, addons int) *view.Fleet {
	f := &view.Fleet{}
	for a := range addons {
		f.Sets = append(f.Sets, set(Addons[a%len(Addons)], clusters))
	}
	for c := range clusters {
		reg := registration(c)
		f.Registrations = append(f.Registrations, reg)
		for a := range addons {
			f.Deliveries = append(f.Deliveries, delivery(reg, f.Sets[a], c, a))
		}
	}
	return f
}

func at(ago time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-ago)) }

func registration(c int) *hubv1.ClusterRegistration {
	reg := &hubv1.ClusterRegistration{}
	reg.Namespace, reg.Name = fmt.Sprintf("tenants-%d", c%4), fmt.Sprintf("cluster-%04d", c)
	reg.UID, reg.Generation, reg.CreationTimestamp = types.UID(reg.Name), 1, at(100*24*time.Hour)
	reg.Labels = map[string]string{"env": []string{"prod", "staging", "dev"}[c%3],
		"region":        []string{"eu-west", "eu-north", "us-east", "ap-south"}[c/3%4],
		hubv1.NameLabel: reg.Name}
	if c%50 == 7 {
		delete(reg.Labels, "env")
	}
	reg.Status.ObservedGeneration, reg.Status.KubernetesVersion, reg.Status.Provider = 1, []string{"v1.33.4", "v1.34.1"}[c%2], "Kamaji"
	now := at(time.Hour).Time
	status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", now)
	status.Set(reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason, "all add-ons are Ready", now)
	switch c % 100 {
	case 3:
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionFalse, "Timeout", "it did not answer within 10s", now)
	case 4:
		status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.PausedReason, "spec.pause: maintenance", now)
	}
	return reg
}

func set(name string, clusters int) *hubv1.AddonSet {
	s := &hubv1.AddonSet{}
	s.Namespace, s.Name, s.UID, s.Generation = "flux-system", name, types.UID(name), 1
	s.Spec.SelectAll, s.Spec.Addons = true, []hubv1.Addon{{Name: name}}
	s.Status.ObservedGeneration, s.Status.Revision = 1, name+"-2222222222-e3"
	s.Status.Clusters = &hubv1.ClusterCounts{Matched: int32(clusters)} //nolint:gosec // a count of clusters
	s.Status.Rollout = &hubv1.RolloutStatus{Phase: hubv1.RolloutDone, Revision: s.Status.Revision, CompletedRevision: s.Status.Revision}
	return s
}

func delivery(reg *hubv1.ClusterRegistration, s *hubv1.AddonSet, c, a int) *hubv1.AddonDelivery {
	key := types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}
	d := &hubv1.AddonDelivery{}
	d.Namespace, d.Name, d.UID, d.Generation = s.Namespace, identity.Delivery(s.Name, key), types.UID(s.Name+"/"+reg.Name), 1
	d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: reg.Namespace, Name: reg.Name}
	d.Spec.AddonSetRef, d.Spec.RevisionName = hubv1.DeliveredSetReference{Name: s.Name, UID: s.UID}, s.Status.Revision
	since := at(time.Duration(c%72+1) * time.Hour)
	addon := hubv1.AddonStatus{Name: s.Name, Kind: "HelmRelease", State: hubv1.AddonReady, Since: &since, Version: "1.17.2"}
	switch {
	case c%97 == 11 && a == c%10:
		addon.State, addon.Version = hubv1.AddonFailed, "1.16.0"
		addon.Message = "UpgradeFailed: Helm upgrade failed for release " + s.Name + ": context deadline exceeded"
	case c%100 == 3:
		addon.State, addon.Before, addon.Message = hubv1.AddonUnreachable, hubv1.AddonReady, "the cluster does not answer"
	case c%100 == 4:
		addon.State, addon.Before, addon.Message = hubv1.AddonPaused, hubv1.AddonReady, "spec.pause: maintenance"
	case c%61 == 5 && a == 2:
		addon.State, addon.Message = hubv1.AddonProgressing, "running 'upgrade' action"
	case c%20 == 9 && a == 5:
		addon.State, addon.Message, addon.Version = hubv1.AddonExcluded, "overlay edge excludes it", ""
	}
	d.Status.Addons = []hubv1.AddonStatus{addon}
	if addon.State == hubv1.AddonReady {
		status.Set(d, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.AddonsReadyReason, "all add-ons are Ready", since.Time)
		d.Status.ReadyRevision = d.Spec.RevisionName
	}
	d.Status.ObservedGeneration = 1
	return d
}
