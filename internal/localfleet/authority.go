// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certificateLife is a year, as kubeadm and so Kamaji and Cluster API have it.
const certificateLife = 365 * 24 * time.Hour

// authority issues the certificates of a cluster: one for its API server, and one for each user.
type authority struct {
	key  crypto.Signer
	cert *x509.Certificate
}

func newAuthority(cluster string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	own, err := cert.NewSelfSignedCACert(cert.Config{CommonName: cluster}, key)
	if err != nil {
		return nil, err
	}
	return &authority{key: key, cert: own}, nil
}

// pem is the authority's own certificate.
func (a *authority) pem() []byte { return encode(a.cert.Raw) }

// server issues a certificate for an API server on loopback.
func (a *authority) server(from, to time.Time) (certificate, key []byte, err error) {
	return a.issue(&x509.Certificate{
		NotBefore: from, NotAfter: to,
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// user issues a certificate that an API server takes for a user in groups.
func (a *authority) user(name string, groups []string) (certificate, key []byte, err error) {
	return a.issue(&x509.Certificate{
		NotBefore: a.cert.NotBefore, NotAfter: time.Now().Add(certificateLife),
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
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
