// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// authority signs the certificates of a test's servers.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var testCA, otherCA = newAuthority(), newAuthority()

func newAuthority() authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return authority{cert, key}
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// tls returns a server configuration for 127.0.0.1 and cluster.test, after change has been at the certificate.
func (a authority) tls(change func(*x509.Certificate)) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"cluster.test"},
	}
	if change != nil {
		change(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// serve starts an HTTPS server and returns its address. Its connections must be gone when the test ends, or Close hangs.
func serve(t *testing.T, config *tls.Config, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// api is a server that answers like Kubernetes, except where override does.
func api(t *testing.T, override map[string]http.HandlerFunc) string {
	t.Helper()
	answers := map[string]string{
		"/version":                       `{"major":"1","minor":"34","gitVersion":"v1.34.1+k3s1"}`,
		"/api/v1/namespaces/kube-system": `{"kind":"PartialObjectMetadata","metadata":{"name":"kube-system","uid":"11111111-2222-3333-4444-555555555555"}}`,
		"/api/v1/nodes":                  `{"kind":"PartialObjectMetadataList","metadata":{"continue":"x","remainingItemCount":41},"items":[{}]}`,
	}
	return serve(t, testCA.tls(nil), func(w http.ResponseWriter, r *http.Request) {
		if h := override[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, answers[r.URL.Path])
	})
}

// raw starts a TCP server that runs handle for each connection, and closes it afterwards.
func raw(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0")).Or(t)
	var handlers sync.WaitGroup
	handlers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			handlers.Go(func() {
				defer func() { _ = conn.Close() }()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		handlers.Wait() // hangs if the probe left a connection open
	})
	return listener.Addr().String()
}

// rawTLS is raw after the handshake and the first request.
func rawTLS(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	config := testCA.tls(nil)
	return raw(t, func(conn net.Conn) {
		secure := tls.Server(conn, config)
		if _, err := secure.Read(make([]byte, 4096)); err == nil {
			handle(secure)
		}
	})
}

// untilClosed reads until the other side goes away.
func untilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// loopback are the rules of the tests: their servers are on the loopback interface.
var loopback = kubeconfig.Rules{AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// config returns a kubeconfig for a server that testCA has to vouch for.
func config(tb testing.TB, server string) *kubeconfig.Config {
	tb.Helper()
	var text bytes.Buffer
	text.WriteString("current-context: c\ncontexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c, user: {token: hunter2}}]\n")
	text.WriteString("clusters: [{name: c, cluster: {server: \"https://" + server + "\", certificate-authority-data: " +
		base64.StdEncoding.EncodeToString(testCA.pem()) + "}}]\n")
	c, err := kubeconfig.Parse(text.Bytes(), loopback)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
