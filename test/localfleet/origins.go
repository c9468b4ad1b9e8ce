// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Tenant makes a TenantControlPlane as Kamaji leaves it when it is Ready, with the Secret of its admin, for any cluster. It is for
// tests that need states into which the real Kamaji cannot be brought, or many tenants; see StartKamaji for that. The key admin.svc
// names the tenant's Service, which nothing on this machine resolves: the hub has to find out that admin.conf is the way.
func Tenant(ctx context.Context, c client.Client, namespace, name string, labels map[string]string, kubeconfig []byte) error {
	return tenant(ctx, c, namespace, name, labels, kubeconfig, nil)
}

var tenantKind = schema.GroupVersionKind{Group: "kamaji.clastix.io", Version: "v1alpha1", Kind: "TenantControlPlane"}

// tenant is Tenant with an owner, if there is one.
func tenant(ctx context.Context, c client.Client, namespace, name string, labels map[string]string, kubeconfig []byte,
	owner client.Object) error {
	secret := name + "-admin-kubeconfig"
	svc := strings.ReplaceAll(string(kubeconfig), "https://127.0.0.1", fmt.Sprintf("https://%s.%s.svc", name, namespace))
	if err := c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret, Labels: map[string]string{"kamaji.clastix.io/name": name}},
		Data:       map[string][]byte{"admin.conf": kubeconfig, "admin.svc": []byte(svc)},
	}); err != nil {
		return err
	}
	u := newObject(tenantKind.GroupVersion().String(), tenantKind.Kind, namespace, name, labels)
	if owner != nil {
		if err := controllerutil.SetControllerReference(owner, u, c.Scheme()); err != nil {
			return err
		}
	}
	u.Object["spec"] = map[string]any{
		"controlPlane": map[string]any{"deployment": map[string]any{"replicas": int64(1)}, "service": map[string]any{"serviceType": "ClusterIP"}},
		"kubernetes":   map[string]any{"version": "v1.30.2", "kubelet": map[string]any{"cgroupfs": "systemd"}},
		"addons":       map[string]any{},
	}
	return createWithStatus(ctx, c, u, TenantStatus(secret))
}

// TenantStatus is the status of a TenantControlPlane that is Ready.
func TenantStatus(secret string) map[string]any {
	return map[string]any{
		"kubeconfig":          map[string]any{"admin": map[string]any{"secretName": secret}},
		"kubernetesResources": map[string]any{"version": map[string]any{"status": "Ready", "version": "v1.30.2"}},
	}
}

// CAPICluster makes a Cluster as Cluster API leaves it when its control plane is initialized, with its kubeconfig Secret. It is for
// fleets in which Cluster API does not run, and for states in which it would not leave one; StartClusterAPI is the real thing.
func CAPICluster(ctx context.Context, c client.Client, namespace, name string, labels map[string]string, kubeconfig []byte) error {
	if err := c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig",
			Labels: map[string]string{"cluster.x-k8s.io/cluster-name": name}},
		Type: "cluster.x-k8s.io/secret",
		Data: map[string][]byte{"value": kubeconfig},
	}); err != nil {
		return err
	}
	u := newObject("cluster.x-k8s.io/v1beta2", "Cluster", namespace, name, labels)
	u.Object["spec"] = map[string]any{
		"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)},
		"infrastructureRef":    map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerCluster", "name": name},
	}
	return createWithStatus(ctx, c, u, map[string]any{
		"initialization": map[string]any{"controlPlaneInitialized": true}, "phase": "Provisioned",
	})
}

func newObject(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func createWithStatus(ctx context.Context, c client.Client, u *unstructured.Unstructured, status map[string]any) error {
	if err := c.Create(ctx, u); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // the hub may have marked it meanwhile
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		u.Object["status"] = status
		return c.Status().Update(ctx, u)
	})
}
