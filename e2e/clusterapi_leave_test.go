// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/localfleet"
)

// holdFinalizer keeps the infrastructure of a Cluster, and so the Cluster, from going.
const holdFinalizer = "chandler.dev/held-by-a-test"

// untouched returns a check that what the add-ons put on a workload cluster is the very same as now.
func (f *capiFleet) untouched(t *testing.T, c *localfleet.Cluster) func() {
	t.Helper()
	keys := []client.ObjectKey{{Namespace: "ca-chart", Name: "ca-chart"}, {Namespace: "default", Name: "ca-objects"}}
	read := func() map[client.ObjectKey]types.UID {
		out := map[client.ObjectKey]types.UID{}
		for _, key := range keys {
			cm := &corev1.ConfigMap{}
			check(t, c.Client.Get(t.Context(), key, cm))
			if cm.DeletionTimestamp != nil {
				t.Errorf("ConfigMap %s is being deleted", key)
			}
			out[key] = cm.UID
		}
		return out
	}
	before := read()
	return func() {
		t.Helper()
		for key, uid := range read() {
			if uid != before[key] {
				t.Errorf("ConfigMap %s was made anew", key)
			}
		}
	}
}

// letGo wants nothing of the hub's to be left for a Cluster. The sets say what they left behind.
func (f *capiFleet) letGo(ctx context.Context, set, name string) error {
	if err := wantGone(ctx, f.Client, registration(name, name)); err != nil {
		return err
	}
	left, err := ours(ctx, f.Client)
	if err != nil {
		return err
	}
	for _, o := range left {
		if strings.Contains(o, name+"-") {
			return errors.New("left on the hub: " + o)
		}
	}
	s := addonSet("flux-system", set)
	if err := f.Client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	found := 0
	for _, o := range s.Status.Orphans {
		if o.Cluster == name+"/"+name {
			found++
		}
	}
	if found != 2 {
		return fmt.Errorf("set %s has %d orphans on %s: %+v", set, found, name, s.Status.Orphans)
	}
	return nil
}

// moved has clusterctl itself move a Cluster to another management cluster with Cluster API.
func (f *capiFleet) moved(t *testing.T) {
	ctx := t.Context()
	target, err := localfleet.StartCluster(ctx, localfleet.ClusterOptions{Name: "capi-target", Dir: workDir, Scheme: scheme})
	check(t, err)
	t.Cleanup(func() { _ = target.Stop() })
	to, err := target.StartClusterAPI(ctx)
	check(t, err)
	to.Serve("c1", "c1", f.one)
	untouched := f.untouched(t, f.one)
	check(t, f.api.Move(ctx, "c1", to))
	within(t, 30*time.Second, "the hub lets it go", func() error { return f.letGo(ctx, "plain", "c1") })
	untouched()
	if err := wantGone(ctx, f.Client, capiClusterOf("c1")); err != nil {
		t.Error(err)
	}
	soon(t, "it lives on under the other", func() error { return f.reached(ctx, target.Client, "c1", "controlPlaneInitialized") })
	check(t, target.Client.Get(ctx, client.ObjectKey{Namespace: "c1", Name: "c1-kubeconfig"}, &corev1.Secret{}))
	untouched()
}

// hold makes the infrastructure of a Cluster stay when it is deleted, and returns what lets it go.
func (f *capiFleet) hold(t *testing.T, name string) (release func()) {
	t.Helper()
	infrastructure, err := f.infrastructure(t.Context(), name)
	check(t, err)
	before := infrastructure.DeepCopy()
	infrastructure.SetFinalizers(append(infrastructure.GetFinalizers(), holdFinalizer))
	check(t, f.Client.Patch(t.Context(), infrastructure, client.MergeFrom(before)))
	return func() {
		t.Helper()
		check(t, f.Client.Patch(t.Context(), infrastructure, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		soon(t, "Cluster "+name+" is gone", func() error { return wantGone(t.Context(), f.Client, capiClusterOf(name)) })
	}
}

// wantHalfGone wants a Cluster to be there, being deleted, and its kubeconfig Secret not.
func (f *capiFleet) wantHalfGone(ctx context.Context, name string) error {
	cluster := capiClusterOf(name)
	if err := f.Client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		return err
	}
	if cluster.GetDeletionTimestamp() == nil {
		return errors.New("the Cluster is not being deleted")
	}
	return wantGone(ctx, f.Client, secret(name, name+"-kubeconfig", nil))
}

// deleted deletes a Cluster while the hub looks: Cluster API deletes its control plane, with which the Secret goes, and then
// its infrastructure, which takes its time.
func (f *capiFleet) deleted(t *testing.T) {
	ctx := t.Context()
	untouched, release := f.untouched(t, f.tenant), f.hold(t, "c3")
	check(t, deleted(capiClusterOf("c3"))(ctx, f.Client))
	within(t, 30*time.Second, "the hub lets it go", func() error { return f.letGo(ctx, "plain", "c3") })
	soon(t, "the Secret is gone before the Cluster", func() error { return f.wantHalfGone(ctx, "c3") })
	if err := wantGone(ctx, f.Client, registration("c3", "c3")); err != nil {
		t.Error(err) // nothing registers it again
	}
	release()
	untouched()
}

// deletedUnseen has a hub start in the very moment in which the Secret is gone, and the Cluster is not.
func (f *capiFleet) deletedUnseen(t *testing.T) {
	ctx := t.Context()
	f.api.Serve("c4", "c4", f.one)
	f.create(t, "c4", plainCluster)
	f.register(t, "c4")
	soon(t, "the add-ons arrive", func() error { return f.delivered(ctx, f.one, "c4", "red") })
	soon(t, "the registration is Ready", func() error { return f.ready(ctx, "c4") })
	untouched, release := f.untouched(t, f.one), f.hold(t, "c4")
	f.stop()
	check(t, deleted(capiClusterOf("c4"))(ctx, f.Client))
	soon(t, "the Secret is gone, and the Cluster is not", func() error { return f.wantHalfGone(ctx, "c4") })
	f.start(t)
	within(t, 30*time.Second, "the hub lets it go", func() error { return f.letGo(ctx, "plain", "c4") })
	check(t, f.wantHalfGone(ctx, "c4"))
	release()
	untouched()
}

// drained asks for a drain of a Cluster with a topology, and then has Cluster API delete it.
func (f *capiFleet) drained(t *testing.T) {
	ctx := t.Context()
	f.policy(t)
	cluster := capiClusterOf("c2")
	apply(t, f.Client, `{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: c2, namespace: c2}, spec: {drainBeforeDeletion: {}}}`)
	soon(t, "the deletion is denied", func() error {
		if err := f.Client.Delete(ctx, cluster.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), hubv1.DrainAnnotation) {
			return fmt.Errorf("whoever deletes it is told %v", err)
		}
		return nil
	})
	check(t, patched(cluster, `{"metadata":{"annotations":{"chandler.dev/drain":"true"}}}`)(ctx, f.Client))
	soon(t, "it may be deleted", func() error { return deleted(cluster)(ctx, f.Client) })
	check(t, f.undelivered(ctx, f.two))
	soon(t, "the Cluster is gone", func() error { return wantGone(ctx, f.Client, cluster) })
	soon(t, "the registration is gone", func() error { return wantGone(ctx, f.Client, registration("c2", "c2")) })
	s := addonSet("flux-system", "topology")
	check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(s), s))
	if len(s.Status.Orphans) > 0 {
		t.Errorf("there are orphans: %+v", s.Status.Orphans)
	}
}
