// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
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

// orphaned wants nothing of the hub's to be left for a Cluster. The sets say what they left behind.
func (f *capiFleet) orphaned(ctx context.Context, set, name string) error {
	if err := wantGone(ctx, f.Client, registration(name, name)); err != nil {
		return err
	}
	left, err := ours(ctx, f.Client)
	if err != nil {
		return err
	}
	for _, o := range left {
		// A whole part of the name: the hash in that of a set's revision may end with it.
		if strings.Contains(o, "/"+name+"-") || strings.Contains(o, "-"+name+"-") {
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

// moved has clusterctl itself move a Cluster to another management cluster with Cluster API, Flux and a hub, where the same set
// waits for it. The label moves along.
func (f *capiFleet) moved(t *testing.T) {
	ctx := t.Context()
	other := startHub(t, hubOptions{name: "hub-capi-target", flux: &localfleet.FluxOptions{}, origins: true, noHub: true, args: []string{"--probe-interval=2s"}})
	to, err := other.StartClusterAPI(ctx)
	check(t, err)
	other.start(t)
	apply(t, other.Client, f.set("plain", "black"))
	to.Serve("c1", "c1", f.one)
	untouched := f.untouched(t, f.one)
	f.guard(t, "c1") // which clusterctl passes
	check(t, f.api.Move(ctx, "c1", to))
	soon(t, "the hub orphans it", func() error { return f.orphaned(ctx, "plain", "c1") })
	untouched()
	if err := wantGone(ctx, f.Client, capiClusterOf("c1")); err != nil {
		t.Error(err)
	}
	soon(t, "the other hub takes it over", func() error { return f.delivered(ctx, f.one, "c1", "black") })
	soon(t, "its registration is Ready", func() error {
		return condition(ctx, other.Client, registration("c1", "c1"), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason)
	})
	soon(t, "which does not guard it", func() error {
		u := capiClusterOf("c1")
		err := other.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
		if label := u.GetLabels()[hubv1.DrainBeforeDeletionLabel]; err == nil && label != "" {
			err = fmt.Errorf("the label that came along is %q", label)
		}
		return err
	})
	check(t, wantGone(ctx, f.Client, registration("c1", "c1")))
	untouched()
}

// unregister begins to unregister a Cluster by the command line.
func (f *capiFleet) unregister(t *testing.T) {
	f.theirs = f.ofClusterAPI(t)
	f.leaving = chandlerStart(t, "unregister", "c3/c3", "--yes", "--kubeconfig", f.KubeconfigFile())
}

// ofClusterAPI is what the command must leave as it is.
func (f *capiFleet) ofClusterAPI(t *testing.T) string {
	t.Helper()
	tenant := capiObject("kamaji.clastix.io/v1alpha1", "TenantControlPlane", "c3")
	tenant.SetName("c3-kcp")
	var b strings.Builder
	for _, o := range []*unstructured.Unstructured{capiClusterOf("c3"), tenant} {
		check(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		fmt.Fprint(&b, o.GetUID(), o.GetGeneration(), o.GetAnnotations(), o.GetFinalizers(), o.Object["spec"])
	}
	s := secret("c3", "c3-kubeconfig", nil)
	check(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	return b.String() + fmt.Sprint(s.UID, s.Labels) + string(s.Data["value"])
}

// unregistered: the command has taken the add-ons off, and has changed nothing of Cluster API's but the label. The tenant that is
// labelled too, as its provider does, is not registered in its place.
func (f *capiFleet) unregistered(t *testing.T) {
	ctx := t.Context()
	if out := f.leaving.ends(t, 0); strings.Contains(out, "Secret") {
		t.Errorf("it says\n%s", out)
	}
	check(t, f.undelivered(ctx, f.tenant))
	if f.ofClusterAPI(t) != f.theirs {
		t.Error("it has changed what is Cluster API's")
	}
	list := &hubv1.ClusterRegistrationList{}
	check(t, f.Client.List(ctx, list, client.InNamespace("c3")))
	if len(list.Items) > 0 {
		t.Errorf("there is a ClusterRegistration: %+v", list.Items[0].Spec)
	}
	f.register(t, "c3")
	soon(t, "the add-ons are back", func() error { return errors.Join(f.delivered(ctx, f.tenant, "c3", f.color), f.ready(ctx, "c3")) })
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
	soon(t, "the hub orphans it", func() error { return f.orphaned(ctx, "plain", "c3") })
	soon(t, "the Secret is gone before the Cluster", func() error { return f.wantHalfGone(ctx, "c3") })
	if err := wantGone(ctx, f.Client, registration("c3", "c3")); err != nil {
		t.Error(err) // nothing registers it again
	}
	release()
	untouched()
}

// onOne gives the first workload cluster to a new Cluster, as somebody writes it who has not heard of v1beta2.
func (f *capiFleet) onOne(t *testing.T, name string) {
	t.Helper()
	f.api.Serve(name, name, f.one)
	f.create(t, name, strings.NewReplacer(
		"cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {", "cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {",
		"Ref: {apiGroup: infrastructure.cluster.x-k8s.io,", "Ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2,",
		"Ref: {apiGroup: controlplane.cluster.x-k8s.io,", "Ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2,",
		"labels: {", "labels: {chandler.dev/register: 'true', ",
	).Replace(plainCluster))
	soon(t, "the add-ons arrive", func() error { return f.delivered(t.Context(), f.one, name, f.color) })
	soon(t, "the registration is Ready", func() error { return f.ready(t.Context(), name) })
}

// deletedUnseen has a hub start in the very moment in which the Secret is gone, and the Cluster is not.
func (f *capiFleet) deletedUnseen(t *testing.T) {
	ctx := t.Context()
	f.onOne(t, "c4")
	untouched, release := f.untouched(t, f.one), f.hold(t, "c4")
	f.stop()
	check(t, deleted(capiClusterOf("c4"))(ctx, f.Client))
	soon(t, "the Secret is gone, and the Cluster is not", func() error { return f.wantHalfGone(ctx, "c4") })
	f.start(t)
	soon(t, "the hub orphans it", func() error { return f.orphaned(ctx, "plain", "c4") })
	check(t, f.wantHalfGone(ctx, "c4"))
	release()
	untouched()
}

// namespaceDeleted deletes everything at once, but for what has a finalizer: Cluster API still goes its way.
func (f *capiFleet) namespaceDeleted(t *testing.T) {
	ctx := t.Context()
	f.onOne(t, "c5")
	untouched := f.untouched(t, f.one)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c5"}}
	check(t, f.Client.Delete(ctx, ns))
	soon(t, "the hub orphans it", func() error { return f.orphaned(ctx, "plain", "c5") })
	soon(t, "the namespace is gone", func() error { return wantGone(ctx, f.Client, ns) })
	untouched()
}

// guard has the deletion of a Cluster denied until it is drained.
func (f *capiFleet) guard(t *testing.T, name string) {
	t.Helper()
	apply(t, f.Client, fmt.Sprintf("{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: %[1]s, namespace: %[1]s}, spec: {drainBeforeDeletion: {}}}", name))
	soon(t, "the deletion is denied", func() error {
		err := f.Client.Delete(t.Context(), capiClusterOf(name), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), hubv1.DrainAnnotation) {
			return fmt.Errorf("whoever deletes it is told %v", err)
		}
		return nil
	})
}

// drained asks for a drain of a Cluster with a topology, and then has Cluster API delete it.
func (f *capiFleet) drained(t *testing.T) {
	ctx := t.Context()
	cluster := capiClusterOf("c2")
	f.guard(t, "c2")
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
