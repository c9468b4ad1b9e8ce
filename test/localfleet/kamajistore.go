// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const (
	// dataStore is the name of the DataStore that tenants get when they name none.
	dataStore = "etcd"
	// storeRoot is the superuser of the store. etcd knows the user by the name in the certificate.
	storeRoot = "root"
)

// startStore starts the etcd that tenants keep their data in, each as a user of its own, and makes it known as a DataStore.
func (k *Kamaji) startStore(ctx context.Context) error {
	path, err := parts.Path(parts.Etcd)
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	// its HTTP API is a client of itself
	certificate, key, err := k.authority.issue(storeTemplate(parts.Etcd, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth))
	if err != nil {
		return err
	}
	rootCertificate, rootKey, err := k.authority.issue(storeTemplate(storeRoot, x509.ExtKeyUsageClientAuth))
	if err != nil {
		return err
	}
	root, err := tls.X509KeyPair(rootCertificate, rootKey)
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(k.dir, name) }
	if err := writeFiles(map[string][]byte{in("store-ca.crt"): k.authority.pem(), in("store.crt"): certificate,
		in("store.key"): key}); err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	client := k.authority.prober(root)
	if err := k.hub.run(ctx, command{
		name: "kamaji-etcd", path: path,
		args: []string{
			"--data-dir=" + in("etcd"), "--listen-client-urls=https://" + address, "--advertise-client-urls=https://" + address,
			"--client-cert-auth=true", "--trusted-ca-file=" + in("store-ca.crt"), "--cert-file=" + in("store.crt"), "--key-file=" + in("store.key"),
			"--listen-peer-urls=http://127.0.0.1:0", "--unsafe-no-fsync=true", "--log-level=warn",
		},
		ready: answers(client, "https://"+address+"/health"),
	}); err != nil {
		return err
	}
	if err := enableAuth(ctx, client, "https://"+address); err != nil {
		return err
	}
	return k.declareStore(ctx, address, rootCertificate, rootKey)
}

func storeTemplate(name string, usage ...x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLife),
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: usage,
	}
}

// enableAuth turns on authentication in etcd.
func enableAuth(ctx context.Context, client *http.Client, url string) error {
	for _, call := range [][2]string{
		{"user/add", `{"name":"` + storeRoot + `","options":{"no_password":true}}`},
		{"role/add", `{"name":"` + storeRoot + `"}`},
		{"user/grant", `{"user":"` + storeRoot + `","role":"` + storeRoot + `"}`},
		{"enable", "{}"},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/auth/"+call[0], strings.NewReader(call[1]))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("etcd answered %s to %s", resp.Status, call[0])
		}
	}
	return nil
}

// declareStore makes the DataStore. Kamaji wants it to be there when it starts.
func (k *Kamaji) declareStore(ctx context.Context, address string, certificate, key []byte) error {
	private, err := keyutil.MarshalPrivateKeyToPEM(k.authority.key)
	if err != nil {
		return err
	}
	for name, data := range map[string]map[string][]byte{
		"etcd-certs":        {"ca.crt": k.authority.pem(), "ca.key": private},
		"root-client-certs": {"tls.crt": certificate, "tls.key": key},
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: KamajiNamespace, Name: name}, Data: data}
		if err := k.hub.Client.Create(ctx, s); err != nil {
			return err
		}
	}
	ref := func(secret, file string) map[string]any {
		return map[string]any{"secretReference": map[string]any{"name": secret, "namespace": KamajiNamespace, "keyPath": file}}
	}
	u := newObject("kamaji.clastix.io/v1alpha1", "DataStore", "", dataStore, nil)
	u.Object["spec"] = map[string]any{
		"driver": "etcd", "endpoints": []any{address},
		"tlsConfig": map[string]any{
			"certificateAuthority": map[string]any{"certificate": ref("etcd-certs", "ca.crt"), "privateKey": ref("etcd-certs", "ca.key")},
			"clientCertificate": map[string]any{"certificate": ref("root-client-certs", "tls.crt"),
				"privateKey": ref("root-client-certs", "tls.key")},
		},
	}
	return k.hub.Client.Create(ctx, u)
}
