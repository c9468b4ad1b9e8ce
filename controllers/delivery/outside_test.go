// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
)

// TestHasKubeconfig: by the content alone a namespace has the cluster's kubeconfig. Everything else about a mirror anybody can write.
func TestHasKubeconfig(t *testing.T) {
	reg := registered(roomCluster, "c1")
	mirror := func(token string, change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{render.MirrorKey: roomKubeconfig(token)}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "was", Name: identity.Mirror("hub", roomCluster), Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", roomCluster)},
			Annotations: map[string]string{hubv1.FingerprintAnnotation: reg.Status.Credential.Fingerprint},
		}}
		if change != nil {
			change(s)
		}
		return s
	}
	unread := registered(roomCluster, "c1")
	unread.Status.Credential = nil
	byIdentity := registered(roomCluster, "c1")
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
			m := newRoom(t, tc.mirror)
			c := &cluster{key: roomCluster, registration: tc.reg}
			if got, err := m.r.hasKubeconfig(t.Context(), c, "was"); err != nil || got != tc.want {
				t.Errorf("it has it: %t (%v), want %t", got, err, tc.want)
			}
		})
	}
	m := newRoom(t, mirror("t0", nil))
	m.r.Live = interceptor.NewClient(m.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("overloaded")
	}})
	if _, err := m.r.hasKubeconfig(t.Context(), &cluster{key: roomCluster, registration: reg}, "was"); err == nil {
		t.Error("what could not be read is taken for not there")
	}
}
