// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// certExpiry and tokenExpiry are when the generated credentials end.
var (
	certExpiry  = time.Date(2035, 1, 2, 3, 4, 5, 0, time.UTC)
	tokenExpiry = time.Date(2034, 1, 2, 3, 4, 5, 0, time.UTC)
	longExpired = time.Date(2001, 1, 2, 3, 4, 5, 0, time.UTC)
)

// material is what the templates in testdata are filled with.
type material struct {
	CA, OtherCA, Cert, Key, OtherKey, Chain string // base64 of PEM
	JWT, ExpiredJWT, Opaque, Opaque64       string
}

// credentials generates throw-away certificates once per run, so that none has to be committed.
var credentials = sync.OnceValue(func() material {
	caKey, otherKey, key := newKey(), newKey(), newKey()
	ca := newCertificate("ca", caKey, nil, nil)
	other := newCertificate("other", otherKey, nil, nil)
	cert := newCertificate("admin", key, ca, caKey)
	return material{
		CA: certPEM(ca), OtherCA: certPEM(other), Cert: certPEM(cert), Chain: certPEM(cert, ca),
		Key: keyPEM(key), OtherKey: keyPEM(otherKey),
		JWT: jwt(tokenExpiry), ExpiredJWT: jwt(longExpired),
		// Opaque is a token without structure; like the JWTs it holds the marker, so that no error may show it.
		Opaque: marker + "-opaque", Opaque64: b64(marker + "-opaque"),
	}
})

func jwt(exp time.Time) string {
	return b64url(`{"alg":"none"}`) + "." + b64url(`{"sub":"`+marker+`","exp":`+big.NewInt(exp.Unix()).String()+`}`) + ".c2ln"
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// newCertificate returns a certificate signed by parent, or by itself.
func newCertificate(name string, key *ecdsa.PrivateKey, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"system:masters"}},
		NotBefore: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: certExpiry,
		IsCA: parent == nil, BasicConstraintsValid: true,
	}
	if parent == nil {
		parent, parentKey = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), parentKey)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return cert
}

func certPEM(certs ...*x509.Certificate) string {
	var out bytes.Buffer
	for _, c := range certs {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return b64(out.String())
}

func keyPEM(key *ecdsa.PrivateKey) string {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err)
	}
	// OpenSSL puts the parameters in front.
	return b64("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" +
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
}

func b64(s string) string    { return base64.StdEncoding.EncodeToString([]byte(s)) }
func b64url(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// templateFuncs write what would be too large for a file.
var templateFuncs = template.FuncMap{
	"repeat": strings.Repeat,
	"seq": func(n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = i
		}
		return out
	},
}

// fill renders a template with the generated credentials.
func fill(tb testing.TB, text string) []byte {
	tb.Helper()
	t, err := template.New("kubeconfig").Option("missingkey=error").Funcs(templateFuncs).Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, credentials()); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// corpus renders all of testdata/corpus, by file name without .yaml.
func corpus(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.yaml"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no test data: %v", err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = fill(tb, string(text))
	}
	return files
}

// asError returns err as what the package promises: an *Error with a reason and a message, or nil.
func asError(tb testing.TB, err error) *kubeconfig.Error {
	tb.Helper()
	if err == nil {
		return nil
	}
	var e *kubeconfig.Error
	if !errors.As(err, &e) {
		tb.Fatalf("error is a %T, want *kubeconfig.Error", err)
	}
	if e.Reason == "" || e.Message == "" {
		tb.Errorf("error without reason or message: %+v", e)
	}
	return e
}
