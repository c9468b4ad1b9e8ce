// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// marker stands for bytes of a Secret. It is a legal host name, token, key and base64 text, so that it gets far.
const marker = "c0ffeec0ffee"

// shapes put the marker into values that different checks stumble over.
var shapes = []any{
	marker, marker + ".localhost", "https://" + marker, "http://" + marker + ":6443", "https://u:" + marker + "@a.b",
	"https://a.b/?" + marker, "https://[fe80::1%25" + marker + "]:1", "https://a.b:" + marker, "https://%" + marker, "://" + marker,
	marker + "\x07", marker + "\nX: y", b64(marker), b64("-----BEGIN CERTIFICATE-----\n" + marker + "\n-----END CERTIFICATE-----\n"),
	b64("-----BEGIN EC PRIVATE KEY-----\n" + marker + "\n-----END EC PRIVATE KEY-----\n"), "!" + marker, "=" + marker,
	[]any{marker}, map[string]any{marker: marker}, map[string]any{"command": marker}, nil, 4711, true,
}

// encodings are the forms in which the marker could come back, in lower case: plain, in hexadecimal, and in base64 at any
// offset, without what depends on its neighbours.
var encodings = []string{
	marker, fmt.Sprintf("%x", marker), strings.ToLower(b64(marker)), strings.ToLower(b64("\x00" + marker)[4:16]), strings.ToLower(b64("\x00\x00" + marker)[4:18]),
}

// checkNoMarker holds err to what the package promises: a short line without the marker.
func checkNoMarker(tb testing.TB, err error) {
	tb.Helper()
	e := asError(tb, err)
	if e == nil {
		return
	}
	text := strings.ToLower(e.Reason + "\t" + e.Field + "\t" + e.Message + "\t" + e.Error())
	for _, form := range encodings {
		if strings.Contains(text, form) {
			tb.Errorf("the error shows the Secret: %s", e.Error())
		}
	}
	if len(e.Error()) > 400 || strings.ContainsFunc(e.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
		tb.Errorf("the error is no short line: %q", e.Error())
	}
}

// TestErrorsHoldNoSecret plants the marker into every value and every key of a kubeconfig, one at a time.
func TestErrorsHoldNoSecret(t *testing.T) {
	lenient := kubeconfig.Rules{AllowHTTP: true, AllowInsecureTLS: true, AllowMissingCA: true, AllowProxy: true}
	everything := document(goodCluster+`, tls-server-name: a, insecure-skip-tls-verify: false, proxy-url: "http://a.b", extensions: []`,
		goodUser+`, client-certificate-data: "{{.Cert}}", client-key-data: "{{.Key}}", username: "", password: "", as: "", as-uid: "", as-groups: [], as-user-extra: {}, tokenFile: "", client-key: "", exec: null`)
	accepted := corpus(t)
	files := map[string][]byte{"everything": fill(t, everything)}
	for _, name := range []string{"gke-serviceaccount", "other-context-is-odd"} { // what the document lacks
		files[name] = accepted[name]
	}
	tries, refused := 0, 0
	for name, raw := range files {
		var root any
		if err := yaml.Unmarshal(raw, &root); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plant(root, func() {
			text, err := yaml.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			tries++
			_, err = kubeconfig.Parse(text, kubeconfig.Rules{})
			checkNoMarker(t, err)
			if err != nil {
				refused++
				_, err = kubeconfig.Parse(text, lenient) // gets further
				checkNoMarker(t, err)
			}
		})
	}
	if refused < 1000 || refused == tries {
		t.Errorf("only %d of %d tries were refused: the test does not get far", refused, tries)
	}
}

// plant changes one place of the tree at a time and calls try after each change.
func plant(node any, try func()) {
	switch n := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			old := n[key]
			for _, shape := range shapes {
				n[key] = shape
				try()
			}
			delete(n, key)
			n[marker] = old
			try()
			delete(n, marker)
			n[key] = old
			n[marker] = marker
			try()
			delete(n, marker)
			plant(old, try)
		}
	case []any:
		for i, old := range n {
			for _, shape := range shapes {
				n[i] = shape
				try()
			}
			n[i] = old
			plant(old, try)
		}
	}
}

// broken is the marker with broken syntax around it, which parsers quote.
var broken = []string{
	marker, "\t" + marker, "*" + marker, "&" + marker, "!" + marker + " x", "%" + marker, "@" + marker, "`" + marker, "'" + marker, "\"\\" + marker,
	"\"\\q" + marker + "\"", "a: b: " + marker, "a: [" + marker, "a: {" + marker, "{" + marker + ": *" + marker + "}", marker + ": 1\n" + marker + ": 2\n",
	"? " + marker, "- " + marker + "\nb: " + marker, "|" + marker, ">9\n" + marker, "a: |\n  " + marker + "\n b", "---\n" + marker + "\n---\n" + marker,
	"%YAML " + marker + "\n---\na", "%TAG ! " + marker + "\n---\n!a b", "a: !<" + marker + "> b", "a: !!" + marker + " b", marker + "\xff", "\xff\xfe" + marker,
	"<<: " + marker, "a: \x00" + marker, "yaml: line 3: " + marker, "[" + marker + "]: " + marker, b64(marker), "apiVersion: " + marker, "kind: " + marker,
}

// TestSyntaxErrorsHoldNoSecret: texts of the YAML parser are not passed on.
func TestSyntaxErrorsHoldNoSecret(t *testing.T) {
	for _, text := range broken {
		_, err := kubeconfig.Parse([]byte(text), kubeconfig.Rules{})
		if err == nil {
			t.Errorf("%q was accepted", text)
		}
		checkNoMarker(t, err)
	}
	_, err := kubeconfig.PickKey(map[string][]byte{"a": []byte(marker), "b": []byte(marker)}, "", nil)
	checkNoMarker(t, err)
}
