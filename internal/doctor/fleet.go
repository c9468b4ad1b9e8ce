// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// Class is a kind of fault and its reason.
type Class struct{ Code, Reason string }

// Fleet counts clusters, sets and deliveries. It takes them one by one, and keeps no more than some names.
type Fleet struct {
	Clusters, Ready, Sets, Teams, Deliveries int
	// Cut: there are more deliveries than were looked at.
	Cut bool
	// Aside counts the clusters that a user, or the origin, wants not to be served now, by what they are.
	Aside map[string]int
	// WorkloadIdentity is how many clusters are reached by it.
	WorkloadIdentity int
	// In counts the clusters by the namespace of their registration.
	In map[string]int

	// classes are faults by what they are, in the order in which they came.
	classes   []Class
	counts    map[Class]*Objects
	delivered map[string]bool // the deliveries that there are
}

// add counts an object with a fault.
func (f *Fleet) add(code, reason, name string) {
	c := Class{code, reason}
	if f.counts == nil {
		f.counts = map[Class]*Objects{}
	}
	if f.counts[c] == nil {
		f.counts[c] = &Objects{}
		f.classes = append(f.classes, c)
	}
	f.counts[c].Add(name)
}

// of returns the reasons of a code with how many have it, the most first.
func (f *Fleet) of(code string) (out []Class) {
	for _, c := range f.classes {
		if c.Code == code {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Class) int { return f.counts[b].Count - f.counts[a].Count })
	return out
}

// all returns the objects of a code, of all reasons.
func (f *Fleet) all(code string) (o Objects) {
	for _, c := range f.of(code) {
		o.Count += f.counts[c].Count
		o.Names = append(o.Names, f.counts[c].Names...)
	}
	o.Names = first(o.Names)
	return o
}

// late is for how long something may be on its way before a person should look.
const late = 10 * time.Minute

// Registration takes one cluster.
func (f *Fleet) Registration(r *hubv1.ClusterRegistration, now time.Time) {
	name := r.Namespace + "/" + r.Name
	f.Clusters++
	if f.In == nil {
		f.In = map[string]int{}
	}
	f.In[r.Namespace]++
	if r.Status.UsesWorkloadIdentity() || r.Spec.KubeConfig != nil && r.Spec.KubeConfig.WorkloadIdentity != nil {
		f.WorkloadIdentity++
	}
	f.health(r, name, now)
	f.credential(r, name, now)
	for i := range r.Spec.Overrides {
		if until := r.Spec.Overrides[i].Until; until != nil && !until.After(now) {
			f.add(overrideOver, "", name+" "+r.Spec.Overrides[i].Name)
		}
	}
	if p := r.Spec.Pause; p != nil && p.Until != nil && !p.Until.After(now) {
		f.add(pauseOver, "", name)
	}
	if c := status.Find(r, hubv1.OverridesRefusedCondition); c != nil && c.Status == metav1.ConditionTrue {
		f.add(overrideRefused, c.Reason, said(name, c))
	}
}

func (f *Fleet) health(r *hubv1.ClusterRegistration, name string, now time.Time) {
	failed := func(condition string) *metav1.Condition {
		if c := status.Find(r, condition); c != nil && c.Status == metav1.ConditionFalse {
			return c
		}
		return nil
	}
	ready := status.Find(r, hubv1.ReadyCondition)
	if ready == nil || r.Status.ObservedGeneration < r.Generation {
		if now.Sub(r.CreationTimestamp.Time) > late {
			f.add(clusterUnseen, "", name)
		}
		return
	}
	if status.IsTrue(r, hubv1.DuplicateCondition) {
		f.add(clusterDuplicate, "", name)
		return
	}
	if what := aside(r); what != "" {
		if f.Aside == nil {
			f.Aside = map[string]int{}
		}
		f.Aside[what]++
		return
	}
	if c := failed(hubv1.KubeConfigValidCondition); c != nil {
		f.add(clusterKubeConfig, c.Reason, said(name, c))
	} else if c := failed(hubv1.ReachableCondition); c != nil {
		f.add(clusterUnreachable, c.Reason, said(name, c))
	} else if ready.Status == metav1.ConditionTrue {
		f.Ready++
	} else if !slices.Contains(underWay, ready.Reason) {
		f.add(clusterNotReady, ready.Reason, said(name, ready))
	} else if now.Sub(ready.LastTransitionTime.Time) > late {
		f.add(clusterSlow, ready.Reason, said(name, ready))
	} else {
		f.add(clusterUnderWay, ready.Reason, said(name, ready))
	}
}

// maxSaid bounds what is told of a condition's message.
const maxSaid = 200

// said names an object with what its condition says.
func said(name string, c *metav1.Condition) string {
	if c.Message == "" {
		return name
	}
	return name + ": " + excerpt.Words(excerpt.Line(c.Message), maxSaid)
}

// underWay are the reasons of Ready for what ends by itself.
var underWay = []string{hubv1.ProgressingReason, hubv1.AddonsLeavingReason, hubv1.DrainInProgressReason}

// What a cluster is that is wanted not to be served, or not to be reachable.
const (
	paused     = "paused"
	suspended  = "suspended by the origin"
	maintained = "in maintenance"
	deleted    = "being deleted"
)

// aside returns what a cluster is that a user, or the origin, wants not to be served, or not to be reachable; "" if none of them does.
func aside(r *hubv1.ClusterRegistration) string {
	reason := status.Reason(r, hubv1.SuspendedCondition)
	switch {
	case !r.DeletionTimestamp.IsZero():
		return deleted
	case status.IsTrue(r, hubv1.SuspendedCondition) && reason == hubv1.PausedReason:
		return paused
	case status.IsTrue(r, hubv1.SuspendedCondition) && !hubv1.Tripped(reason):
		return suspended
	case status.IsTrue(r, hubv1.MaintenanceCondition):
		return maintained
	}
	return ""
}

// rotating is how long before its end a credential is replaced at the latest, if a controller does it.
const rotating = 12 * time.Hour

func (f *Fleet) credential(r *hubv1.ClusterRegistration, name string, now time.Time) {
	c := r.Status.Credential
	if c == nil || c.ExpirationTime == nil {
		return
	}
	reason := status.Expiring(c.ExpirationTime.Time, now)
	rotated := c.Renewed || r.Spec.OriginRef != nil && r.Spec.OriginRef.Kind != "Secret"
	if reason == "" || rotated && reason != hubv1.ExpiredReason && c.ExpirationTime.Sub(now) > rotating {
		return
	}
	f.add(credentialExpires, reason, name+" ("+status.ExpiresIn(c.ExpirationTime.Time, now)+")")
}

// Set takes one set.
func (f *Fleet) Set(s *hubv1.AddonSet, epoch int, now time.Time) {
	name := s.Namespace + "/" + s.Name
	f.Sets++
	ready := status.Find(s, hubv1.ReadyCondition)
	if ready == nil || s.Status.ObservedGeneration < s.Generation {
		if now.Sub(s.CreationTimestamp.Time) > late {
			f.add(setUnseen, "", name)
		}
		return
	}
	switch {
	case status.IsTrue(s, hubv1.StalledCondition):
		f.add(setStalled, ready.Reason, said(name, ready))
	case ready.Reason == hubv1.NoClusterMatchesReason:
		f.add(setMatchesNothing, "", said(name, ready))
	case ready.Reason == hubv1.SourcesNotReadyReason:
		f.add(setSources, "", said(name, ready))
	case ready.Status == metav1.ConditionFalse && ready.Reason == hubv1.AddonsLostReason:
		f.add(setNothing, "", said(name, ready))
	}
	if c := status.Find(s, hubv1.RemovalsHeldCondition); c != nil && c.Status == metav1.ConditionTrue {
		f.add(setHeld, "", said(name, c))
	}
	if is := s.Status.Rollout; is != nil && (is.Phase == hubv1.RolloutFailed || is.Phase == hubv1.RolloutRolledBack) {
		f.add(setFailed, string(is.Phase), name)
	}
	if rev := s.Status.Revision; rev != "" && identity.OfEpoch(rev, epoch) != rev {
		f.add(setEpoch, "", name+" ("+rev+")")
	}
}

// Delivery takes one delivery.
func (f *Fleet) Delivery(d *hubv1.AddonDelivery) {
	f.Deliveries++
	if f.delivered == nil {
		f.delivered = map[string]bool{}
	}
	f.delivered[d.Namespace+"/"+d.Name] = true
}

// FluxObject takes one of the hub's Flux objects. The deliveries come first, all of them.
func (f *Fleet) FluxObject(kind string, o metav1.Object) {
	delivery := o.GetAnnotations()[hubv1.DeliveryAnnotation]
	if o.GetDeletionTimestamp() == nil && !f.delivered[o.GetNamespace()+"/"+delivery] {
		f.add(objectLeft, "", kind+" "+o.GetNamespace()+"/"+o.GetName())
	}
}
