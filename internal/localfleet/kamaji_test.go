// SPDX-License-Identifier: Apache-2.0

package localfleet_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/localfleet"
	"github.com/chandler-hub/chandler/internal/localfleet/parts"
)

// TestKamaji has the real operator make a tenant, which a node then joins.
func TestKamaji(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the parts that `make tools` builds")
	}
	ctx := t.Context()
	crds, err := localfleet.CRDs(parts.Kamaji)
	check(t, err)
	dir := t.TempDir()
	hub, err := localfleet.StartCluster(ctx, localfleet.ClusterOptions{Name: "hub", Dir: dir, CRDPaths: crds, ControllerManager: true, NoWorkloads: true})
	check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			dumpLogs(t, filepath.Join(dir, "hub"))
		}
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	kamaji, err := hub.StartKamaji(ctx, func(holder string) { t.Logf("Kamaji runs for %s, waiting", holder) })
	check(t, err)
	t.Logf("Kamaji after %s", time.Since(began).Round(time.Millisecond))
	check(t, hub.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenants"}}))
	began = time.Now()
	check(t, kamaji.CreateTenant(ctx, "tenants", "t1", localfleet.TenantOptions{}))
	waitCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tenant, err := kamaji.Tenant(waitCtx, "tenants", "t1")
	check(t, err)
	t.Logf("tenant after %s", time.Since(began).Round(time.Millisecond))
	defer func() { check(t, tenant.Stop()) }()
	check(t, tenant.JoinNode(ctx))
	t.Logf("node after %s", time.Since(began).Round(time.Millisecond))
	check(t, tenant.Client.Get(ctx, client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}))
}

// dumpLogs prints how every log below a folder ends.
func dumpLogs(t *testing.T, dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".log" || entry.Name() == "audit.log" {
			return nil
		}
		if raw, err := os.ReadFile(path); err == nil {
			t.Logf("%s ends with\n%s", path, raw[max(0, len(raw)-4000):])
		}
		return nil
	})
}
