// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

func collectRegistrations(list *hubv1.ClusterRegistrationList, out chan<- prometheus.Metric) {
	type group struct{ provider, state string }
	counts := map[group]int{}
	for _, p := range origin.Providers() {
		for _, s := range registrationStates {
			counts[group{p, s}] = 0 // so that a share of none is 0 and not nothing
		}
	}
	for i := range list.Items {
		reg := &list.Items[i]
		name := reg.Namespace + "/" + reg.Name
		counts[group{reg.Status.Provider, registrationState(reg)}]++
		if r := status.Find(reg, hubv1.ReachableCondition); r != nil && r.Status != metav1.ConditionUnknown {
			gauge(out, registrationReachable, is(r.Status == metav1.ConditionTrue), name)
		}
		if s := status.Find(reg, hubv1.SuspendedCondition); s != nil {
			gauge(out, registrationSuspended, float64(s.LastTransitionTime.Unix()), name, s.Reason)
		}
		if in := reg.Status.Credential; in != nil && in.ExpirationTime != nil {
			gauge(out, credentialExpiry, float64(in.ExpirationTime.Unix()), name, reg.Status.Provider, strconv.FormatBool(in.Renewed))
		}
	}
	for g, n := range counts {
		gauge(out, registrations, float64(n), g.provider, g.state)
	}
}

func collectSets(list *hubv1.AddonSetList, out chan<- prometheus.Metric) {
	counts := zeros(setStates)
	for i := range list.Items {
		set := &list.Items[i]
		name := set.Namespace + "/" + set.Name
		counts[setState(set)]++
		gauge(out, setReady, is(status.IsTrue(set, hubv1.ReadyCondition)), name)
		gauge(out, setStalled, is(status.IsTrue(set, hubv1.StalledCondition)), name)
		held := 0
		if h := set.Status.HeldRemovals; h != nil {
			held = int(h.Count)
		}
		gauge(out, setHeld, float64(held), name)
		gauge(out, setOrphans, float64(len(set.Status.Orphans)+int(set.Status.OrphansOmitted)), name)
		collectRollout(set.Status.Rollout, name, out)
		if c := set.Status.Clusters; c != nil {
			for state, n := range map[string]int32{
				"matched": c.Matched, "ready": c.Ready, "updated": c.Updated, "failed": c.Failed, "offline": c.Offline, "leaving": c.Leaving,
			} {
				gauge(out, setClusters, float64(n), name, state)
			}
		}
	}
	for state, n := range counts {
		gauge(out, addonSets, float64(n), state)
	}
}

// collectRollout counts the clusters of each wave. A set without waves has none.
func collectRollout(now *hubv1.RolloutStatus, set string, out chan<- prometheus.Metric) {
	if now == nil || len(now.Waves) == 0 {
		return
	}
	for _, phase := range rolloutPhases {
		gauge(out, setRollout, is(now.Phase == phase), set, string(phase))
	}
	for _, w := range now.Waves {
		for state, n := range map[string]int32{
			"waiting": w.Total - w.Running - w.Done - w.Failed - w.Skipped, "running": w.Running,
			"done": w.Done, "failed": w.Failed, "skipped": w.Skipped,
		} {
			gauge(out, setWaves, float64(n), set, w.Name, state)
		}
	}
}

func collectDeliveries(list *hubv1.AddonDeliveryList, out chan<- prometheus.Metric) {
	type place struct{ set, addon, state string }
	byState, byAddon, places := zeros(deliveryStates), zeros(addonStates), map[place]int{}
	for i := range list.Items {
		d := &list.Items[i]
		byState[deliveryState(d)]++
		for j := range d.Status.Addons {
			a := &d.Status.Addons[j]
			byAddon[string(a.State)]++
			places[place{d.SetKey().String(), a.Name, string(a.State)}]++
		}
	}
	for state, n := range byState {
		gauge(out, deliveries, float64(n), state)
	}
	for state, n := range byAddon {
		gauge(out, addons, float64(n), state)
	}
	for p, n := range places {
		gauge(out, setAddons, float64(n), p.set, p.addon, p.state)
	}
}

func zeros(states []string) map[string]int {
	out := make(map[string]int, len(states))
	for _, s := range states {
		out[s] = 0
	}
	return out
}
