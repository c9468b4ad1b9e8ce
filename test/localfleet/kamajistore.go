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
	// The Secrets have the names that Kamaji's chart gives them.
	storeAuthority, storeClient = "etcd-certs", "root-client-certs"
)

// KamajiKeys are what Kamaji's webhooks and its store are trusted by.
type KamajiKeys struct {
	authority *authority
	root      tls.Certificate // of the store's superuser
	// certificate and key of root, in PEM.
	certificate, key []byte
}

// NewKamajiKeys makes an authority, and the credential of the store's superuser.
func NewKamajiKeys() (*KamajiKeys, error) {
	k := &KamajiKeys{}
	var err error
	// Kamaji reads only RSA keys.
	if k.authority, err = newAuthority(parts.Kamaji, rsaKey); err != nil {
		return nil, err
	}
	if k.certificate, k.key, err = k.authority.issue(storeTemplate(storeRoot, nil, x509.ExtKeyUsageClientAuth)); err != nil {
		return nil, err
	}
	k.root, err = tls.X509KeyPair(k.certificate, k.key)
	return k, err
}

// Authority is the certificate of who issued all others.
func (k *KamajiKeys) Authority() []byte { return k.authority.pem() }

// Server returns the Secret, or the files, of a server on loopback that has these names too.
func (k *KamajiKeys) Server(names ...string) (map[string][]byte, error) {
	// The HTTP API of etcd is a client of itself.
	certificate, key, err := k.authority.issue(storeTemplate(parts.Etcd, names, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth))
	return map[string][]byte{"ca.crt": k.authority.pem(), corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}, err
}

// Secrets are those by which Kamaji logs in to the store as its superuser, and issues credentials for it.
func (k *KamajiKeys) Secrets() ([]*corev1.Secret, error) {
	private, err := keyutil.MarshalPrivateKeyToPEM(k.authority.key)
	if err != nil {
		return nil, err
	}
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: KamajiNamespace, Name: name}, Data: data}
	}
	return []*corev1.Secret{
		secret(storeAuthority, map[string][]byte{"ca.crt": k.authority.pem(), "ca.key": private}),
		secret(storeClient, map[string][]byte{corev1.TLSCertKey: k.certificate, corev1.TLSPrivateKeyKey: k.key}),
	}, nil
}

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
	server, err := k.keys.Server()
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(k.dir, name) }
	if err := writeFiles(map[string][]byte{in("store-ca.crt"): server["ca.crt"], in("store.crt"): server[corev1.TLSCertKey],
		in("store.key"): server[corev1.TLSPrivateKeyKey]}); err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if err := k.hub.run(ctx, command{
		name: "kamaji-etcd", path: path,
		args: []string{
			"--data-dir=" + in("etcd"), "--listen-client-urls=https://" + address, "--advertise-client-urls=https://" + address,
			"--client-cert-auth=true", "--trusted-ca-file=" + in("store-ca.crt"), "--cert-file=" + in("store.crt"), "--key-file=" + in("store.key"),
			"--listen-peer-urls=http://127.0.0.1:0", "--unsafe-no-fsync=true", "--log-level=warn",
		},
		ready: answers(k.keys.superuser(), "https://"+address+"/health"),
	}); err != nil {
		return err
	}
	if err := k.keys.EnableAuth(ctx, "https://"+address); err != nil {
		return err
	}
	return k.declareStore(ctx, address)
}

func storeTemplate(name string, names []string, usage ...x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLife),
		Subject: pkix.Name{CommonName: name}, DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: usage,
	}
}

func (k *KamajiKeys) superuser() *http.Client { return k.authority.prober(k.root) }

// EnableAuth turns on authentication in the store that serves at a URL.
func (k *KamajiKeys) EnableAuth(ctx context.Context, url string) error {
	client := k.superuser()
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
func (k *Kamaji) declareStore(ctx context.Context, address string) error {
	secrets, err := k.keys.Secrets()
	if err != nil {
		return err
	}
	for _, s := range secrets {
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
			"certificateAuthority": map[string]any{"certificate": ref(storeAuthority, "ca.crt"), "privateKey": ref(storeAuthority, "ca.key")},
			"clientCertificate": map[string]any{"certificate": ref(storeClient, "tls.crt"),
				"privateKey": ref(storeClient, "tls.key")},
		},
	}
	return k.hub.Client.Create(ctx, u)
}
