// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/probe"
)

// special returns a kubeconfig for a server with further fields.
func special(t *testing.T, server, cluster, user string, rules kubeconfig.Rules) *kubeconfig.Config {
	t.Helper()
	c, err := kubeconfig.Parse(fmt.Appendf(nil, "contexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c, user: {%s}}]\n"+
		"clusters: [{name: c, cluster: {server: \"https://%s\", certificate-authority-data: %s%s}}]\n",
		user, server, base64.StdEncoding.EncodeToString(testCA.pem()), cluster), rules)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOnceClientCertificate: Kamaji's and Cluster API's kubeconfigs log in with one.
func TestOnceClientCertificate(t *testing.T) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Or(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "admin"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, testCA.cert, key.Public(), testCA.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER := must.Get(x509.MarshalPKCS8PrivateKey(key)).Or(t)
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	serverTLS := testCA.tls(nil)
	serverTLS.ClientAuth, serverTLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	serverTLS.ClientCAs.AddCert(testCA.cert)
	server := serve(t, serverTLS, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"gitVersion":"v1.34.1","kind":"NodeList","metadata":{"name":"kube-system","uid":%q}}`, r.TLS.PeerCertificates[0].Subject.CommonName)
	})
	user := "client-certificate-data: " + encode("CERTIFICATE", der) + ", client-key-data: " + encode("PRIVATE KEY", keyDER)
	result := probe.Once(t.Context(), special(t, server, "", user, loopback), probe.Options{Rules: loopback})
	if result.Err != nil || result.ClusterUID != "admin" {
		t.Errorf("got %+v", result)
	}
}

// connectProxy is a proxy that answers CONNECT with status and, if that is 200, passes bytes on.
func connectProxy(t *testing.T, status string) string {
	return raw(t, func(conn net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\n\r\n")
		if !strings.HasPrefix(status, "200") {
			return
		}
		server, err := net.Dial("tcp", request.Host)
		if err != nil {
			return
		}
		defer func() { _ = server.Close() }()
		go func() { _, _ = io.Copy(conn, server) }()
		_, _ = io.Copy(server, conn)
	})
}

func TestOnceProxy(t *testing.T) {
	t.Parallel()
	rules := loopback
	rules.AllowProxy = true
	cases := map[string]struct {
		reason string
		proxy  func(t *testing.T) string
		want   string
	}{
		"Works":   {reason: "the flag lifts the rule, and then it is used", proxy: func(t *testing.T) string { return connectProxy(t, "200 OK") }},
		"Refuses": {reason: "the proxy's text is not shown", proxy: func(t *testing.T) string { return connectProxy(t, "407 "+secret) }, want: probe.ReasonDialFailed},
		"Hangs":   {reason: "the proxy is bounded too", proxy: func(t *testing.T) string { return raw(t, untilClosed) }, want: probe.ReasonDialTimeout},
		"Gone":    {reason: "no proxy", proxy: closedPort, want: probe.ReasonConnectionRefused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := special(t, api(t, nil), `, proxy-url: "http://`+tc.proxy(t)+`"`, "token: hunter2", rules)
			opts := probe.Options{Rules: rules, Dial: dial, Total: total}
			if tc.want == "" {
				opts.Total = slack
			}
			result := probe.Once(t.Context(), cfg, opts)
			reason := ""
			if result.Err != nil {
				reason = result.Err.Reason
				if strings.Contains(result.Err.Message, secret) {
					t.Errorf("the message shows the proxy's text: %s", result.Err.Message)
				}
			}
			if reason != tc.want {
				t.Errorf("%s: got %+v, want %q", tc.reason, result.Err, tc.want)
			}
		})
	}
}
