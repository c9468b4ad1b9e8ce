// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// stays is how long the test waits before it tries what the demo suggests, as a newcomer who looks around first. At night that is far longer
// than a node without a lease would live. By day TestFleet of package localfleet sees that nodes renew theirs.
var stays = time.Duration(expect.ByDay(5, 180)) * time.Second

// TestTries: a label that takes a cluster out of set base does not take it out of the set of a team that selects all clusters.
func TestTries(t *testing.T) {
	text := strings.Join(tries(), "\n")
	if strings.Contains(text, "no set selects") || !strings.Contains(text, "tier=dev --overwrite    # set base does not select it any more") {
		t.Errorf("it suggests\n%s", text)
	}
}

// TestDemo does what the demo does and what it tells people to try, after they have looked around for a while.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the parts that `make tools` builds")
	}
	log.SetLogger(logr.Discard())
	var out bytes.Buffer
	f := &fleet{out: newScreen(&out), dir: t.TempDir()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the demo says\n%s", out.String())
			dump(t, f.dir)
		}
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	})
	ctx := t.Context()
	expect.NoError(t, f.start(ctx, options{}))
	expect.NoError(t, f.register(ctx))
	expect.NoError(t, f.watch(ctx, expect.Patience))
	expect.NoError(t, f.readBack(ctx))
	expect.NoError(t, f.teams(ctx, expect.Patience))
	expect.NoError(t, f.rollout(ctx, expect.Patience))
	for _, row := range []string{"search  edge1    system:serviceaccount:chandler-search:search  yes                        no                      no\n"} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("there is no %q in\n%s", row, out.String())
		}
	}
	arrived := time.Now()
	expect.Within(t, stays+expect.Patience, "the fleet stays up, and stays well", func() error {
		if up := time.Since(arrived); up < stays {
			return fmt.Errorf("it is up for %s", up)
		}
		return errors.Join(f.runs(t, 2, 0), f.runs(t, 2, 1), f.runs(t, 2, 2))
	})

	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
	patch(t, f.hub, set, types.JSONPatchType, `[{"op":"replace","path":"/spec/addons/0/helmRelease/values/replicaCount","value":3}]`)
	expect.Soon(t, "a change arrives on every cluster", func() error { return errors.Join(f.runs(t, 3, 0), f.runs(t, 3, 1), f.runs(t, 3, 2)) })
	expect.Soon(t, "and is Ready", func() error {
		var all []types.NamespacedName
		for _, w := range f.workloads {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: w.name})
		}
		return expect.Delivered(ctx, f.hub.Client, set, all...)
	})

	tenant := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.workloads[0].name}}
	tenant.Kind, tenant.APIVersion = "TenantControlPlane", "kamaji.clastix.io/v1alpha1"
	patch(t, f.hub, tenant, types.MergePatchType, fmt.Sprintf(`{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))
	expect.Soon(t, "the tenant is unregistered, and clean", func() error {
		reg := &hubv1.ClusterRegistration{ObjectMeta: tenant.ObjectMeta}
		return errors.Join(f.clean(t, 0), expect.Gone(ctx, f.hub.Client, reg))
	})
	cluster := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.workloads[1].name}}
	cluster.Kind, cluster.APIVersion = "Cluster", "cluster.x-k8s.io/v1beta2"
	patch(t, f.hub, cluster, types.MergePatchType, `{"metadata":{"labels":{"tier":"dev"}}}`)
	expect.Soon(t, "a cluster that no set selects is clean", func() error {
		return errors.Join(expect.ApproveHeld(ctx, f.hub.Client), f.clean(t, 1))
	})
	expect.NoError(t, f.hub.Client.Delete(ctx, set))
	expect.Soon(t, "the set is gone, and the last cluster is clean", func() error {
		return errors.Join(expect.ApproveHeld(ctx, f.hub.Client), f.clean(t, 2), expect.Gone(ctx, f.hub.Client, set))
	})
}

// runs wants the example's Deployment on a cluster, with all of its replicas.
func (f *fleet) runs(t *testing.T, replicas int32, on int) error {
	d := &appsv1.Deployment{}
	w := f.workloads[on]
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "podinfo", Name: "podinfo"}, d); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	if s := d.Status; *d.Spec.Replicas != replicas || s.ObservedGeneration != d.Generation || s.AvailableReplicas != replicas {
		return fmt.Errorf("%s: Deployment podinfo/podinfo wants %d replicas and has %+v, want %d", w.name, *d.Spec.Replicas, s, replicas)
	}
	return nil
}

// clean wants nothing of the example to be left on a cluster.
func (f *fleet) clean(t *testing.T, on int) error {
	c := f.workloads[on].Client
	return errors.Join(
		expect.Gone(t.Context(), c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "podinfo"}}),
		expect.Gone(t.Context(), c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "podinfo"}}),
		expect.Gone(t.Context(), c, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "deny-all"}}))
}

func patch(t *testing.T, c *localfleet.Cluster, o client.Object, kind types.PatchType, text string) {
	t.Helper()
	expect.NoError(t, c.Client.Patch(t.Context(), o, client.RawPatch(kind, []byte(text))))
}

// dump prints how the logs end.
func dump(t *testing.T, dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".log") {
			return nil
		}
		if raw, err := os.ReadFile(path); err == nil {
			t.Logf("%s ends with\n%s", path, raw[max(0, len(raw)-3000):])
		}
		return nil
	})
}
