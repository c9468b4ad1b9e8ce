// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// largeCertificate returns a certificate, in PEM, with an RSA key of so many bits. Its modulus is no product of primes: nobody looks.
func largeCertificate(tb testing.TB, bits uint) string {
	tb.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	n.SetBit(n, 0, 1)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "large"}, NotAfter: time.Unix(1<<32, 0)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &rsa.PublicKey{N: n, E: 65537}, newKey())
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestLargeKeys: keys by which a handshake would take minutes are refused before anybody uses them, and before the parser of keys does.
func TestLargeKeys(t *testing.T) {
	small, large := largeCertificate(t, 8192), largeCertificate(t, 8193)
	key := func(bytes int) string {
		return b64(string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: make([]byte, bytes)})))
	}
	ca := func(text string) string {
		return `server: "https://a.b", certificate-authority-data: "` + b64(text) + `"`
	}
	pair := func(cert, key string) string {
		return `client-certificate-data: "` + cert + `", client-key-data: "` + key + `"`
	}
	const fieldCert, fieldKey = fieldUser + ".client-certificate-data", fieldUser + ".client-key-data"
	cases := map[string]struct {
		reason, cluster, user string
		want                  want
	}{
		"CA":         {reason: "as large as crypto/tls takes of a server", cluster: ca(small), user: goodUser},
		"LargeCA":    {reason: "larger", cluster: ca(large), user: goodUser, want: want{kubeconfig.ReasonKeyTooLarge, fieldCA}},
		"LargeCA2":   {reason: "one of several", cluster: ca(small + large), user: goodUser, want: want{kubeconfig.ReasonKeyTooLarge, fieldCA}},
		"Cert":       {reason: "it is judged by its key", user: pair(b64(small), "{{.Key}}"), want: want{kubeconfig.ReasonCredentialInvalid, fieldKey}},
		"LargeCert":  {reason: "larger", user: pair(b64(large), "{{.Key}}"), want: want{kubeconfig.ReasonKeyTooLarge, fieldCert}},
		"LargeChain": {reason: "what issued it", user: pair(b64(small+large), "{{.Key}}"), want: want{kubeconfig.ReasonKeyTooLarge, fieldCert}},
		"Key":        {reason: "the parser finds out", user: pair("{{.Cert}}", key(8<<10)), want: want{kubeconfig.ReasonCredentialInvalid, fieldKey}},
		"LargeKey":   {reason: "the parser does not get it", user: pair("{{.Cert}}", key(8<<10+1)), want: want{kubeconfig.ReasonKeyTooLarge, fieldKey}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.cluster == "" {
				tc.cluster = goodCluster
			}
			_, err := kubeconfig.Parse(fill(t, document(tc.cluster, tc.user)), kubeconfig.Rules{})
			if diff := cmp.Diff(tc.want, got(t, err)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
	_, _, err := kubeconfig.Endpoint{CA: large, CAField: "caBundle"}.Check(kubeconfig.Rules{})
	if diff := cmp.Diff(want{kubeconfig.ReasonKeyTooLarge, "caBundle"}, got(t, err)); diff != "" {
		t.Errorf("a CA without a kubeconfig: -want, +got:\n%s\n%v", diff, err)
	}
}
