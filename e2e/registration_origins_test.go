// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// TestOrigins follows origins as they come, change and go, on a hub that starts before Kamaji and Cluster API are installed.
func TestOrigins(t *testing.T) {
	beside(t)
	ctx := t.Context()
	h := startHub(t, hubOptions{name: "hub-origins", args: []string{"--deselection-delay=1h", "--secret-namespaces=allowed"}})
	for _, ns := range []string{"tenants", "allowed"} {
		namespace(t, h.Client, ns)
	}
	kubeconfig, err := h.Kubeconfig("someone", "system:masters") // of the hub itself: nothing is ever delivered here
	check(t, err)

	crds, err := localfleet.CRDs(parts.Kamaji, parts.ClusterAPI)
	check(t, err)
	installCRDs(t, h, crds...)
	labels := map[string]string{
		hubv1.RegisterLabel: "true", "env": "test", "kustomize.toolkit.fluxcd.io/name": "x", "argocd.argoproj.io/instance": "x", "app.kubernetes.io/managed-by": "x",
	}
	check(t, localfleet.Tenant(ctx, h.Client, "tenants", "late", labels, kubeconfig))
	reg := registration("tenants", "late")
	soon(t, "a CRD that appears later is picked up without a restart", func() error { return h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg) })

	t.Run("labels are copied, marks of ownership are not", func(t *testing.T) {
		h.labelTenant(t, "late", "region", "eu")
		soon(t, "the new label is copied", func() error { return wantLabels(ctx, h, "late", map[string]string{"region": "eu", "env": "test"}) })
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
		for k := range reg.Labels {
			if strings.Contains(k, "fluxcd") || strings.Contains(k, "argocd") || strings.Contains(k, "managed-by") || k == hubv1.RegisterLabel {
				t.Errorf("label %s was copied", k)
			}
		}
		h.labelTenant(t, "late", "region", "")
		soon(t, "the removed label is removed", func() error { return wantLabels(ctx, h, "late", map[string]string{"region": "", "env": "test"}) })
	})
	t.Run("a label that somebody owns on the registration stays theirs", func(t *testing.T) {
		apply(t, h.Client, "{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: late, namespace: tenants, labels: {owner: me}}, spec: {}}")
		h.labelTenant(t, "late", "owner", "them")
		h.labelTenant(t, "late", "zone", "a")
		soon(t, "the others go on", func() error { return wantLabels(ctx, h, "late", map[string]string{"owner": "me", "zone": "a"}) })
	})
	t.Run("a dropped label is waited for, and false is not", func(t *testing.T) {
		h.labelTenant(t, "late", hubv1.RegisterLabel, "")
		soon(t, "it says that it will be unregistered", func() error {
			return condition(ctx, h.Client, reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.LabelRemovedReason)
		})
		h.labelTenant(t, "late", hubv1.RegisterLabel, "true")
		soon(t, "it says so no more", func() error {
			if err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
				return err
			}
			if conditionOf(reg, hubv1.UnregisteringCondition).Type != "" {
				return fmt.Errorf("condition Unregistering is still there")
			}
			return nil
		})
	})
	t.Run("a registration deleted by hand is made again", func(t *testing.T) {
		uid := reg.UID
		check(t, h.Client.Delete(ctx, registration("tenants", "late")))
		soon(t, "it is made again", func() error {
			if err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
				return err
			}
			if reg.UID == uid {
				return fmt.Errorf("the old one is still there")
			}
			return nil
		})
	})
	t.Run("the hub itself is refused", func(t *testing.T) {
		soon(t, "the kubeconfig of the hub is refused", func() error {
			if err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
				return err
			}
			c := conditionOf(reg, hubv1.ReadyCondition)
			if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "own API server") {
				return fmt.Errorf("Ready is %s (%s: %s)", c.Status, c.Reason, c.Message)
			}
			return nil
		})
	})
	t.Run("a tenant of Cluster API is registered once", func(t *testing.T) {
		check(t, localfleet.CAPICluster(ctx, h.Client, "tenants", "c1", map[string]string{hubv1.RegisterLabel: "true"}, kubeconfig))
		check(t, localfleet.Tenant(ctx, h.Client, "tenants", "c1-kcp", map[string]string{hubv1.RegisterLabel: "true", "cluster.x-k8s.io/cluster-name": "c1"}, kubeconfig))
		soon(t, "the Cluster is registered", func() error {
			return h.Client.Get(ctx, client.ObjectKey{Namespace: "tenants", Name: "c1"}, registration("", ""))
		})
		soon(t, "the tenant says why it is not", func() error { return wantEvent(ctx, h, "c1-kcp", "belongs to Cluster") })
		if err := h.Client.Get(ctx, client.ObjectKey{Namespace: "tenants", Name: "c1-kcp"}, registration("", "")); !apierrors.IsNotFound(err) {
			t.Errorf("the tenant is registered as well: %v", err)
		}
	})
	t.Run("Secrets register where the platform allows it, and names are shared", func(t *testing.T) {
		for _, ns := range []string{"tenants", "allowed"} {
			s := secret(ns, "s1", map[string][]byte{"value": kubeconfig})
			s.Labels = map[string]string{hubv1.RegisterLabel: "true"}
			check(t, h.Client.Create(ctx, s))
		}
		soon(t, "the one is registered", func() error {
			return h.Client.Get(ctx, client.ObjectKey{Namespace: "allowed", Name: "s1"}, registration("", ""))
		})
		soon(t, "the other says why it is not", func() error { return wantEvent(ctx, h, "s1", "may not register clusters; label ") })
		check(t, localfleet.Tenant(ctx, h.Client, "allowed", "s1", map[string]string{hubv1.RegisterLabel: "true"}, kubeconfig))
		soon(t, "the later origin of a name gets another", func() error {
			r := registration("allowed", "s1-tenantcontrolplane")
			if err := h.Client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
				return err
			}
			if r.Spec.OriginRef.Kind != "TenantControlPlane" {
				return fmt.Errorf("its origin is %+v", r.Spec.OriginRef)
			}
			return nil
		})
	})
	t.Run("a CRD that goes removes nothing", func(t *testing.T) {
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
		uid := reg.UID
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tenantcontrolplanes.kamaji.clastix.io"}}
		check(t, h.Client.Delete(ctx, crd))
		soon(t, "the registration says that it cannot look", func() error {
			return condition(ctx, h.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.OriginKindNotInstalledReason)
		})
		if reg.UID != uid || reg.DeletionTimestamp != nil {
			t.Errorf("the registration was removed")
		}
	})
	t.Run("false unregisters at once", func(t *testing.T) {
		check(t, h.Client.Patch(ctx, secret("allowed", "s1", nil), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))))
		soon(t, "it is gone, and the delay is an hour", func() error { return wantGone(ctx, h.Client, registration("allowed", "s1")) })
	})
}

// TestRegisterAll registers tenants without the label, but for one that says no.
func TestRegisterAll(t *testing.T) {
	beside(t)
	ctx := t.Context()
	h := startHub(t, hubOptions{name: "hub-all", origins: true, args: []string{"--register-all=kamaji"}})
	namespace(t, h.Client, "tenants")
	kubeconfig, err := h.Kubeconfig("someone")
	check(t, err)
	check(t, localfleet.Tenant(ctx, h.Client, "tenants", "out", map[string]string{hubv1.RegisterLabel: "false"}, kubeconfig))
	check(t, localfleet.CAPICluster(ctx, h.Client, "tenants", "other", nil, kubeconfig))
	check(t, localfleet.Tenant(ctx, h.Client, "tenants", "in", nil, kubeconfig))
	soon(t, "a tenant is registered without the label", func() error {
		return h.Client.Get(ctx, client.ObjectKey{Namespace: "tenants", Name: "in"}, registration("", ""))
	})
	for _, name := range []string{"out", "other"} {
		if err := h.Client.Get(ctx, client.ObjectKey{Namespace: "tenants", Name: name}, registration("", "")); !apierrors.IsNotFound(err) {
			t.Errorf("%s is registered: %v", name, err)
		}
	}
}

func (h *hub) labelTenant(t *testing.T, name, key, value string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("kamaji.clastix.io/v1alpha1")
	u.SetKind("TenantControlPlane")
	u.SetNamespace("tenants")
	u.SetName(name)
	v := "null"
	if value != "" {
		v = fmt.Sprintf("%q", value)
	}
	check(t, h.Client.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, v))))
}
