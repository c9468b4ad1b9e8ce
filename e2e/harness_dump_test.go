// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// dump prints what helps to understand a failure: the status of our kinds and of Flux's, and the ends of the logs. Secrets
// are never read.
func (h *hub) dump(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, k := range []struct{ apiVersion, kind string }{
		{"chandler.dev/v1alpha1", "ClusterRegistration"}, {"chandler.dev/v1alpha1", "AddonSet"}, {"chandler.dev/v1alpha1", "AddonDelivery"},
		{"helm.toolkit.fluxcd.io/v2", "HelmRelease"}, {"kustomize.toolkit.fluxcd.io/v1", "Kustomization"}, {"source.toolkit.fluxcd.io/v1", "HelmChart"},
		{"source.toolkit.fluxcd.io/v1", "HelmRepository"}, {"source.toolkit.fluxcd.io/v1", "OCIRepository"}, {"source.toolkit.fluxcd.io/v1", "GitRepository"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(k.apiVersion)
		list.SetKind(k.kind + "List")
		if err := h.Client.List(ctx, list, client.Limit(20)); err != nil {
			t.Logf("list %s: %v", k.kind, err)
			continue
		}
		for _, o := range list.Items {
			unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
			unstructured.RemoveNestedField(o.Object, "status", "inventory")
			raw, _ := yaml.Marshal(o.Object)
			t.Logf("%s %s/%s\n%s", k.kind, o.GetNamespace(), o.GetName(), raw)
		}
	}
	dumpLogs(t, h.Name)
}

// dumpLogs prints how the logs of a cluster end.
func dumpLogs(t *testing.T, cluster string) {
	logs, _ := filepath.Glob(filepath.Join(workDir, cluster, "*.log"))
	hubs, _ := filepath.Glob(filepath.Join(workDir, cluster, "hub-*.log"))
	if old := len(hubs) - 2; old > 0 { // a hub that is started again has a new log; fifty of them help nobody
		logs = slices.DeleteFunc(logs, func(log string) bool { return slices.Contains(hubs[:old], log) })
	}
	for _, log := range logs {
		raw, err := os.ReadFile(log)
		if err != nil || filepath.Base(log) == "audit.log" {
			continue
		}
		t.Logf("%s ends with\n%s", filepath.Base(log), raw[max(0, len(raw)-4000):])
	}
}
