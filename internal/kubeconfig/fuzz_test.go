// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// maxSeed is the size of the largest seed. Mutating and minimizing larger ones takes all the time and finds nothing;
// TestCorpus does with them what the target does.
const maxSeed = 8 << 10

// FuzzParse starts with the whole corpus.
func FuzzParse(f *testing.F) {
	for _, raw := range corpus(f) {
		if len(raw) <= maxSeed {
			f.Add(raw)
		}
	}
	for _, text := range append(slices.Clone(broken), []string{
		"", "\xef\xbb\xbf", "a: *a", "a: &a [*a]", "? {a: b}\n: c", "{\"a\": \"\\ud83d\\ude00\"}", strings.Repeat("{a: ", 40),
		document(goodCluster, "token: "+marker), document("server: https://"+marker+", certificate-authority-data: "+marker, "token: a"),
		document(goodCluster+`, proxy-url: "http://`+marker+`"`, "username: a, password: \"\u0085\u2028\""),
		document(`server: "https://[::ffff:7f00:1]", insecure-skip-tls-verify: true`, goodUser),
		document(`server: "http://127.1"`, goodUser),
	}...) {
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

// Rules that the fuzz targets try: from the hardest to the softest that there are.
var fuzzRules = []kubeconfig.Rules{operator, {}, {
	AllowHTTP: true, AllowInsecureTLS: true, AllowMissingCA: true, AllowProxy: true, AllowServices: true,
	AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
}}

// checkAny holds for every input: nothing panics, what is accepted passes the second opinion, softer rules accept what harder
// ones do, the same input gives the same error, and no error shows what was planted into the credentials.
func checkAny(t *testing.T, raw []byte) {
	harder := false
	for _, rules := range fuzzRules {
		c, err := kubeconfig.Parse(raw, rules)
		checkNoMarker(t, err)
		if err == nil {
			checkMinimal(t, c, rules)
		} else if _, again := kubeconfig.Parse(raw, rules); again == nil || again.Error() != err.Error() {
			t.Errorf("the error is once %q and once %v", err, again)
		}
		if harder && err != nil {
			t.Errorf("softer rules refuse what harder ones accept: %v", err)
		}
		harder = err == nil
		for _, seed := range []string{marker, b64(marker + "\n\n\n")} { // the latter is part of valid base64, before a PEM block
			_, err = kubeconfig.Parse(credentialValues.ReplaceAll(raw, []byte("${1}"+seed)), rules)
			checkNoMarker(t, err)
		}
	}
}

// credentialValues finds where the values of fields begin that hold a credential or data.
var credentialValues = regexp.MustCompile(`("?(?:token|username|password|client-key|client-certificate|[a-z-]+-data)"?[ \t]*:[ \t]*["']?)`)
