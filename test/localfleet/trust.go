// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"encoding/json"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IssuerPrefix tells the ServiceAccounts of a trusted cluster from a cluster's own.
const IssuerPrefix = "hub:"

// Audience returns the audience of tokens that a cluster which trusts another accepts: its address, which is Flux's
// default.
func (c *Cluster) Audience() string { return c.server }

// Authority returns the certificate that the API server's is issued by, in PEM.
func (c *Cluster) Authority() string { return string(c.authority.pem()) }

// trust writes the configuration by which the API server accepts tokens of another cluster, and returns the flag for it.
func (c *Cluster) trust(issuer *Cluster) (string, error) {
	config := map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer":        map[string]any{"url": issuer.server, "audiences": []string{c.server}, "certificateAuthority": issuer.Authority()},
			"claimMappings": map[string]any{"username": map[string]any{"claim": "sub", "prefix": IssuerPrefix}},
		}},
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, "authentication.json")
	return "--authentication-config=" + path, writeFiles(map[string][]byte{path: raw})
}

// ShowIssuer lets everybody read the keys that sign the tokens of the cluster's ServiceAccounts. A cluster that
// others trust must do that.
func (c *Cluster) ShowIssuer(ctx context.Context) error {
	return client.IgnoreAlreadyExists(c.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "issuer-discovery"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:service-account-issuer-discovery"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
	}))
}
