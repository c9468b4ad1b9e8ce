// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// checkMinimal reads what was accepted with clientcmd, as Flux does, and checks it without the code under test.
func checkMinimal(tb testing.TB, c *kubeconfig.Config) {
	tb.Helper()
	checkIdempotent(tb, c, kubeconfig.Rules{})
	loaded, err := clientcmd.Load(c.Minimal())
	if err != nil {
		tb.Fatalf("clientcmd does not load Minimal: %v", err)
	}
	if len(loaded.Clusters) != 1 || len(loaded.AuthInfos) != 1 || len(loaded.Contexts) != 1 {
		tb.Fatalf("Minimal has %d clusters, %d users, %d contexts", len(loaded.Clusters), len(loaded.AuthInfos), len(loaded.Contexts))
	}
	context := loaded.Contexts[loaded.CurrentContext]
	if context == nil || loaded.Clusters[context.Cluster] == nil || loaded.AuthInfos[context.AuthInfo] == nil {
		tb.Fatal("the current context leads nowhere")
	}
	cluster, user := loaded.Clusters[context.Cluster], loaded.AuthInfos[context.AuthInfo]
	if cluster.CertificateAuthority != "" || cluster.InsecureSkipTLSVerify || cluster.ProxyURL != "" || len(cluster.CertificateAuthorityData) == 0 {
		tb.Error("the cluster has a file, a proxy, no TLS verification or no CA")
	}
	if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" ||
		user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0 {
		tb.Error("the user has a plugin, a file or an impersonation")
	}
	if user.Token == "" && user.Username == "" && (len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0) {
		tb.Error("the user has no credential")
	}
	checkServer(tb, cluster.Server)
	restConfig, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		tb.Fatalf("clientcmd refuses Minimal: %v", err)
	}
	if _, err := rest.TLSConfigFor(restConfig); err != nil {
		tb.Errorf("client-go refuses the TLS settings: %v", err)
	}
	if diff := cmp.Diff(summary(restConfig), summary(c.RESTConfig())); diff != "" {
		tb.Errorf("RESTConfig differs from clientcmd's: -clientcmd, +RESTConfig:\n%s", diff)
	}
}

// summary is what both ways to a rest.Config must agree on.
func summary(c *rest.Config) []string {
	return []string{
		c.Host, c.BearerToken, c.Username, c.Password, c.ServerName, string(c.CAData), string(c.CertData), string(c.KeyData),
		fmt.Sprint(c.Insecure, c.Proxy != nil, c.ExecProvider, c.AuthProvider, c.Impersonate, c.BearerTokenFile, c.CAFile, c.CertFile, c.KeyFile),
	}
}

// checkServer is a second opinion on what a server may be.
func checkServer(tb testing.TB, server string) {
	tb.Helper()
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Port() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		tb.Fatalf("server %q is not https://host:port", server)
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if host == "localhost" || strings.HasPrefix(host, "kubernetes.default") {
		tb.Errorf("server %q is the local host or the hub", server)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if a := addr.Unmap(); a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() {
			tb.Errorf("server %q is a forbidden address", server)
		}
		return
	}
	if strings.Trim(host, "0123456789.") == "" {
		tb.Errorf("server %q is an address in disguise", server)
	}
}

func checkIdempotent(tb testing.TB, c *kubeconfig.Config, rules kubeconfig.Rules) {
	tb.Helper()
	again, err := kubeconfig.Parse(c.Minimal(), rules)
	if err != nil {
		tb.Fatalf("Minimal is refused: %v", err)
	}
	if !bytes.Equal(c.Minimal(), again.Minimal()) || c.Fingerprint() != again.Fingerprint() || c.TargetFingerprint() != again.TargetFingerprint() {
		tb.Errorf("Minimal of Minimal differs: -first, +second:\n%s", cmp.Diff(string(c.Minimal()), string(again.Minimal())))
	}
}

func parse(tb testing.TB, text string, rules kubeconfig.Rules) *kubeconfig.Config {
	tb.Helper()
	c, err := kubeconfig.Parse(fill(tb, text), rules)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestFingerprints(t *testing.T) {
	base := parse(t, document(goodCluster, goodUser), kubeconfig.Rules{})
	cases := map[string]struct {
		reason       string
		text         string
		same, target bool
	}{
		"Names": {
			reason: "names, order, style and extensions do not matter",
			text: "kind: Config\napiVersion: v1\nusers:\n- name: u\n  user:\n    token: {{.Opaque}}\ncontexts:\n- name: x\n  context: {user: u, cluster: k, namespace: n}\n" +
				"clusters:\n- name: k\n  cluster:\n    certificate-authority-data: >-\n      {{.CA}}\n    server: https://API.example.org:6443/\n    extensions: [{name: a}]\ncurrent-context: x\n",
			same: true, target: true,
		},
		"Token":      {reason: "another login to the same endpoint", text: document(goodCluster, `token: other`), target: true},
		"Server":     {reason: "another endpoint", text: document(strings.Replace(goodCluster, "6443", "6444", 1), goodUser)},
		"CA":         {reason: "another CA", text: document(strings.Replace(goodCluster, ".CA", ".OtherCA", 1), goodUser)},
		"ServerName": {reason: "another name", text: document(goodCluster+", tls-server-name: x", goodUser)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := parse(t, tc.text, kubeconfig.Rules{})
			if got := c.Fingerprint() == base.Fingerprint(); got != tc.same {
				t.Errorf("%s: same fingerprint: got %t, want %t", tc.reason, got, tc.same)
			}
			if got := c.TargetFingerprint() == base.TargetFingerprint(); got != tc.target {
				t.Errorf("%s: same target fingerprint: got %t, want %t", tc.reason, got, tc.target)
			}
			if len(c.Fingerprint()) != kubeconfig.FingerprintLength || len(c.TargetFingerprint()) != kubeconfig.FingerprintLength {
				t.Errorf("fingerprints %q, %q have the wrong length", c.Fingerprint(), c.TargetFingerprint())
			}
		})
	}
}

func TestExpiration(t *testing.T) {
	jwt := func(payload string) string { return `token: "e30.` + b64url(payload) + `.c2ln"` }
	cert := `client-certificate-data: "{{.Cert}}", client-key-data: "{{.Key}}"`
	cases := map[string]struct {
		reason string
		user   string
		want   time.Time
	}{
		"Opaque":      {reason: "nothing says", user: goodUser},
		"Certificate": {reason: "NotAfter", user: cert, want: certExpiry},
		"Token":       {reason: "exp", user: `token: "{{.JWT}}"`, want: tokenExpiry},
		"Both":        {reason: "the earlier one", user: cert + `, token: "{{.JWT}}"`, want: tokenExpiry},
		"Fraction":    {reason: "NumericDate may have one", user: jwt(`{"exp":1700000000.5}`), want: time.Unix(1700000000, 0).UTC()},
		"NoExp":       {reason: "a legacy service account token does not expire", user: jwt(`{"sub":"x"}`)},
		"NotANumber":  {reason: "not to be understood", user: jwt(`{"exp":"soon"}`)},
		"Huge":        {reason: "no time that a status can hold", user: jwt(`{"exp":1e300}`)},
		"Negative":    {reason: "no time at all", user: jwt(`{"exp":-5}`)},
		"NotJSON":     {reason: "three parts, but no JWT", user: `token: a.b.c`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := parse(t, document(goodCluster, tc.user), kubeconfig.Rules{}).Expiration()
			if !got.Equal(tc.want) || ok == tc.want.IsZero() {
				t.Errorf("%s: got %v, %t, want %v", tc.reason, got, ok, tc.want)
			}
		})
	}
}

func TestConfigDoesNotPrintCredentials(t *testing.T) {
	c := parse(t, document(goodCluster, `token: hunter2`), kubeconfig.Rules{})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{c, *c, []any{c}} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "hunter2") {
				t.Errorf("%s prints the token: %s", verb, text)
			}
		}
	}
	if got := c.Host() + " " + fmt.Sprint(c.Port()); got != "api.example.org 6443" {
		t.Errorf("host and port are %q", got)
	}
}

func TestRESTConfigKeepsCredentialsFromPlainHTTP(t *testing.T) {
	c := parse(t, document(`server: "http://a.b"`, `username: a, password: b`), kubeconfig.Rules{AllowHTTP: true})
	if r := c.RESTConfig(); r.Username != "" || r.Password != "" || r.BearerToken != "" || r.Host != "http://a.b:80" {
		t.Errorf("RESTConfig for plain http holds credentials or another host: %s", r.Host)
	}
}
