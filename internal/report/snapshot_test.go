// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/report"
)

var (
	moment  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	errBoom = errors.New("boom")
	// addonKey names the Flux object of add-on "a".
	addonKey = plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: "o"}
	// ours and other are two deliveries of one namespace.
	ours  = types.NamespacedName{Namespace: "flux-system", Name: "d"}
	other = types.NamespacedName{Namespace: "flux-system", Name: "other"}
)

// clusterOf returns a cluster that answers, with some objects.
func clusterOf(objects ...*report.Object) *report.Cluster {
	c := &report.Cluster{Now: moment, Registered: true, Answered: true, Reachable: true, Objects: map[plan.Key]*report.Object{}}
	for _, o := range objects {
		c.Objects[o.Key] = o
	}
	return c
}

// suspend has the cluster's Flux objects suspended for a reason.
func suspend(c *report.Cluster, reason string) {
	if reason != "" {
		c.Suspended = &metav1.Condition{Type: hubv1.SuspendedCondition, Status: metav1.ConditionTrue, Reason: reason, Message: "maintenance"}
	}
}

// objectOf returns the object of add-on "a" as the hub wrote it, Ready, with changes.
func objectOf(change func(*report.Object)) *report.Object {
	o := &report.Object{
		UID: "uid", Delivery: ours.Name,
		Observed: plan.Observed{Key: addonKey, Addon: "a", Hash: "h", Generation: 3, Applied: 3},
		State:    fluxstate.State{Generation: 3, Ready: metav1.ConditionTrue, ReadyGeneration: 3, Version: "1.0.0"},
	}
	if change != nil {
		change(o)
	}
	return o
}

// deliveryOf returns the delivery "d" of revision base-1, which renders to nothing, with the add-ons of its status.
func deliveryOf(before ...hubv1.AddonStatus) *report.Delivery {
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: ours.Namespace, Name: ours.Name}}
	d.Spec.RevisionName = "base-1"
	d.Status.Addons = before
	return &report.Delivery{AddonDelivery: d, Before: before, Result: &render.Result{}}
}

// stepOf returns a step for add-on "a", which the delivery "d" wants with hash h.
func stepOf(verb plan.Verb, out report.Outcome) report.Step {
	return report.Step{
		Step: plan.Step{Key: addonKey, Addon: "a", Verb: verb, Reason: "why"}, By: ours, Outcome: out,
		Wanted: &assembly.Wanted{Object: flux.Object{Addon: "a", Kind: addonKey.Kind, Namespace: addonKey.Namespace, Name: addonKey.Name, Hash: "h"}},
	}
}
