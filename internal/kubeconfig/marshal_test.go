// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// TestMarshal: a kubeconfig is written as sigs.k8s.io/yaml writes it, whatever its texts look like. Only of U+0085 that makes a space,
// which is another password.
func TestMarshal(t *testing.T) {
	texts := []string{"", "plain", "1234", "0x1f", "1e3", "1_000", "1:30", "0o17", "yes", "No", "~", "null", "true", "=", "<<", "<b>&amp;", "a: b", "a #b", "#a",
		"- a", "? a", "'a'", `"a"`, `back\slash`, "%a", "@a", "`a`", "{a}", "[a]", "*a", "&a", "!a", "|", ">", " a", "a ", "a\nb", "a\n", "\ta", "a\tb", "\x00\x1f", "\x7f", "\u0099", "\u00a0", "\uffff", "a\ufffdb", "\U0001ffff",
		"\u2028", "\ufeff", "日本語", "😀", strings.Repeat("word ", 60), strings.Repeat("QUJD", 2000), "2001-01-01", ".inf", ".NaN", "-", "--- a", "http://u:p@h:1/?a=b&c=d"}
	of := func(c *Config) {
		t.Helper()
		want, err := yaml.Marshal(clientcmdv1.Config{
			APIVersion: "v1", Kind: "Config", CurrentContext: minimalContext,
			Contexts: []clientcmdv1.NamedContext{{Name: minimalContext, Context: clientcmdv1.Context{Cluster: minimalCluster, AuthInfo: minimalUser}}},
			Clusters: []clientcmdv1.NamedCluster{{Name: minimalCluster, Cluster: clientcmdv1.Cluster{
				Server: c.server, TLSServerName: c.tlsServerName, InsecureSkipTLSVerify: c.insecure,
				CertificateAuthorityData: c.ca, ProxyURL: c.proxyURL,
			}}},
			AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: minimalUser, AuthInfo: clientcmdv1.AuthInfo{
				Token: c.token, Username: c.username, Password: c.password, ClientCertificateData: c.cert, ClientKeyData: c.key,
			}}},
		})
		got, failed := c.marshal()
		if d := cmp.Diff(string(want), string(got)); (err == nil) != (failed == nil) || d != "" {
			t.Errorf("%v, and %v: -want +got:\n%s", err, failed, d)
		}
	}
	for _, text := range texts {
		of(&Config{server: text, token: text})
		of(&Config{server: "https://a:6443", insecure: true, tlsServerName: text, proxyURL: text, username: text, password: text})
		of(&Config{server: "https://a:6443", ca: []byte(text), cert: []byte(text), key: []byte(text)})
	}
	c, again := &Config{server: "https://a:6443", password: "a\u0085b"}, clientcmdv1.Config{}
	if raw, err := c.marshal(); err != nil || yaml.Unmarshal(raw, &again) != nil || again.AuthInfos[0].AuthInfo.Password != c.password {
		t.Errorf("%v: %q comes back as %+v", err, c.password, again.AuthInfos)
	}
}
