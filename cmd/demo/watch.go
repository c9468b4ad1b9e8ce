// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// watch shows the add-ons of every cluster until the set is Ready and Healthy.
func (f *fleet) watch(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	f.out.line("")
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var missing error
	for {
		rows, ready, err := f.rows(ctx)
		if err == nil {
			f.out.table(rows)
			if ready == nil {
				return nil
			}
			missing = ready
		} else if ctx.Err() == nil {
			missing = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the add-ons did not arrive within %s: %w", timeout, missing)
		case <-tick.C:
		}
	}
}

var header = []string{"CLUSTER", "FROM", "REACHABLE", "VERSION", "ADDON", "KIND", "STATE", "AT", "MESSAGE"}

// rows returns the table, and what is still missing.
func (f *fleet) rows(ctx context.Context) (rows [][]string, missing, err error) {
	rows = append(rows, header)
	deliveries := &hubv1.AddonDeliveryList{}
	if err := f.hub.Client.List(ctx, deliveries); err != nil {
		return nil, nil, err
	}
	for _, w := range f.workloads {
		reg := &hubv1.ClusterRegistration{}
		first := []string{w.name, w.origin, "", ""}
		if err := f.hub.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: w.name}, reg); client.IgnoreNotFound(err) != nil {
			return nil, nil, err
		}
		if c := status.Find(reg, hubv1.ReachableCondition); c != nil {
			first[2], first[3] = string(c.Status), reg.Status.KubernetesVersion
		}
		missing = cmp.Or(missing, lacking(reg, w.name))
		addons := addonsOf(deliveries, w.name)
		if len(addons) == 0 {
			rows = append(rows, append(first, "", "", "", "", ""))
		}
		for i, a := range addons {
			if i > 0 {
				first = []string{"", "", "", ""}
			}
			rows = append(rows, append(slices.Clone(first), a.Name, a.Kind, string(a.State), excerpt.Cut(a.Version, 24), excerpt.Cut(a.Message, 60)))
		}
	}
	set := &hubv1.AddonSet{}
	if err := f.hub.Client.Get(ctx, client.ObjectKey{Namespace: "flux-system", Name: "base"}, set); err != nil {
		return nil, nil, err
	}
	if missing == nil && !(status.IsTrue(set, hubv1.ReadyCondition) && status.IsTrue(set, hubv1.HealthyCondition)) {
		missing = errors.New("the AddonSet is not Ready yet")
	}
	return rows, missing, nil
}

// lacking says why a cluster does not have both its add-ons yet; nil if it has.
func lacking(reg *hubv1.ClusterRegistration, name string) error {
	c := status.Find(reg, hubv1.ReadyCondition)
	switch {
	case status.IsTrue(reg, hubv1.ReadyCondition) && reg.Status.AddonCounts != nil && reg.Status.AddonCounts.Total == 2:
		return nil
	case c == nil:
		return fmt.Errorf("cluster %s is not Ready", name)
	}
	return fmt.Errorf("cluster %s: %s: %s", name, c.Reason, c.Message)
}

func addonsOf(deliveries *hubv1.AddonDeliveryList, cluster string) []hubv1.AddonStatus {
	var out []hubv1.AddonStatus
	for i := range deliveries.Items {
		if deliveries.Items[i].Spec.RegistrationRef.Name == cluster {
			out = append(out, deliveries.Items[i].Status.Addons...)
		}
	}
	return out
}
