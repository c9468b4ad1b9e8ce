// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
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

// TestLookInto: by the content alone a namespace has the cluster's kubeconfig. Everything else about a mirror anybody can write.
func TestLookInto(t *testing.T) {
	reg := registered(testCluster, "c1")
	mirror := func(token string, change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{render.MirrorKey: testKubeconfig(token)}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "was", Name: identity.Mirror("hub", testCluster), Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster)},
			Annotations: map[string]string{hubv1.FingerprintAnnotation: reg.Status.Credential.Fingerprint},
		}}
		if change != nil {
			change(s)
		}
		return s
	}
	unread := registered(testCluster, "c1")
	unread.Status.Credential = nil
	byIdentity := registered(testCluster, "c1")
	byIdentity.Status.Credential.WorkloadIdentity = "aws"
	for name, tc := range map[string]struct {
		reg    *hubv1.ClusterRegistration
		mirror *corev1.Secret
		want   bool
	}{
		"it has":                        {reg, mirror("t0", nil), true},
		"rotated since":                 {reg, mirror("t-1", nil), false},
		"no kubeconfig":                 {reg, mirror("", func(s *corev1.Secret) { s.Data = nil }), false},
		"no mirror":                     {reg, mirror("t0", func(s *corev1.Secret) { s.Name = "another" }), false},
		"not the hub's":                 {reg, mirror("t0", func(s *corev1.Secret) { s.Labels = nil }), false},
		"of an older credential":        {reg, mirror("t0", func(s *corev1.Secret) { s.Annotations = nil }), false},
		"by workload identity":          {byIdentity, mirror("t0", nil), false},
		"nobody knows what it would be": {unread, mirror("t0", nil), true},
		"not registered":                {nil, mirror("t0", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, tc.mirror)
			c := &cluster{key: testCluster, registration: tc.reg}
			if got, err := m.r.lookInto(t.Context(), c, "was"); err != nil || got.acts != tc.want {
				t.Errorf("it has it: %t (%v), want %t", got.acts, err, tc.want)
			}
		})
	}
	m := newFixture(t, mirror("t0", nil))
	m.r.Live = interceptor.NewClient(m.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("overloaded")
	}})
	if _, err := m.r.lookInto(t.Context(), &cluster{key: testCluster, registration: reg}, "was"); err == nil {
		t.Error("what could not be read is taken for not there")
	}
}

// TestOutsideIsReadOnce: whoever writes deliveries to clusters without number does not have the hub read a Secret whenever one of them is looked at.
func TestOutsideIsReadOnce(t *testing.T) {
	reg := registered(testCluster, "c1")
	mirror := &corev1.Secret{Data: map[string][]byte{render.MirrorKey: testKubeconfig("forged")}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: identity.Mirror("hub", testCluster), Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster)},
		Annotations: map[string]string{hubv1.FingerprintAnnotation: reg.Status.Credential.Fingerprint},
	}}
	set := addonsOf("his", "1", releaseAddon("app"))[0]
	set.SetNamespace("tenant")
	objects := []client.Object{reg, mirror, set}
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
	edit(m, "tenant", mirror.Name, mirror, func(s *corev1.Secret) { s.Data[render.MirrorKey] = testKubeconfig("another") })
	look(1, "after a change")
	edit(m, testCluster.Namespace, testCluster.Name, reg, func(reg *hubv1.ClusterRegistration) { reg.Status.Credential.Fingerprint = "another" })
	look(0, "another one is looked for, and the mirror does not say that it is that")
}
