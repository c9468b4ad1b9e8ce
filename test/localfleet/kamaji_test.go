// SPDX-License-Identifier: Apache-2.0

package localfleet_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
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
	tenant, err := kamaji.Tenant(ctx, "tenants", "t1")
	check(t, err)
	t.Logf("tenant after %s", time.Since(began).Round(time.Millisecond))
	// kwok watches from resource version 0, as its informers do; without that it would learn of pods and of its lease by and by.
	watcher, err := client.NewWithWatch(tenant.Config, client.Options{})
	check(t, err)
	w, err := watcher.Watch(ctx, &corev1.NamespaceList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0", AllowWatchBookmarks: true}})
	check(t, err)
	if e := <-w.ResultChan(); e.Type != watch.Added {
		t.Errorf("a watch from resource version 0 begins with %s: %+v", e.Type, e.Object)
	}
	w.Stop()
	check(t, tenant.JoinNode(ctx))
	t.Logf("node after %s", time.Since(began).Round(time.Millisecond))
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web"}}},
			},
		},
	}
	check(t, tenant.Client.Create(ctx, web))
	soon(t, "its controllers and its scheduler have a pod run", func(ctx context.Context) error {
		if err := tenant.Client.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil || web.Status.AvailableReplicas == 1 {
			return err
		}
		return errors.New("no pod is available")
	})
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "node-0"}}
	var first metav1.MicroTime
	soon(t, "its node renews its lease, without which it would be NotReady soon", func(ctx context.Context) error {
		if err := tenant.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if first.IsZero() {
			first = *lease.Spec.RenewTime
		}
		if !lease.Spec.RenewTime.After(first.Time) {
			return fmt.Errorf("it was renewed at %s", first)
		}
		return nil
	})
	check(t, tenant.Stop())
	gone := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "t1"}}
	gone.SetGroupVersionKind(schema.GroupVersionKind{Group: "kamaji.clastix.io", Version: "v1alpha1", Kind: "TenantControlPlane"})
	check(t, hub.Client.Delete(ctx, gone))
	soon(t, "nothing of a deleted tenant is left", func(ctx context.Context) error {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(tenant.Server(), "https://")); err == nil {
			_ = conn.Close()
			return errors.New("its API server still listens")
		}
		secrets := &corev1.SecretList{}
		if err := hub.Client.List(ctx, secrets, client.InNamespace("tenants")); err != nil {
			return err
		}
		for i := range secrets.Items {
			s := &secrets.Items[i]
			// A reconcile of Kamaji that was under way may put its finalizer back on this one, and then nobody takes it off
			// (Kamaji, internal/resources/datastore, datastore_storage_config.go).
			if s.DeletionTimestamp == nil || !slices.Equal(s.Finalizers, []string{"finalizer.kamaji.clastix.io/datastore-secret"}) {
				return fmt.Errorf("secret %s is, deleted at %s, with finalizers %q", s.Name, s.DeletionTimestamp, s.Finalizers)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "hub", "kamaji", "tenants", "*", "volumes")); len(left) > 0 {
			return fmt.Errorf("%v is left", left)
		}
		return nil
	})
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
