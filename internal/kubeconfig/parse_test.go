// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// want is what a test compares of an error.
type want struct{ Reason, Field string }

func got(tb testing.TB, err error) want {
	tb.Helper()
	if e := asError(tb, err); e != nil {
		return want{e.Reason, e.Field}
	}
	return want{}
}

// document is a kubeconfig whose parts a test replaces.
func document(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n" +
		"clusters: [{name: c, cluster: {" + cluster + "}}]\nusers: [{name: c, user: {" + user + "}}]\n"
}

// Parts that are fine.
const (
	goodCluster = `server: "https://api.example.org:6443", certificate-authority-data: "{{.CA}}"`
	goodUser    = `token: "{{.Opaque}}"`
)

func TestParseFields(t *testing.T) {
	server := "clusters[0].cluster.server"
	ca := "clusters[0].cluster.certificate-authority-data"
	cases := map[string]struct {
		reason  string
		cluster string
		user    string
		rules   kubeconfig.Rules
		want    want
	}{
		"Good":          {reason: "the base of all other cases is accepted"},
		"Insecure":      {reason: "no TLS verification", cluster: `server: "https://a.b", insecure-skip-tls-verify: true`, want: want{kubeconfig.ReasonInsecureTLS, "clusters[0].cluster.insecure-skip-tls-verify"}},
		"InsecureOK":    {reason: "the flag lifts it, and no CA is needed then", cluster: `server: "https://a.b", insecure-skip-tls-verify: true`, rules: kubeconfig.Rules{AllowInsecureTLS: true}},
		"InsecureAndCA": {reason: "client-go refuses both together", cluster: goodCluster + `, insecure-skip-tls-verify: true`, rules: kubeconfig.Rules{AllowInsecureTLS: true}, want: want{kubeconfig.ReasonMalformed, "clusters[0].cluster.insecure-skip-tls-verify"}},
		"InsecureFalse": {reason: "false is the default", cluster: goodCluster + `, insecure-skip-tls-verify: false`},
		"InsecureText":  {reason: "a string is not a boolean", cluster: goodCluster + `, insecure-skip-tls-verify: "false"`, want: want{kubeconfig.ReasonMalformed, "clusters[0].cluster.insecure-skip-tls-verify"}},
		"Proxy":         {reason: "Flux would follow it", cluster: goodCluster + `, proxy-url: "http://proxy:3128"`, want: want{kubeconfig.ReasonProxy, "clusters[0].cluster.proxy-url"}},
		"ProxyOK":       {reason: "the flag lifts it", cluster: goodCluster + `, proxy-url: "socks5://user:word@proxy.example.org"`, rules: kubeconfig.Rules{AllowProxy: true}},
		"ProxyScheme":   {reason: "client-go knows three schemes", cluster: goodCluster + `, proxy-url: "file:///etc"`, rules: kubeconfig.Rules{AllowProxy: true}, want: want{kubeconfig.ReasonMalformed, "clusters[0].cluster.proxy-url"}},
		"ProxyLoopback": {reason: "a proxy is a target too", cluster: goodCluster + `, proxy-url: "http://127.0.0.1:8080"`, rules: kubeconfig.Rules{AllowProxy: true}, want: want{kubeconfig.ReasonAddress, "clusters[0].cluster.proxy-url"}},
		"NoCA":          {reason: "any public CA would do", cluster: `server: "https://a.b"`, want: want{kubeconfig.ReasonMissingCA, ca}},
		"BlankCA":       {reason: "blank is missing", cluster: `server: "https://a.b", certificate-authority-data: " "`, want: want{kubeconfig.ReasonMissingCA, ca}},
		"NoCAOK":        {reason: "the flag lifts it", cluster: `server: "https://a.b"`, rules: kubeconfig.Rules{AllowMissingCA: true}},
		"CANotBase64":   {reason: "raw PEM in a data field", cluster: `server: "https://a.b", certificate-authority-data: "-----BEGIN CERTIFICATE-----"`, want: want{kubeconfig.ReasonMalformed, ca}},
		"CANotPEM":      {reason: "base64 of something else", cluster: `server: "https://a.b", certificate-authority-data: "` + b64("hello") + `"`, want: want{kubeconfig.ReasonInvalidCA, ca}},
		"CANotX509":     {reason: "PEM of something else", cluster: `server: "https://a.b", certificate-authority-data: "` + b64("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n") + `"`, want: want{kubeconfig.ReasonInvalidCA, ca}},
		"ServerName":    {reason: "allowed with a CA", cluster: goodCluster + `, tls-server-name: kubernetes.default`},
		"ServerNameCA":  {reason: "without a CA any certificate would do", cluster: `server: "https://a.b", tls-server-name: x.y`, rules: kubeconfig.Rules{AllowMissingCA: true}, want: want{kubeconfig.ReasonTLSServerName, "clusters[0].cluster.tls-server-name"}},
		"ServerNameBad": {reason: "not a name", cluster: goodCluster + `, tls-server-name: "x y"`, want: want{kubeconfig.ReasonTLSServerName, "clusters[0].cluster.tls-server-name"}},
		"HTTP":          {reason: "clear text", cluster: `server: "http://a.b"`, want: want{kubeconfig.ReasonHTTP, server}},
		"HTTPOK":        {reason: "the flag lifts it, and no CA is needed then", cluster: `server: "http://a.b"`, rules: kubeconfig.Rules{AllowHTTP: true}},
		"NoServer":      {reason: "client-go would take localhost", cluster: `certificate-authority-data: "{{.CA}}"`, want: want{kubeconfig.ReasonServerInvalid, server}},
		"ServerNumber":  {reason: "a number is not a string", cluster: `server: 1234`, want: want{kubeconfig.ReasonMalformed, server}},
		"UnknownField":  {reason: "it may change how the server is reached", cluster: goodCluster + `, Proxy-URL: "http://x"`, want: want{kubeconfig.ReasonUnknownField, "clusters[0].cluster"}},
		"UnknownUser":   {reason: "it may change who the user is", user: goodUser + `, impersonate: root`, want: want{kubeconfig.ReasonUnknownField, "users[0].user"}},
		"Extensions":    {reason: "they are dropped", cluster: goodCluster + `, extensions: [{name: x, extension: {exec: 1}}]`},

		"NoCredential":   {reason: "the user would be system:anonymous", user: `token: ""`, want: want{kubeconfig.ReasonCredentialMissing, "users[0].user"}},
		"TokenNewline":   {reason: "a trailing line break is trimmed", user: `token: "abc\n"`},
		"TokenInjection": {reason: "a header must not be split", user: `token: "abc\r\nX-Evil: 1"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.token"}},
		"Basic":          {reason: "a password is a credential", user: `username: a, password: b`},
		"BasicHalf":      {reason: "half of it is not", user: `username: a`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.username"}},
		"BasicColon":     {reason: "a colon ends the name in a header", user: `username: "a:b", password: b`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.username"}},
		"BasicControl":   {reason: "control characters", user: `username: a, password: "b\u0007"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.password"}},
		"TokenAndBasic":  {reason: "clientcmd refuses both", user: goodUser + `, username: a, password: b`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.token"}},
		"Cert":           {reason: "certificate and key match", user: `client-certificate-data: "{{.Chain}}", client-key-data: "{{.Key}}"`},
		"CertOnly":       {reason: "half of it is no credential", user: `client-certificate-data: "{{.Cert}}"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.client-key-data"}},
		"KeyOnly":        {reason: "half of it is no credential", user: goodUser + `, client-key-data: "{{.Key}}"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.client-certificate-data"}},
		"KeyMismatch":    {reason: "key of another certificate", user: `client-certificate-data: "{{.Cert}}", client-key-data: "{{.OtherKey}}"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.client-key-data"}},
		"KeyGarbage":     {reason: "no key", user: `client-certificate-data: "{{.Cert}}", client-key-data: "{{.Cert}}"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.client-key-data"}},
		"KeyEncrypted":   {reason: "nobody can type the passphrase", user: `client-certificate-data: "{{.Cert}}", client-key-data: "` + b64("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\naGVsbG8=\n-----END RSA PRIVATE KEY-----\n") + `"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.client-key-data"}},
		"CertGarbage":    {reason: "no certificate", user: `client-certificate-data: "` + b64("x") + `", client-key-data: "{{.Key}}"`, want: want{kubeconfig.ReasonCredentialInvalid, "users[0].user.client-certificate-data"}},
		"EmptyAs":        {reason: "empty is absent", user: goodUser + `, as: "", as-groups: [], as-user-extra: {}, as-uid: null`},
		"AsUID":          {reason: "impersonation", user: goodUser + `, as-uid: "0"`, want: want{kubeconfig.ReasonImpersonation, "users[0].user.as-uid"}},
		"AsGroups":       {reason: "impersonation", user: goodUser + `, as-groups: [system:masters]`, want: want{kubeconfig.ReasonImpersonation, "users[0].user.as-groups"}},
		"AsExtra":        {reason: "impersonation", user: goodUser + `, as-user-extra: {a: [b]}`, want: want{kubeconfig.ReasonImpersonation, "users[0].user.as-user-extra"}},
		"EmptyFiles":     {reason: "an empty path is absent", user: goodUser + `, tokenFile: "", client-key: "", client-certificate: ""`},
		"ExecEverything": {reason: "no flag lifts plugins", user: `exec: {command: x}`, rules: kubeconfig.Rules{AllowHTTP: true, AllowInsecureTLS: true, AllowMissingCA: true, AllowProxy: true}, want: want{kubeconfig.ReasonExec, "users[0].user.exec"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, user := tc.cluster, tc.user
			if cluster == "" {
				cluster = goodCluster
			}
			if user == "" {
				user = goodUser
			}
			c, err := kubeconfig.Parse(fill(t, document(cluster, user)), tc.rules)
			if diff := cmp.Diff(tc.want, got(t, err)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if err == nil {
				checkIdempotent(t, c, tc.rules)
			}
		})
	}
}

func TestParseDocuments(t *testing.T) {
	good := document(goodCluster, goodUser)
	cases := map[string]struct {
		reason string
		text   string
		want   want
	}{
		"Empty":             {reason: "an empty value has its own reason", text: "", want: want{Reason: kubeconfig.ReasonEmpty}},
		"Blank":             {reason: "so has a blank one", text: " \n\t\n", want: want{Reason: kubeconfig.ReasonEmpty}},
		"CommentOnly":       {reason: "a document without content", text: "# nothing\n", want: want{Reason: kubeconfig.ReasonMalformed}},
		"TooLarge":          {reason: "the cap", text: good + "# " + strings.Repeat("x", kubeconfig.MaxSize), want: want{Reason: kubeconfig.ReasonTooLarge}},
		"Broken":            {reason: "not YAML", text: "clusters: [", want: want{Reason: kubeconfig.ReasonMalformed}},
		"Binary":            {reason: "not text", text: "\x00\x01\xff", want: want{Reason: kubeconfig.ReasonMalformed}},
		"Scalar":            {reason: "text, but no kubeconfig", text: "hello", want: want{Reason: kubeconfig.ReasonMalformed}},
		"Base64Twice":       {reason: "a common slip", text: b64(good), want: want{Reason: kubeconfig.ReasonMalformed}},
		"List":              {reason: "no mapping", text: "[]", want: want{Reason: kubeconfig.ReasonMalformed}},
		"Marker":            {reason: "a document marker in front is fine", text: "---\n" + good},
		"Deep":              {reason: "nesting is limited", text: strings.Repeat("[", 2000) + strings.Repeat("]", 2000), want: want{Reason: kubeconfig.ReasonAmbiguous}},
		"ListKey":           {reason: "keys are strings", text: good + "? [a, b]\n: c\n", want: want{Reason: kubeconfig.ReasonAmbiguous}},
		"DuplicateNested":   {reason: "duplicates are refused in what is dropped as well", text: good + "preferences: {a: 1, a: 2}\n", want: want{Reason: kubeconfig.ReasonAmbiguous}},
		"Anchor":            {reason: "even without an alias", text: good + "preferences: &p {}\n", want: want{Reason: kubeconfig.ReasonAmbiguous}},
		"UnknownTop":        {reason: "unknown fields outside the entries in use are dropped", text: good + "metadata: {a: b}\n"},
		"Kind":              {reason: "another object", text: strings.Replace(good, "kind: Config", "kind: Secret", 1), want: want{Reason: kubeconfig.ReasonMalformed}},
		"NoKind":            {reason: "clientcmd allows it", text: strings.Replace(good, "apiVersion: v1\nkind: Config\n", "", 1)},
		"ArgoCD":            {reason: "its own format", text: `{"bearerToken": "t", "tlsClientConfig": {"caData": "x"}}`, want: want{kubeconfig.ReasonMalformed, ""}},
		"NoCurrent":         {reason: "one context can mean only one thing", text: strings.Replace(good, "current-context: c\n", "", 1)},
		"NoCurrentOfTwo":    {reason: "two contexts can mean two things", text: strings.Replace(strings.Replace(good, "current-context: c\n", "", 1), "contexts: [", "contexts: [{name: d, context: {}}, ", 1), want: want{kubeconfig.ReasonContext, "current-context"}},
		"UnknownCurrent":    {reason: "no such context", text: strings.Replace(good, "current-context: c", "current-context: d", 1), want: want{kubeconfig.ReasonContext, "current-context"}},
		"UnknownCluster":    {reason: "no such cluster", text: strings.Replace(good, "{cluster: c,", "{cluster: d,", 1), want: want{kubeconfig.ReasonContext, "contexts[0].context.cluster"}},
		"UnknownUser":       {reason: "no such user", text: strings.Replace(good, "user: c}", "user: d}", 1), want: want{kubeconfig.ReasonContext, "contexts[0].context.user"}},
		"NoClusters":        {reason: "no list", text: strings.Replace(good, "clusters:", "klusters:", 1), want: want{kubeconfig.ReasonContext, "contexts[0].context.cluster"}},
		"EmptyUser":         {reason: "a user without content", text: strings.Replace(good, "user: {token", "uzer: {token", 1), want: want{kubeconfig.ReasonContext, "contexts[0].context.user"}},
		"DuplicateName":     {reason: "parsers take the first or the last", text: strings.Replace(good, "users: [", "users: [{name: c, user: {token: x}}, ", 1), want: want{kubeconfig.ReasonAmbiguous, "users[1].name"}},
		"ClustersNotAList":  {reason: "shape", text: "clusters: {}\n", want: want{kubeconfig.ReasonMalformed, "clusters"}},
		"ClusterNotMapping": {reason: "shape", text: "clusters: [1]\n", want: want{kubeconfig.ReasonMalformed, "clusters[0]"}},
		"BodyNotMapping":    {reason: "shape", text: "users: [{name: a, user: []}]\n", want: want{kubeconfig.ReasonMalformed, "users[0].user"}},
		"NameNumber":        {reason: "clientcmd refuses it too", text: "users: [{name: 1, user: {}}]\n", want: want{kubeconfig.ReasonMalformed, "users[0].name"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Parse(fill(t, tc.text), kubeconfig.Rules{})
			if diff := cmp.Diff(tc.want, got(t, err)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

// TestErrorsAreStable: a kubeconfig that is wrong in several ways gets the same error each time, or a condition would flap.
func TestErrorsAreStable(t *testing.T) {
	for range 50 {
		_, err := kubeconfig.Parse([]byte("apiVersion: 1\nkind: 2\nclusters: 3\nusers: 4\n"), kubeconfig.Rules{})
		if diff := cmp.Diff(want{kubeconfig.ReasonMalformed, "apiVersion"}, got(t, err)); diff != "" {
			t.Fatalf("-want, +got:\n%s", diff)
		}
	}
}

// TestMessages shows what users get to read.
func TestMessages(t *testing.T) {
	cases := map[string]struct {
		text string
		want string
	}{
		"Line":     {text: "a: b\nc: [", want: "the value is not valid YAML or JSON (line 2)"},
		"Flag":     {text: document(`server: "https://127.0.0.1", certificate-authority-data: "{{.CA}}"`, goodUser), want: "clusters[0].cluster.server: 127.0.0.1 is a loopback address; use an address that the management cluster reaches (vcluster: set exportKubeConfig.server) (the hub's flag --allow-target-cidrs lifts this)"},
		"NoFlag":   {text: document(goodCluster, "exec: {}"), want: "users[0].user.exec: authentication plugins are not allowed; put a token or a client certificate into the kubeconfig, such as a token of a ServiceAccount"},
		"Ambigous": {text: "a: 1\nb: 2\na: 3\n", want: "a mapping has the same key twice (line 3); write plain YAML or JSON (kubectl config view --raw -o json)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Parse(fill(t, tc.text), kubeconfig.Rules{})
			must.Equal(t, tc.want, fmt.Sprint(err))
		})
	}
}
