// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/metrics"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
)

// elected is what a leader has.
func elected() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func condition(typ, status, reason string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: metav1.ConditionStatus(status), Reason: reason, LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0))}
}

func registration(name, provider string, conditions ...metav1.Condition) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: name},
		Status:     hubv1.ClusterRegistrationStatus{Provider: provider, Conditions: conditions},
	}
}

func delivery(name, set, reason string, addons ...hubv1.AddonStatus) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name},
		Spec:       hubv1.AddonDeliverySpec{AddonSetRef: hubv1.DeliveredSetReference{Name: set}},
		Status:     hubv1.AddonDeliveryStatus{Addons: addons},
	}
	if reason != "" {
		d.Status.Conditions = []metav1.Condition{condition(hubv1.ReadyCondition, "False", reason)}
	}
	return d
}

func fleet() []client.Object {
	valid, invalid := condition(hubv1.KubeConfigValidCondition, "True", hubv1.SucceededReason), condition(hubv1.KubeConfigValidCondition, "False", "ExecForbidden")
	up, down := condition(hubv1.ReachableCondition, "True", hubv1.ProbeSucceededReason), condition(hubv1.ReachableCondition, "False", "DialTimeout")
	ready := condition(hubv1.ReadyCondition, "True", hubv1.SucceededReason)
	expiring := registration("expiring", "Secret", valid, up, condition(hubv1.ReadyCondition, "False", hubv1.AddonsFailedReason))
	expiring.Status.Credential = &hubv1.CredentialStatus{SecretName: "s", Key: "value", ExpirationTime: &metav1.Time{Time: time.Unix(1_800_000_000, 0)}}
	set := &hubv1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"},
		Status: hubv1.AddonSetStatus{
			Conditions:   []metav1.Condition{ready},
			Clusters:     &hubv1.ClusterCounts{Matched: 4, Ready: 2, Updated: 3, Failed: 1, Offline: 1},
			HeldRemovals: &hubv1.HeldRemovals{Count: 7, Hash: "h"},
			Orphans:      []hubv1.Orphan{{Addon: "a"}, {Addon: "b"}}, OrphansOmitted: 3,
			Rollout: &hubv1.RolloutStatus{Phase: hubv1.RolloutSoaking,
				Waves: []hubv1.WaveStatus{{Name: "canary", Total: 1, Done: 1}, {Name: "rest", Total: 3, Skipped: 1}}},
		},
	}
	stalled := &hubv1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "broken"},
		Status:     hubv1.AddonSetStatus{Conditions: []metav1.Condition{condition(hubv1.StalledCondition, "True", hubv1.InvalidSpecReason)}},
	}
	second := registration("second", "Kamaji", valid, up, condition(hubv1.ReadyCondition, "False", hubv1.DuplicateReason))
	second.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: "fleet", Name: "first"}
	return []client.Object{
		registration("ready", "Kamaji", valid, up, ready),
		registration("new", "Kamaji"),
		registration("waits", "ClusterAPI", condition(hubv1.KubeConfigValidCondition, "False", hubv1.KubeConfigNotReadyReason)),
		registration("refused", "Secret", invalid),
		registration("dead", "Kamaji", valid, down, condition(hubv1.SuspendedCondition, "True", hubv1.ClusterUnreachableReason)),
		registration("sleeps", "Kamaji", valid, down, condition(hubv1.SuspendedCondition, "True", hubv1.ClusterSleepingReason)),
		registration("upgrades", "Kamaji", valid, down, condition(hubv1.MaintenanceCondition, "True", hubv1.ClusterUpgradingReason)),
		registration("drains", "Kamaji", valid, up, condition(hubv1.DrainingCondition, "True", hubv1.DrainInProgressReason)),
		registration("idle", "Kamaji", valid, up, condition(hubv1.ReadyCondition, "True", hubv1.NoAddonSetReason)),
		registration("leaves", "Kamaji", valid, up, condition(hubv1.UnregisteringCondition, "True", hubv1.LabelRemovedReason)),
		second,
		registration("moves", "Kamaji", valid, up, condition(hubv1.ReadyCondition, "False", hubv1.ProgressingReason)),
		expiring, set, stalled,
		delivery("one", "base", hubv1.AddonsFailedReason, hubv1.AddonStatus{Name: "a", State: hubv1.AddonReady}, hubv1.AddonStatus{Name: "b", State: hubv1.AddonFailed}),
		delivery("two", "base", hubv1.AddonsReadyReason, hubv1.AddonStatus{Name: "a", State: hubv1.AddonReady}, hubv1.AddonStatus{Name: "b", State: hubv1.AddonReady}),
		delivery("new", "base", ""),
		delivery("strange", "base", "FromTheFuture"),
	}
}

const want = `
chandler_registrations{provider="Kamaji",state="Ready"} 1
chandler_registrations{provider="Kamaji",state="Pending"} 1
chandler_registrations{provider="ClusterAPI",state="Pending"} 1
chandler_registrations{provider="Secret",state="InvalidKubeConfig"} 1
chandler_registrations{provider="Kamaji",state="Unreachable"} 1
chandler_registrations{provider="Kamaji",state="Paused"} 1
chandler_registrations{provider="Kamaji",state="Maintenance"} 1
chandler_registrations{provider="Kamaji",state="Draining"} 1
chandler_registrations{provider="Kamaji",state="Idle"} 1
chandler_registrations{provider="Kamaji",state="Unregistering"} 1
chandler_registrations{provider="Kamaji",state="Duplicate"} 1
chandler_registrations{provider="Kamaji",state="Progressing"} 1
chandler_registrations{provider="Secret",state="AddonsFailed"} 1
chandler_registrations{provider="WorkloadIdentity",state="Ready"} 0
chandler_registration_reachable{registration="tenants/ready"} 1
chandler_registration_reachable{registration="tenants/dead"} 0
chandler_registration_suspended_timestamp_seconds{reason="ClusterUnreachable",registration="tenants/dead"} 1.7e+09
chandler_registration_suspended_timestamp_seconds{reason="ClusterSleeping",registration="tenants/sleeps"} 1.7e+09
chandler_registration_credential_expiry_timestamp_seconds{provider="Secret",registration="tenants/expiring",renewed="false"} 1.8e+09
chandler_addonsets{state="Ready"} 1
chandler_addonsets{state="Stalled"} 1
chandler_addonsets{state="NoClusterMatches"} 0
chandler_addonset_ready{addonset="flux-system/base"} 1
chandler_addonset_stalled{addonset="flux-system/broken"} 1
chandler_addonset_held_removals{addonset="flux-system/base"} 7
chandler_addonset_orphans{addonset="flux-system/base"} 5
chandler_addonset_rollout{addonset="flux-system/base",phase="Soaking"} 1
chandler_addonset_rollout_clusters{addonset="flux-system/base",state="done",wave="canary"} 1
chandler_addonset_rollout_clusters{addonset="flux-system/base",state="waiting",wave="rest"} 2
chandler_addonset_rollout_clusters{addonset="flux-system/base",state="skipped",wave="rest"} 1
chandler_addonset_clusters{addonset="flux-system/base",state="updated"} 3
chandler_addonset_addons{addon="a",addonset="flux-system/base",state="Ready"} 2
chandler_addonset_addons{addon="b",addonset="flux-system/base",state="Failed"} 1
chandler_deliveries{state="AddonsReady"} 1
chandler_deliveries{state="AddonsFailed"} 1
chandler_deliveries{state="Progressing"} 1
chandler_deliveries{state="Other"} 1
chandler_deliveries{state="Frozen"} 0
chandler_addons{state="Ready"} 3
chandler_addons{state="Failed"} 1
chandler_addons{state="Removing"} 0
`

// gather returns what a scrape has, one series a line.
func gather(t testing.TB, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	return text(t, registry)
}

func text(t testing.TB, registry prometheus.Gatherer) string {
	t.Helper()
	families := must.Get(registry.Gather()).Or(t)
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&b, "%s{%s} %g\n", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount()))
		}
	}
	return b.String()
}

func TestFleet(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(fleet()...).Build()
	collector := &metrics.Collector{Reader: c, Elected: elected()}
	got := gather(t, collector)
	for line := range strings.Lines(strings.TrimPrefix(want, "\n")) {
		if !strings.Contains("\n"+got, "\n"+line) {
			t.Errorf("there is no %s", line)
		}
	}
	if problems, err := testutil.CollectAndLint(collector); err != nil || len(problems) > 0 {
		t.Errorf("%v (%v)", problems, err)
	}
	if strings.Contains(got, `chandler_registration_reachable{registration="tenants/new"`) {
		t.Error("nobody knows whether a cluster answers that nobody has asked")
	}
	must.Do(t, c.Delete(t.Context(), registration("expiring", "")))
	if n := testutil.CollectAndCount(collector, "chandler_registration_credential_expiry_timestamp_seconds"); n != 0 {
		t.Errorf("%d metrics are left of a registration that is gone", n)
	}
}

// TestEveryRegistrationIsInOneState: the states add up to the fleet.
func TestEveryRegistrationIsInOneState(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(fleet()...).Build()
	sum := 0.0
	for line := range strings.Lines(gather(t, &metrics.Collector{Reader: c, Elected: elected()})) {
		var n float64
		if name, value, ok := strings.Cut(line, "} "); ok && strings.HasPrefix(name, "chandler_registrations{") {
			must.Get(fmt.Sscan(value, &n)).Or(t)
			sum += n
		}
	}
	if sum != 13 {
		t.Errorf("the states add up to %v registrations, and there are 13", sum)
	}
}

func TestOnlyTheLeaderSpeaks(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(fleet()...).Build()
	if got := gather(t, &metrics.Collector{Reader: c, Elected: make(chan struct{})}); got != "" {
		t.Errorf("a replica that does not lead says\n%s", got)
	}
}

// notStarted is a cache before the manager has started it.
type notStarted struct{ client.Reader }

func (notStarted) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not started")
}

func TestNoCacheYet(t *testing.T) {
	if got := gather(t, &metrics.Collector{Reader: notStarted{}, Elected: elected()}); got != "" {
		t.Errorf("got %s: what is not known breaks nobody's scrape", got)
	}
}

// cache returns what it holds without a copy, as a manager's does.
type cache struct {
	client.Reader
	registrations []hubv1.ClusterRegistration
	deliveries    []hubv1.AddonDelivery
}

func (c *cache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *hubv1.ClusterRegistrationList:
		l.Items = c.registrations
	case *hubv1.AddonDeliveryList:
		l.Items = c.deliveries
	}
	return nil
}

// BenchmarkScrape collects a fleet of 5,000 clusters with 10 add-ons each.
func BenchmarkScrape(b *testing.B) {
	c := &cache{}
	for i := range 5000 {
		reg := registration(fmt.Sprint("c", i), "Kamaji", condition(hubv1.KubeConfigValidCondition, "True", ""), condition(hubv1.ReachableCondition, "True", ""))
		reg.Status.Credential = &hubv1.CredentialStatus{ExpirationTime: &metav1.Time{Time: time.Unix(1_800_000_000, 0)}}
		c.registrations = append(c.registrations, *reg)
		var addons []hubv1.AddonStatus
		for j := range 10 {
			addons = append(addons, hubv1.AddonStatus{Name: fmt.Sprint("a", j), State: hubv1.AddonReady})
		}
		c.deliveries = append(c.deliveries, *delivery(fmt.Sprint("d", i), "base", hubv1.AddonsReadyReason, addons...))
	}
	collector := &metrics.Collector{Reader: c, Elected: elected()}
	b.ReportAllocs()
	series := 0
	for b.Loop() {
		series = testutil.CollectAndCount(collector)
	}
	b.ReportMetric(float64(series), "series")
}
