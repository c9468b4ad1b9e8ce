// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// TestKamajiExample runs examples/kamaji as it is: the tenant of Kamaji's GitOps guide, and a chart with two replicas, on a
// cluster whose pods run.
func TestKamajiExample(t *testing.T) {
	beside(t)
	ctx := t.Context()
	tenant := workload(t, "with-nodes")
	h := startHub(t, hubOptions{name: "hub-kamaji", flux: &localfleet.FluxOptions{}, origins: true})
	charts, err := localfleet.NewChartServer()
	check(t, err)
	t.Cleanup(func() { _ = charts.Close() })
	check(t, charts.Publish(examples.FS, "charts/podinfo"))
	namespace(t, h.Client, "tenants")
	for _, file := range []string{"kamaji/tenant.yaml", "kamaji/addonset.yaml"} {
		text, err := examples.Read(file, map[string]string{examples.Podinfo: charts.URL()})
		check(t, err)
		apply(t, h.Client, text)
	}
	reg := registration("tenants", "tenant1")
	soon(t, "the tenant waits for its control plane", func() error {
		return condition(ctx, h.Client, reg, hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.KubeConfigNotReadyReason)
	})
	// Kamaji does its part.
	kubeconfig := kubeconfigOf(t, tenant)
	check(t, h.Client.Create(ctx, secret("tenants", "tenant1-admin-kubeconfig", map[string][]byte{"admin.conf": kubeconfig})))
	tcp := &unstructured.Unstructured{}
	tcp.SetAPIVersion("kamaji.clastix.io/v1alpha1")
	tcp.SetKind("TenantControlPlane")
	check(t, h.Client.Get(ctx, client.ObjectKey{Namespace: "tenants", Name: "tenant1"}, tcp))
	tcp.Object["status"] = localfleet.TenantStatus("tenant1-admin-kubeconfig")
	check(t, h.Client.Status().Update(ctx, tcp))

	soon(t, "the chart runs in the tenant with two replicas", func() error {
		d := &appsv1.Deployment{}
		if err := tenant.Client.Get(ctx, client.ObjectKey{Namespace: "podinfo", Name: "podinfo"}, d); err != nil {
			return err
		}
		if d.Status.AvailableReplicas != 2 {
			return fmt.Errorf("%d of 2 replicas are available", d.Status.AvailableReplicas)
		}
		return nil
	})
	soon(t, "the tenant and the set are Ready", func() error {
		if err := condition(ctx, h.Client, addonSet("flux-system", "tenant-apps"), hubv1.ReadyCondition, metav1.ConditionTrue, ""); err != nil {
			return err
		}
		return condition(ctx, h.Client, reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason)
	})
	check(t, h.Client.Delete(ctx, addonSet("flux-system", "tenant-apps")))
	soon(t, "the chart has left the tenant", func() error {
		return wantGone(ctx, tenant.Client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "podinfo"}})
	})
}

// TestCNIExample runs examples/cni as it is: the networks of a TenantControlPlane and of a Cluster reach the chart.
func TestCNIExample(t *testing.T) {
	beside(t)
	ctx := t.Context()
	h := startHub(t, hubOptions{name: "hub-cni", flux: &localfleet.FluxOptions{}, origins: true})
	charts, err := localfleet.NewChartServer()
	check(t, err)
	t.Cleanup(func() { _ = charts.Close() })
	check(t, charts.Publish(examples.FS, "charts/cni"))
	namespace(t, h.Client, "tenants")
	for _, file := range []string{"cni/clusters.yaml", "cni/addonset.yaml"} {
		text, err := examples.Read(file, map[string]string{examples.Charts: charts.URL()})
		check(t, err)
		apply(t, h.Client, text)
	}
	for _, tc := range []struct {
		cluster, name, apiVersion, kind, secret string
		key                                     string
		status                                  map[string]any
		want                                    map[string]string
	}{
		{"workload-a", "tenant1", "kamaji.clastix.io/v1alpha1", "TenantControlPlane", "tenant1-admin-kubeconfig", "admin.conf", localfleet.TenantStatus("tenant1-admin-kubeconfig"),
			map[string]string{"podCIDRs": "10.36.0.0/16", "serviceCIDRs": "10.96.0.0/16", "apiServer": "192.0.2.10:6443", "version": "1.18.4"}},
		{"workload-b", "capi1", "cluster.x-k8s.io/v1beta2", "Cluster", "capi1-kubeconfig", "value", map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}},
			map[string]string{"podCIDRs": "10.40.0.0/16", "serviceCIDRs": "10.100.0.0/16", "apiServer": "capi1.example.org:443", "version": "1.18.4"}},
	} {
		c := workload(t, tc.cluster)
		kubeconfig := kubeconfigOf(t, c)
		check(t, h.Client.Create(ctx, secret("tenants", tc.secret, map[string][]byte{tc.key: kubeconfig})))
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(tc.apiVersion)
		u.SetKind(tc.kind)
		check(t, h.Client.Get(ctx, client.ObjectKey{Namespace: "tenants", Name: tc.name}, u))
		u.Object["status"] = tc.status
		check(t, h.Client.Status().Update(ctx, u))
		for key, value := range tc.want {
			soon(t, key+" reaches "+tc.name, func() error { return wantData(ctx, c, "kube-system", "cni", key, value) })
		}
	}
	check(t, h.Client.Delete(ctx, addonSet("flux-system", "network")))
	soon(t, "the set is gone", func() error {
		return errors.Join(approveHeld(t.Context(), h.Client), wantGone(ctx, h.Client, addonSet("flux-system", "network")))
	})
}
