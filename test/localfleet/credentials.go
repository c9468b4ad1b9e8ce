// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubeconfig returns a kubeconfig with a new client certificate for a user: one context, everything inline, as Kamaji and
// Cluster API write it.
func (c *Cluster) Kubeconfig(user string, groups ...string) ([]byte, error) {
	certificate, key, err := c.authority.user(user, groups)
	if err != nil {
		return nil, fmt.Errorf("add user %s to cluster %s: %w", user, c.Name, err)
	}
	return c.kubeconfig(user, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
}

func (c *Cluster) kubeconfig(user string, auth *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name] = &clientcmdapi.Cluster{Server: c.server, CertificateAuthorityData: c.authority.pem()}
	config.AuthInfos[user] = auth
	config.CurrentContext = user + "@" + c.Name
	config.Contexts[config.CurrentContext] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: user}
	return clientcmd.Write(*config)
}

// TokenKubeconfig returns a kubeconfig with a token of a new ServiceAccount that is cluster-admin. Revoke makes it useless,
// which a client certificate never is before it expires.
func (c *Cluster) TokenKubeconfig(ctx context.Context, account string) ([]byte, error) {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: account}}
	if err := c.Client.Create(ctx, sa); err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: sa.Namespace, Name: sa.Name}},
	}
	if err := c.Client.Create(ctx, binding); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](86400)}}
	if err := c.Client.SubResource("token").Create(ctx, sa, token); err != nil {
		return nil, err
	}
	return c.kubeconfig(account, &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// PodKubeconfig returns the kubeconfig of a pod: a token of its ServiceAccount that is valid for as long as the pod
// lives, as its kubelet would mount it, and no other right.
func (c *Cluster) PodKubeconfig(ctx context.Context, pod *corev1.Pod) ([]byte, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To[int64](3607),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if err := c.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, err
	}
	return c.kubeconfig(account.Name, &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// Server returns the URL of the API server, as a kubeconfig has it.
func (c *Cluster) Server() string { return c.server }

// ServingCertificate returns a certificate that clients of the cluster accept from a server on loopback between two moments.
func (c *Cluster) ServingCertificate(from, to time.Time) (tls.Certificate, error) {
	certificate, key, err := c.authority.server(from, to)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

// Revoke deletes a ServiceAccount that TokenKubeconfig made. The API server refuses its token ten seconds later, when it asks
// itself again.
func (c *Cluster) Revoke(ctx context.Context, account string) error {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: account}}
	return client.IgnoreNotFound(c.Client.Delete(ctx, sa))
}
