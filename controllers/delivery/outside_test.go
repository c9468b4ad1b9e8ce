// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
)

// TestOutsideIsReadOnce: whoever writes deliveries to clusters without number does not have the hub read a Secret whenever one of them is looked at.
func TestOutsideIsReadOnce(t *testing.T) {
	reg := registered(testCluster, "c1")
	copied := &corev1.Secret{Data: map[string][]byte{render.KubeconfigKey: testKubeconfig("forged")}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: identity.KubeconfigCopy("hub", testCluster), Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster)},
		Annotations: map[string]string{hubv1.FingerprintAnnotation: reg.Status.Credential.Fingerprint},
	}}
	set := addonsOf("his", "1", releaseAddon("app"))[0]
	set.SetNamespace("tenant")
	objects := []client.Object{reg, copied, set}
	for _, name := range []string{"his", "forged"} {
		d := deliveredTo(testCluster, "his", "1")
		d.Namespace, d.UID = "tenant", types.UID(name)
		if name == "forged" {
			d.Name = name
		}
		objects = append(objects, d)
	}
	m := newFixture(t, objects...)
	reads := 0
	m.r.Live = interceptor.NewClient(m.api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if _, ok := obj.(*corev1.Secret); ok {
			reads++
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	look := func(want int, when string) {
		t.Helper()
		reads = 0
		for range 3 {
			if _, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster}); err != nil {
				t.Fatal(err)
			}
		}
		if reads != want {
			t.Errorf("%s: read %d times, want %d", when, reads, want)
		}
	}
	look(1, "three times")
	edit(m, "tenant", copied.Name, copied, func(s *corev1.Secret) { s.Data[render.KubeconfigKey] = testKubeconfig("another") })
	look(1, "after a change")
	edit(m, testCluster.Namespace, testCluster.Name, reg, func(reg *hubv1.ClusterRegistration) { reg.Status.Credential.Fingerprint = "another" })
	look(0, "another one is looked for, and the copy does not say that it is that")
}
