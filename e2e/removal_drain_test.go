// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const drainSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: drain, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {env: drain}}
  rollout: {strategy: AllAtOnce}
  addons:
    - {name: drn-first, manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: drn-first}, data: {a: b}}]}}
    - {name: drn-second, dependsOn: [{name: drn-first}], manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: drn-second}, data: {a: b}}]}}
`

// drained is a hub under the policies, with a tenant and a Cluster that must be drained before they are deleted.
type drained struct {
	*guarded
	tenant, cluster *unstructured.Unstructured
	mortal          *localfleet.Cluster // behind the Cluster
}

// TestDrainBeforeDeletion deletes clusters whose add-ons must be uninstalled first: it is denied, it is asked for, it is done, and it
// is not, because nobody answers.
func TestDrainBeforeDeletion(t *testing.T) {
	beside(t)
	d := startDrained(t)
	step(t, "the deletion is denied", d.denied)
	step(t, "a mark is not to be forged", d.forged)
	step(t, "who insists, moves the cluster or breaks the glass is let through", d.letThrough)
	step(t, "it is drained, and called off", d.calledOff)
	step(t, "it is drained, and deleted", d.deleted)
	step(t, "it does not answer, and is deleted all the same", d.timedOut)
	step(t, "its namespace goes", d.namespaceGoes)
}

func startDrained(t *testing.T) *drained {
	ctx := t.Context()
	d := &drained{guarded: &guarded{one: workload(t, "workload-a")}}
	mortal, err := localfleet.StartCluster(ctx, localfleet.ClusterOptions{Name: "drained", Dir: workDir, Scheme: scheme})
	check(t, err)
	t.Cleanup(func() { _ = mortal.Stop() })
	d.mortal = mortal
	d.hub = startHub(t, hubOptions{name: "hub-drain", origins: true, noHub: true, args: []string{"--probe-interval=1s", "--removal-delay=1s"}})
	d.jane, d.itself = d.client(t, "jane"), d.client(t, hubUser)
	d.install(t)
	d.controllerManager(t)
	check(t, d.StartFlux(ctx, localfleet.FluxOptions{}))
	d.start(t)

	namespace(t, d.jane, "tenants")
	kubeconfig := kubeconfigOf(t, d.one)
	labels := map[string]string{hubv1.RegisterLabel: "true", "env": "drain"}
	check(t, localfleet.Tenant(ctx, d.jane, "tenants", "tenant1", labels, kubeconfig))
	kubeconfig = kubeconfigOf(t, mortal)
	check(t, localfleet.CAPICluster(ctx, d.jane, "tenants", "capi1", labels, kubeconfig))
	d.tenant, d.cluster = d.origin("kamaji.clastix.io/v1alpha1", "TenantControlPlane", "tenants", "tenant1"), d.origin("cluster.x-k8s.io/v1beta2", "Cluster", "tenants", "capi1")
	for _, o := range []*unstructured.Unstructured{d.tenant, d.cluster} { // as their own controllers do
		check(t, patched(o, `{"metadata":{"finalizers":["chandler.dev/of-its-controller"]}}`)(ctx, d.jane))
	}
	apply(t, d.jane, drainSet)
	soon(t, "the add-ons arrive", func() error { return errors.Join(d.delivered(ctx, d.one), d.delivered(ctx, mortal)) })
	return d
}

func (d *drained) origin(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}}}
}

func (d *drained) delivered(ctx context.Context, c *localfleet.Cluster) error {
	return errors.Join(wantData(ctx, c, "default", "drn-first", "a", "b"), wantData(ctx, c, "default", "drn-second", "a", "b"))
}

func (d *drained) gone(ctx context.Context, c *localfleet.Cluster) error {
	return errors.Join(wantNoConfigMap(ctx, c, "default", "drn-first"), wantNoConfigMap(ctx, c, "default", "drn-second"))
}

// annotate writes an annotation of an origin as jane does, or takes it off with null.
func (d *drained) annotate(t *testing.T, origin *unstructured.Unstructured, key, value string) {
	t.Helper()
	check(t, patched(origin, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value))(t.Context(), d.jane))
}

// marked wants an origin to have its two marks, or not.
func (d *drained) marked(ctx context.Context, origin *unstructured.Unstructured, guarded, drained string) error {
	u := origin.DeepCopy()
	if err := d.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return err
	}
	if l, a := u.GetLabels()[hubv1.DrainBeforeDeletionLabel], u.GetAnnotations()[hubv1.DrainedAnnotation]; l != guarded || a != drained {
		return fmt.Errorf("%s %s is guarded %q and drained %q, want %q and %q", u.GetKind(), u.GetName(), l, a, guarded, drained)
	}
	return nil
}

// wantDenied wants jane to be told something when she deletes an origin.
func (d *drained) wantDenied(t *testing.T, origin *unstructured.Unstructured, texts ...string) {
	t.Helper()
	err := deleted(origin)(t.Context(), d.jane)
	if !apierrors.IsForbidden(err) || !namesObject.MatchString(err.Error()) {
		t.Fatalf("jane is told %v", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("jane is told %v, want %q", err, text)
		}
	}
}

func (d *drained) denied(t *testing.T) {
	ctx := t.Context()
	check(t, deleted(d.tenant)(ctx, client.NewDryRunClient(d.jane))) // nobody asked for anything else yet
	apply(t, d.jane, `
apiVersion: chandler.dev/v1alpha1
kind: ClusterRegistration
metadata: {name: tenant1, namespace: tenants}
spec: {drainBeforeDeletion: {}}
---
apiVersion: chandler.dev/v1alpha1
kind: ClusterRegistration
metadata: {name: capi1, namespace: tenants}
spec: {drainBeforeDeletion: {timeout: 1h}}
`)
	for _, o := range []*unstructured.Unstructured{d.tenant, d.cluster} {
		soon(t, "the hub marks it", func() error { return d.marked(ctx, o, "true", "") })
	}
	d.wantDenied(t, d.tenant, "kubectl -n tenants annotate tenantcontrolplanes.kamaji.clastix.io tenant1 chandler.dev/drain=true, wait until it has annotation chandler.dev/drained=true",
		"To delete it at once, and leave all that, annotate it chandler.dev/force-deletion=true")
	d.wantDenied(t, d.cluster, "annotate clusters.cluster.x-k8s.io capi1 chandler.dev/drain=true")
	soon(t, "the policy has been looked at", func() error {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		check(t, d.Client.Get(ctx, client.ObjectKey{Name: "chandler-origins"}, policy))
		if policy.Status.TypeChecking == nil {
			return errors.New("it has not been type-checked")
		}
		for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s", w.FieldRef, w.Warning)
		}
		return nil
	})
	if err := d.jane.Patch(ctx, registration("tenants", "tenant1"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"drainBeforeDeletion":{"timeout":"soon"}}}`))); !apierrors.IsInvalid(err) {
		t.Errorf("a timeout that is none: %v", err)
	}
}

func (d *drained) forged(t *testing.T) {
	ctx := t.Context()
	for name, patch := range map[string]string{
		"the mark alone":         `{"metadata":{"annotations":{"chandler.dev/drain":"true","chandler.dev/drained":"true"}}}`,
		"and the label off":      `{"metadata":{"labels":{"chandler.dev/drain-before-deletion":null},"annotations":{"chandler.dev/drained":"true"}}}`,
		"a mark of another kind": `{"metadata":{"annotations":{"chandler.dev/drained":"yes"}}}`,
	} {
		if err := patched(d.tenant, patch)(ctx, d.jane); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "TenantControlPlane tenants/tenant1 is marked chandler.dev/drained by the hub") {
			t.Errorf("%s: jane is told %v", name, err)
		}
	}
	check(t, patched(d.tenant, `{"metadata":{"labels":{"chandler.dev/drain-before-deletion":null,"team":"blue"}}}`)(ctx, d.jane))
	soon(t, "the hub puts its label back", func() error { return d.marked(ctx, d.tenant, "true", "") })

	kubeconfig, err := d.Kubeconfig("someone") // of the hub itself: nothing is ever delivered there
	check(t, err)
	check(t, localfleet.Tenant(ctx, d.jane, "tenants", "restored", map[string]string{hubv1.DrainBeforeDeletionLabel: "true", hubv1.RegisterLabel: "true"}, kubeconfig))
	restored := d.origin("kamaji.clastix.io/v1alpha1", "TenantControlPlane", "tenants", "restored")
	soon(t, "marks that came with a backup go", func() error { return d.marked(ctx, restored, "", "") })
	apply(t, d.jane, `{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: restored, namespace: tenants}, spec: {drainBeforeDeletion: {}}}`)
	soon(t, "and are there when they are to be", func() error { return d.marked(ctx, restored, "true", "") })
	check(t, patched(restored, fmt.Sprintf(`{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))(ctx, d.jane))
	soon(t, "who is no business of the hub any more has no marks of it", func() error {
		return errors.Join(wantGone(ctx, d.Client, registration("tenants", "restored")), d.marked(ctx, restored, "", ""))
	})
	check(t, deleted(restored)(ctx, d.jane))

	// One that is not registered is nothing to the hub, and keeps the marks that it came with.
	check(t, localfleet.Tenant(ctx, d.jane, "tenants", "stray", map[string]string{hubv1.DrainBeforeDeletionLabel: "true"}, kubeconfig))
	stray := d.origin("kamaji.clastix.io/v1alpha1", "TenantControlPlane", "tenants", "stray")
	check(t, patched(stray, `{"metadata":{"annotations":{"chandler.dev/drained":"true"}}}`)(ctx, d.itself))
	d.wantDenied(t, stray, "They must be uninstalled first") // a mark that nobody asked for opens nothing
	d.annotate(t, stray, hubv1.DrainAnnotation, `"true"`)
	check(t, deleted(stray)(ctx, d.jane))
}

func (d *drained) letThrough(t *testing.T) {
	ctx := t.Context()
	d.annotate(t, d.cluster, hubv1.ForceDeletionAnnotation, `"true"`)
	check(t, deleted(d.cluster)(ctx, client.NewDryRunClient(d.jane)))
	d.annotate(t, d.cluster, hubv1.ForceDeletionAnnotation, "null")
	// One that is not registered: to the hub, a cluster that moves is gone with the annotation alone.
	check(t, localfleet.CAPICluster(ctx, d.jane, "tenants", "moving", map[string]string{hubv1.DrainBeforeDeletionLabel: "true"}, nil))
	moving := d.origin("cluster.x-k8s.io/v1beta2", "Cluster", "tenants", "moving")
	d.wantDenied(t, moving, "They must be uninstalled first")
	d.annotate(t, moving, "clusterctl.cluster.x-k8s.io/delete-for-move", `""`)
	check(t, deleted(moving)(ctx, d.jane))
	d.annotate(t, d.cluster, hubv1.ForceDeletionAnnotation, `"false"`)
	d.wantDenied(t, d.cluster, "They must be uninstalled first")
	glass := d.client(t, "jane", func(c *rest.Config) {
		c.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:masters", breakGlass}}
	})
	check(t, deleted(d.cluster)(ctx, client.NewDryRunClient(glass)))
}

func (d *drained) calledOff(t *testing.T) {
	ctx := t.Context()
	d.annotate(t, d.tenant, hubv1.DrainAnnotation, `"true"`)
	soon(t, "the hub marks it", func() error { return d.marked(ctx, d.tenant, "true", "true") })
	check(t, d.gone(ctx, d.one)) // not a moment later
	reg := registration("tenants", "tenant1")
	soon(t, "and says so", func() error {
		return errors.Join(condition(ctx, d.Client, reg, hubv1.DrainingCondition, metav1.ConditionTrue, hubv1.DrainedReason),
			condition(ctx, d.Client, reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.DrainedReason), wantEvent(ctx, d.hub, "tenant1", "no add-on is left"))
	})
	soon(t, "nobody who waits for the set waits for it", func() error {
		set := addonSet("flux-system", "drain")
		if err := condition(ctx, d.Client, set, hubv1.ReadyCondition, metav1.ConditionTrue, ""); err != nil {
			return err
		}
		if n := set.Status.Clusters.Matched; n != 1 {
			return fmt.Errorf("%d clusters are matched, and one is drained", n)
		}
		return nil
	})
	check(t, d.delivered(ctx, d.mortal))
	check(t, deleted(d.tenant)(ctx, client.NewDryRunClient(d.jane)))

	d.annotate(t, d.tenant, hubv1.DrainAnnotation, "null")
	soon(t, "the add-ons come back", func() error { return d.delivered(ctx, d.one) })
	check(t, d.marked(ctx, d.tenant, "true", ""))
	soon(t, "and all is as it was", func() error {
		return condition(ctx, d.Client, reg, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason)
	})
	d.wantDenied(t, d.tenant, "They must be uninstalled first")
}

func (d *drained) deleted(t *testing.T) {
	ctx := t.Context()
	apply(t, d.jane, strings.ReplaceAll(drainSet, "[{name: drn-first}]", "[{name: nowhere}]"))
	soon(t, "the set does not compile, and its clusters keep what they have", func() error {
		return condition(ctx, d.Client, addonSet("flux-system", "drain"), hubv1.StalledCondition, metav1.ConditionTrue, "")
	})
	d.annotate(t, d.tenant, hubv1.DrainAnnotation, `"true"`)
	soon(t, "it is deleted as soon as it may be", func() error { return deleted(d.tenant)(ctx, d.jane) })
	check(t, d.gone(ctx, d.one))
	soon(t, "and unregistered", func() error { return wantGone(ctx, d.Client, registration("tenants", "tenant1")) })
	check(t, deleted(d.tenant)(ctx, d.jane)) // once more, for whoever waits
	check(t, patched(d.tenant, `{"metadata":{"finalizers":null}}`)(ctx, d.jane))
}

func (d *drained) timedOut(t *testing.T) {
	ctx := t.Context()
	reg := registration("tenants", "capi1")
	d.mortal.StopAPIServer()
	soon(t, "it does not answer", func() error {
		return condition(ctx, d.Client, reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.ClusterUnreachableReason)
	})
	d.annotate(t, d.cluster, hubv1.DrainAnnotation, `"true"`)
	d.wantDenied(t, d.cluster, "They are being uninstalled: wait until it has annotation chandler.dev/drained=true")
	soon(t, "it says what it waits for", func() error {
		if err := condition(ctx, d.Client, reg, hubv1.DrainingCondition, metav1.ConditionTrue, hubv1.DrainInProgressReason); err != nil {
			return err
		}
		if m := conditionOf(reg, hubv1.DrainingCondition).Message; !strings.Contains(m, "left: drain/drn-first, drain/drn-second") || !strings.Contains(m, "it waits: the cluster has not answered") {
			return errors.New(m)
		}
		return nil
	})
	// What it says while it waits has been seen, however long that took; now it has waited long enough.
	check(t, d.jane.Patch(ctx, registration("tenants", "capi1"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"drainBeforeDeletion":{"timeout":"5s"}}}`))))
	soon(t, "the hub marks it all the same", func() error { return d.marked(ctx, d.cluster, "true", "true") })
	soon(t, "and says what is left", func() error {
		return errors.Join(condition(ctx, d.Client, reg, hubv1.DrainingCondition, metav1.ConditionTrue, hubv1.DrainTimedOutReason),
			wantEvent(ctx, d.hub, "capi1", "not everything was uninstalled within 5s, and Cluster \"capi1\" may be deleted all the same; left: drain/drn-first, drain/drn-second"))
	})
	check(t, deleted(d.cluster)(ctx, d.jane))
	soon(t, "it is unregistered, and its add-ons are orphaned", func() error { return wantGone(ctx, d.Client, reg) })
	check(t, patched(d.cluster, `{"metadata":{"finalizers":null}}`)(ctx, d.jane))
}

func (d *drained) namespaceGoes(t *testing.T) {
	ctx := t.Context()
	namespace(t, d.jane, "going")
	kubeconfig := kubeconfigOf(t, d.one)
	check(t, localfleet.Tenant(ctx, d.jane, "going", "tenant2", map[string]string{hubv1.RegisterLabel: "true"}, kubeconfig))
	apply(t, d.jane, `{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: tenant2, namespace: going}, spec: {drainBeforeDeletion: {}}}`)
	tenant := d.origin("kamaji.clastix.io/v1alpha1", "TenantControlPlane", "going", "tenant2")
	soon(t, "the hub marks it", func() error { return d.marked(ctx, tenant, "true", "") })
	d.wantDenied(t, tenant, "They must be uninstalled first")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
	check(t, d.jane.Patch(ctx, ns, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, hubv1.ForceDeletionAnnotation))))
	check(t, d.jane.Delete(ctx, ns))
	soon(t, "the namespace is gone", func() error { return wantGone(ctx, d.Client, ns) })
}
