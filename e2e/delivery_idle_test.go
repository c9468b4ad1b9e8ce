// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// TestSteadyFleetCostsNoWrites applies the same state twice, restarts the hub in between, and counts the hub's writes in the
// API server's audit log.
func TestSteadyFleetCostsNoWrites(t *testing.T) {
	beside(t)
	ctx := t.Context()
	c := workload(t, "workload-a")
	h := startHub(t, hubOptions{name: "hub-idle", flux: &localfleet.FluxOptions{}, args: []string{"--log-level=debug"}})
	charts, _ := serve(t)
	s := register(t, h.Client, "fleet", "one", c, map[string]string{"tier": "prod"})
	state := fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: idle-prod, namespace: flux-system}
data: {color: blue}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: idle, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: prod}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: %s, interval: 1m}}]
  variablesFrom: [{configMap: "idle-<< cluster.labels.tier >>"}]
  addons:
    - name: idle-first
      helmRelease: {interval: 2s, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: << vars.color >>}}
    - name: idle-second
      dependsOn: [{name: idle-first}]
      helmRelease: {interval: 2s, chart: {spec: {chart: settings, sourceRef: {name: charts}}}}
    - name: idle-third
      dependsOn: [{name: idle-second}]
      manifests: {interval: 2s, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: idle-third}, data: {of: << origin.metadata.name >>}}]}
  overlays:
    - {name: prod, clusterSelector: {matchLabels: {tier: prod}}, addons: [{name: idle-second, helmRelease: {values: {color: red}}}]}
`, charts.URL())
	apply(t, h.Client, state)
	set := addonSet("flux-system", "idle")
	ready := func() error {
		if err := condition(ctx, h.Client, set, hubv1.HealthyCondition, metav1.ConditionTrue, hubv1.SucceededReason); err != nil {
			return err
		}
		if got := set.Status.Clusters.ReadySummary; got != "1/1" {
			return fmt.Errorf("%s clusters", got)
		}
		return condition(ctx, h.Client, registration("fleet", "one"), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason)
	}
	soon(t, "all is Ready", ready)
	soon(t, "the hub has nothing left to write", func() error { return h.quiet(0) })
	start := time.Now()
	before, err := h.Writes(localfleet.HubUserAgent, start.Add(-time.Hour))
	check(t, err)
	if len(before) == 0 {
		t.Fatal("the audit log shows no write of the hub at all: the count below would mean nothing")
	}

	h.stop()
	apply(t, h.Client, state)
	h.start(t)
	// Two label changes on the origin prove that the hub is back and at work: each costs one write of the registration. One after
	// the other: two caches, of which one lags, may make it write the same once more.
	for _, v := range []string{"1", "2"} {
		check(t, h.Client.Patch(ctx, s, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"sentinel":%q}}}`, v))))
		soon(t, "the hub follows", func() error {
			reg := registration("fleet", "one")
			if err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
				return err
			}
			if reg.Labels["sentinel"] != v {
				return fmt.Errorf("sentinel is %q", reg.Labels["sentinel"])
			}
			return h.quiet(0)
		})
	}
	renders := func() int { return strings.Count(h.process.Tail(1_000_000), `"msg":"rendered"`) }
	rendered := renders()
	if rendered == 0 {
		t.Fatal("the log shows no rendering at all: the count below would mean nothing")
	}
	// Flux reconciles every two seconds, and somebody writes into its status.
	hr := &helmv2.HelmReleaseList{}
	check(t, h.Client.List(ctx, hr, client.InNamespace("flux-system")))
	for i := range 20 {
		o := &hr.Items[i%len(hr.Items)]
		patch := fmt.Appendf(nil, `{"status":{"lastHandledReconcileAt":"%d"}}`, i)
		check(t, h.Client.Status().Patch(ctx, o, client.RawPatch("application/merge-patch+json", patch)))
	}
	soon(t, "the hub has nothing left to write", func() error { return h.quiet(5 * time.Second) })
	check(t, ready())

	if n := renders() - rendered; n != 0 {
		t.Errorf("the cluster was rendered %d times while nothing changed that goes into it", n)
	}
	after, err := h.Writes(localfleet.HubUserAgent, start)
	check(t, err)
	sentinels := 0
	for _, e := range after {
		if e.ObjectRef.Resource == "clusterregistrations" && e.ObjectRef.Subresource == "" {
			sentinels++
			continue
		}
		t.Errorf("the hub wrote: %s", write(e))
	}
	if sentinels != 2 {
		t.Errorf("%d writes of registrations, want 2: one for each change of the label", sentinels)
	}
	h.wantChangeIsCheap(t, strings.Replace(state, "color: << vars.color >>", "color: green", 1), ready)
}

// wantChangeIsCheap changes one of three add-ons, and counts what that costs: the delivery, the Flux object, and the statuses of the
// delivery, of which the add-ons go through several.
func (h *hub) wantChangeIsCheap(t *testing.T, state string, ready func() error) {
	t.Helper()
	start := time.Now()
	apply(t, h.Client, state)
	soon(t, "the change is Ready everywhere", func() error {
		set := addonSet("flux-system", "idle")
		if err := condition(t.Context(), h.Client, set, hubv1.RolloutCompleteCondition, metav1.ConditionTrue, hubv1.SucceededReason); err != nil {
			return err
		}
		if set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("generation %d, observed %d", set.Generation, set.Status.ObservedGeneration)
		}
		return ready()
	})
	// Progress is told every so often (internal/pace), so more of it is told where all takes longer.
	longer := max(0, time.Since(start)-10*time.Second)
	soon(t, "the hub has nothing left to write", func() error { return h.quiet(6 * time.Second) })
	writes, err := h.Writes(localfleet.HubUserAgent, start)
	check(t, err)
	got := map[string]int{}
	for _, e := range writes {
		got[strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
	}
	most := map[string]int{"addondeliveries": 1, "helmreleases": 1, "addondeliveries/status": 2, "controllerrevisions": 1, "addonsets/status": 8}
	// A registration's Ready goes with its delivery's: it is False in between if the delivery is, which says so where all takes 5 s.
	most["clusterregistrations/status"] = min(got["addondeliveries/status"], 2)
	for what, every := range map[string]time.Duration{"addondeliveries/status": 5 * time.Second, "clusterregistrations/status": 30 * time.Second, "addonsets/status": time.Second} {
		most[what] += int(longer / every)
	}
	for what, n := range got {
		if n > most[what] {
			t.Errorf("a change of one add-on cost %d writes of %s, want at most %d", n, what, most[what])
		}
	}
	if got["addondeliveries"] != 1 || got["helmreleases"] != 1 {
		t.Errorf("the delivery and the Flux object were to be written, got %v", got)
	}
}

// quiet returns an error unless the hub has written nothing for a while.
func (h *hub) quiet(while time.Duration) error {
	while = max(while, 3*time.Second)
	writes, err := h.Writes(localfleet.HubUserAgent, time.Now().Add(-while))
	if err == nil && len(writes) > 0 {
		err = fmt.Errorf("%d writes in the last %s, such as %s", len(writes), while, write(writes[0]))
	}
	return err
}

func write(e auditv1.Event) string {
	r := e.ObjectRef
	return fmt.Sprintf("%s %s/%s %s/%s (%d)", e.Verb, r.Resource, r.Subresource, r.Namespace, r.Name, e.ResponseStatus.Code)
}
