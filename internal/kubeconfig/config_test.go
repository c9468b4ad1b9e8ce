// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

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
			if got := c.AuthorityFingerprint() == base.AuthorityFingerprint(); got != (name != "CA") {
				t.Errorf("%s: same authority: %t", tc.reason, got)
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

// TestContext: an origin may name another context than the current one.
func TestContext(t *testing.T) {
	text := `{current-context: one, contexts: [{name: one, context: {cluster: one, user: u}}, {name: two, context: {cluster: two, user: u}}],
  clusters: [{name: one, cluster: {` + goodCluster + `}}, {name: two, cluster: {` + strings.Replace(goodCluster, "6443", "6444", 1) + `}}],
  users: [{name: u, user: {` + goodUser + `}}]}`
	for context, port := range map[string]uint16{"": 6443, "one": 6443, "two": 6444} {
		if c := parse(t, text, kubeconfig.Rules{Context: context}); c.Port() != port {
			t.Errorf("context %q: port %d, want %d", context, c.Port(), port)
		}
	}
	_, err := kubeconfig.Parse(fill(t, text), kubeconfig.Rules{Context: "three"})
	if err == nil || !strings.Contains(err.Error(), `lacks context "three"`) {
		t.Errorf("got %v", err)
	}
}

// TestRetokenIsBounded: a kubeconfig that repeats its token does not grow beyond what may be read, and not for a moment.
func TestRetokenIsBounded(t *testing.T) {
	const token = "short"
	text := document(goodCluster, `token: `+token)
	text += "extensions: [" + strings.Repeat(token+", ", (kubeconfig.MaxSize-1<<12)/(len(token)+2)) + "]\n"
	raw, c := fill(t, text), parse(t, text, kubeconfig.Rules{})
	if out, _, ok := c.Retoken(raw, "other"); !ok || len(out) != len(raw) {
		t.Errorf("a token of the same length: %t, %d bytes of %d", ok, len(out), len(raw))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, ok := c.Retoken(raw, strings.Repeat("x", 16<<10)); ok {
		t.Error("it is larger than a kubeconfig may be")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("that takes %d MiB", got>>20)
	}
}

// TestWithToken: whoever gets the cluster with a token of his own gets no other credential, of a proxy neither.
func TestWithToken(t *testing.T) {
	for proxy, want := range map[string]string{
		"http://proxy.example.org:3128": "http://proxy.example.org:3128", "http://proxy.example.org:3128/?apikey=hunter2#hunter2": "http://proxy.example.org:3128",
		"http://user:hunter2@proxy.example.org:3128": "", "socks5://hunter2@proxy.example.org": "",
	} {
		c := parse(t, document(goodCluster+`, proxy-url: "`+proxy+`"`, goodUser), kubeconfig.Rules{AllowProxy: true})
		of, err := c.WithToken("theirs")
		if err != nil {
			if e := asError(t, err); want != "" || e.Reason != kubeconfig.ReasonProxy || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", proxy, err)
			}
			continue
		}
		text := string(of.Minimal())
		if want == "" || strings.Contains(text, "hunter2") || !strings.Contains(text, "proxy-url: "+want+"\n") || !strings.Contains(text, "token: theirs\n") {
			t.Errorf("%s: %s", proxy, text)
		}
		if c.Fingerprint() == of.Fingerprint() || c.TargetFingerprint() != of.TargetFingerprint() {
			t.Errorf("%s: another cluster, or the same credential", proxy)
		}
	}
}

// TestRetokenKeepsProxy: the hub renews its own token behind a proxy with a password, too.
func TestRetokenKeepsProxy(t *testing.T) {
	text := document(goodCluster+`, proxy-url: "http://user:hunter2@proxy.example.org:3128/a"`, `token: mine`)
	raw, c := fill(t, text), parse(t, text, kubeconfig.Rules{AllowProxy: true})
	out, of, ok := c.Retoken(raw, "other")
	if want := strings.Replace(string(raw), "token: mine", "token: other", 1); !ok || string(out) != want || of.RESTConfig().BearerToken != "other" {
		t.Errorf("%t: %s", ok, out)
	}
}

// TestCluster: how a cluster is reached may be shown to others, and no credential with it.
func TestCluster(t *testing.T) {
	c := parse(t, document(goodCluster+`, proxy-url: "http://user:word@proxy.example.org:3128/?apikey=word#word"`, goodUser), kubeconfig.Rules{AllowProxy: true})
	got := c.Cluster()
	if got.Server != c.Server() || len(got.CertificateAuthorityData) == 0 || got.ProxyURL != "http://proxy.example.org:3128" {
		t.Errorf("got %+v", got)
	}
}
