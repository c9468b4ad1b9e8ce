// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/metrics"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/probe"
)

func register(t *testing.T) (*metrics.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m := must.Get(metrics.Register(registry)).Or(t)
	return m, registry
}

func TestWritesAreCounted(t *testing.T) {
	m, registry := register(t)
	ctx := t.Context()
	reg := registration("one", "Kamaji")
	c := m.Counted(fake.NewClientBuilder().WithScheme(hubscheme.New()).WithStatusSubresource(reg).WithObjects(reg).Build())
	set := &hubv1.AddonSet{}
	set.Namespace, set.Name = "flux-system", "base"
	applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	applied.SetGroupVersionKind(hubv1.GroupVersion.WithKind("AddonDelivery"))
	applied.SetNamespace("flux-system")
	applied.SetName("base-one")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	stale := reg.DeepCopy()
	stale.ResourceVersion = "1"
	for what, err := range map[string]error{
		"create": c.Create(ctx, set), "apply": c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("test")),
		"patch": c.Patch(ctx, reg, patch), "status": c.Status().Patch(ctx, reg, client.RawPatch(types.MergePatchType, []byte(`{"status":{"provider":"Secret"}}`))),
		"read": c.Get(ctx, client.ObjectKeyFromObject(reg), &hubv1.ClusterRegistration{}), "delete": c.Delete(ctx, set),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if c.Update(ctx, stale) == nil || c.Delete(ctx, set) == nil {
		t.Error("a conflict or a missing object is no error")
	}
	got := text(t, registry)
	for _, want := range []string{
		`{kind="AddonSet",result="success",verb="create"} 1`, `{kind="AddonSet",result="success",verb="delete"} 1`, `{kind="AddonSet",result="error",verb="delete"} 1`,
		`{kind="AddonDelivery",result="success",verb="apply"} 1`, `{kind="ClusterRegistration",result="success",verb="patch"} 1`,
		`{kind="ClusterRegistration",result="success",verb="status"} 1`, `{kind="ClusterRegistration",result="conflict",verb="update"} 1`,
	} {
		if !strings.Contains(got, "chandler_writes_total"+want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "chandler_writes_total"); n != 7 {
		t.Errorf("%d series, want 7:\n%s", n, got)
	}
}

func TestProbesAreMeasured(t *testing.T) {
	m, registry := register(t)
	results := map[string]probe.Result{
		"good": {}, "bad": {Err: &probe.Failure{Reason: probe.ReasonDialTimeout}}, "gone": {Err: &probe.Failure{Reason: probe.ReasonCanceled}},
	}
	for _, r := range results {
		got := m.Measured(func(context.Context, *kubeconfig.Config) probe.Result { return r })(t.Context(), nil)
		if got.Err != r.Err {
			t.Errorf("got %v, want %v", got.Err, r.Err)
		}
	}
	must.Do(t, m.Collect(notStarted{}, elected(), probe.NewPool(probe.PoolOptions{})))
	got := text(t, registry)
	for _, want := range []string{`chandler_probe_duration_seconds{outcome="Answered"} 1`, `chandler_probe_duration_seconds{outcome="DialTimeout"} 1`, `chandler_probe_targets{state="healthy"} 0`} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, probe.ReasonCanceled) {
		t.Errorf("a probe that nobody waits for any more is counted:\n%s", got)
	}
	families := must.Get(registry.Gather()).Or(t)
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v (%v)", problems, err)
	}
}
