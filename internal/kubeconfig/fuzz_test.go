// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// FuzzParse: whatever comes in, nothing panics and no error shows the marker; what the strict rules accept passes the second
// opinion of checkMinimal; what lenient rules accept is at least idempotent.
func FuzzParse(f *testing.F) {
	for _, raw := range corpus(f) {
		f.Add(raw)
	}
	for _, text := range []string{
		"", "\xef\xbb\xbf", "a: *a", "a: &a [*a]", "? {a: b}\n: c", "{\"a\": \"\\ud83d\\ude00\"}", strings.Repeat("{a: ", 40),
		document(goodCluster, "token: "+marker), document("server: https://"+marker+", certificate-authority-data: "+marker, "token: a"),
		document(goodCluster+`, proxy-url: "http://`+marker+`"`, "username: a, password: \"\u0085\u2028\""),
		document(`server: "https://[::ffff:7f00:1]", insecure-skip-tls-verify: true`, goodUser),
		document(`server: "http://127.1"`, goodUser),
	} {
		f.Add(fill(f, text))
	}
	f.Fuzz(checkAny)
}

// FuzzFields is FuzzParse for the values of fields, which mutation of a whole document rarely reaches.
func FuzzFields(f *testing.F) {
	for _, server := range []string{
		"https://api.example.org:6443/k8s", "https://[::ffff:127.0.0.1]", "https://127.1", "https://0x7f000001", "https://kubernetes.default.svc.",
		"https://a@127.0.0.1", "http://a", "https://[fe80::1%25eth0]:1", "https://１２７.0.0.1", "https://a.b:99999", "https://a\\@b", "https://localhost.",
	} {
		f.Add(server, "", "", "token", "", "")
	}
	f.Add("https://a.b", "http://u:p@127.0.0.1:1", "name", "", "user", "pass\u0085word")
	f.Fuzz(func(t *testing.T, server, proxy, serverName, token, username, password string) {
		cluster := map[string]any{"server": server, "proxy-url": proxy, "tls-server-name": serverName, "certificate-authority-data": credentials().CA}
		user := map[string]any{"token": token, "username": username, "password": password}
		raw, err := json.Marshal(map[string]any{
			"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c"}}},
			"clusters": []any{map[string]any{"name": "c", "cluster": cluster}},
			"users":    []any{map[string]any{"name": "c", "user": user}},
		})
		if err != nil {
			t.Fatal(err)
		}
		checkAny(t, raw)
	})
}

// checkAny holds for every input.
func checkAny(t *testing.T, raw []byte) {
	lenient := kubeconfig.Rules{
		AllowHTTP: true, AllowHub: true, AllowInsecureTLS: true, AllowMissingCA: true, AllowProxy: true,
		AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
	}
	c, err := kubeconfig.Parse(raw, kubeconfig.Rules{})
	checkNoMarker(t, err)
	strict := err == nil
	if strict {
		checkMinimal(t, c)
	}
	c, err = kubeconfig.Parse(raw, lenient)
	checkNoMarker(t, err)
	if err == nil {
		checkIdempotent(t, c, lenient)
	}
	if strict && err != nil {
		t.Errorf("the strict rules accept what the lenient ones refuse: %v", err)
	}
}
