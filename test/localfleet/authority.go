// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certificateLife is a year, as kubeadm and so Kamaji and Cluster API have it.
const certificateLife = 365 * 24 * time.Hour

// authority issues the certificates of a cluster: one for its API server, and one for each user.
type authority struct {
	key    crypto.Signer
	cert   *x509.Certificate
	newKey func() (crypto.Signer, error)
	// addresses of its servers beside loopback.
	addresses []net.IP
}

func newAuthority(name string, newKey func() (crypto.Signer, error)) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	own, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	return &authority{key: key, cert: own, newKey: newKey}, nil
}

// parseAuthority takes an authority from what somebody else keeps of it in PEM.
func parseAuthority(certificate, key []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T signs nothing", pair.PrivateKey)
	}
	return &authority{key: signer, cert: pair.Leaf, newKey: ecdsaKey}, nil
}

// ecdsaKey generates a key fast.
func ecdsaKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// rsaKey generates a key for programs that read no other kind.
func rsaKey() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }

// pem is the authority's own certificate.
func (a *authority) pem() []byte { return encode(a.cert.Raw) }

// prober returns a client that asks parts whether they are ready, with a certificate of the authority. It has no
// keep-alive, because each part has just been started.
func (a *authority) prober(own ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: a.trusted(own...)}}
}

// trusted returns the TLS configuration of a client for servers with a certificate of the authority.
func (a *authority) trusted(own ...tls.Certificate) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, Certificates: own}
}

// server issues a certificate for an API server on loopback and at the authority's addresses.
func (a *authority) server(from, to time.Time) (certificate, key []byte, err error) {
	return a.issue(&x509.Certificate{
		NotBefore: from, NotAfter: to,
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default.svc"},
		IPAddresses: append([]net.IP{net.IPv4(127, 0, 0, 1)}, a.addresses...),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// user issues a client certificate for a user in groups.
func (a *authority) user(name string, groups []string) (certificate, key []byte, err error) {
	return a.issue(&x509.Certificate{
		NotBefore: a.cert.NotBefore, NotAfter: time.Now().Add(certificateLife),
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := a.newKey()
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63)); err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("issue a certificate for %s: %w", template.Subject, err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return encode(raw), key, err
}

func encode(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate})
}

// writeFiles writes secret files, each to its path.
func writeFiles(files map[string][]byte) error {
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
