// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

var testCluster = types.NamespacedName{Namespace: "fleet", Name: "one"}

// reading returns a reader of an API server.
func reading(api client.Client) *Reader {
	return &Reader{Client: api, Live: api, Looks: &Looks{}, Config: &hubconfig.Config{
		Shared: hubconfig.Shared{HubID: "hub"}, Rules: kubeconfig.Rules{AllowMissingCA: true}}}
}

func testKubeconfig(token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.7:6443"}}]
users: [{name: u, user: {token: %s}}]
`, token)
}

// registered returns a registration whose cluster has answered, with the kubeconfig of token t0.
func registered(t *testing.T) *hubv1.ClusterRegistration {
	t.Helper()
	config, err := kubeconfig.Parse(testKubeconfig("t0"), kubeconfig.Rules{AllowMissingCA: true})
	if err != nil {
		t.Fatal(err)
	}
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: testCluster.Name}}
	reg.Status.Credential = &hubv1.CredentialStatus{SecretName: testCluster.Name, Key: "value", Fingerprint: config.Fingerprint()}
	return reg
}

// TestLookInto: by the content alone a namespace has the cluster's kubeconfig. Everything else about a kubeconfig copy anybody can write.
func TestLookInto(t *testing.T) {
	reg := registered(t)
	copied := func(token string, change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{flux.KubeconfigKey: testKubeconfig(token)}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "was", Name: identity.KubeconfigCopy("hub", testCluster), Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster)},
			Annotations: map[string]string{hubv1.FingerprintAnnotation: reg.Status.Credential.Fingerprint},
		}}
		if change != nil {
			change(s)
		}
		return s
	}
	unread := registered(t)
	unread.Status.Credential = nil
	byIdentity := registered(t)
	byIdentity.Status.Credential.WorkloadIdentity = "aws"
	for name, tc := range map[string]struct {
		reg    *hubv1.ClusterRegistration
		copied *corev1.Secret
		want   bool
	}{
		"it has":                        {reg, copied("t0", nil), true},
		"rotated since":                 {reg, copied("t-1", nil), false},
		"no kubeconfig":                 {reg, copied("", func(s *corev1.Secret) { s.Data = nil }), false},
		"no copy":                       {reg, copied("t0", func(s *corev1.Secret) { s.Name = "another" }), false},
		"not the hub's":                 {reg, copied("t0", func(s *corev1.Secret) { s.Labels = nil }), false},
		"of an older credential":        {reg, copied("t0", func(s *corev1.Secret) { s.Annotations = nil }), false},
		"by workload identity":          {byIdentity, copied("t0", nil), false},
		"nobody knows what it would be": {unread, copied("t0", nil), true},
		"not registered":                {nil, copied("t0", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(tc.copied).Build()
			c := &Cluster{Key: testCluster, Registration: tc.reg}
			if got, err := reading(api).lookInto(t.Context(), c, "was"); err != nil || got.Acts != tc.want {
				t.Errorf("it has it: %t (%v), want %t", got.Acts, err, tc.want)
			}
		})
	}
	r := reading(fake.NewClientBuilder().WithObjects(copied("t0", nil)).Build())
	r.Live = interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("overloaded")
	}})
	if _, err := r.lookInto(t.Context(), &Cluster{Key: testCluster, Registration: reg}, "was"); err == nil {
		t.Error("what could not be read is taken for not there")
	}
}
