// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http" //nolint:depguard // the proxy of a rest.Config
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"                               //nolint:depguard // the Config struct
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1" //nolint:depguard // the structs of a kubeconfig
)

// FingerprintLength is the number of hex digits in a fingerprint: 128 bits of a SHA-256.
const FingerprintLength = 32

// Config is one cluster and one user that passed the rules. It is immutable and safe for concurrent use. Printing it with
// any verb of fmt shows the server and the fingerprint only.
type Config struct {
	server        string
	host          string
	port          uint16
	proxyURL      string
	ca            []byte
	tlsServerName string
	insecure      bool

	token, username, password string
	cert, key                 []byte

	rules Rules

	expires           time.Time
	fingerprint       string
	targetFingerprint string
}

// Names in the minimal kubeconfig. They are fixed, so that renaming a context does not look like a change of credentials.
const (
	minimalCluster = "target"
	minimalUser    = "hub"
	minimalContext = "target"
)

// finish derives what the accessors return.
func (c *Config) finish() (*Config, error) {
	if exp, ok := tokenExpiry(c.token); ok && (c.expires.IsZero() || exp.Before(c.expires)) {
		c.expires = exp
	}
	minimal, err := c.marshal()
	if err != nil {
		return nil, malformed("", "the kubeconfig cannot be written again") // not err: it may quote a value
	}
	c.fingerprint = fingerprint(minimal)
	c.targetFingerprint = fingerprint(fmt.Appendf(nil, "%q\n%q\n%s", c.server, c.tlsServerName, c.ca))
	return c, nil
}

// marshal writes what was checked as a kubeconfig. It is not kept: a hub holds thousands of Configs, and each would be twice as large.
// It writes what sigs.k8s.io/yaml writes of clientcmdv1.Config, byte for byte: the fingerprint covers it, and what Flux reads would be
// written anew if it changed. That library goes by way of JSON, which takes more than twice as long, and a hub that starts does it for
// each cluster.
func (c *Config) marshal() ([]byte, error) {
	type object = map[string]any
	named := func(name, kind string, fields object) []object { return []object{{"name": name, kind: fields}} }
	for _, text := range []string{c.server, c.tlsServerName, c.proxyURL, c.token, c.username, c.password} {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unwritable) {
			return nil, errors.New("a text has a control character")
		}
	}
	cluster, user := object{"server": c.server}, object{}
	if c.insecure {
		cluster["insecure-skip-tls-verify"] = true
	}
	set := func(in object, field, text string) {
		if text != "" {
			in[field] = text
		}
	}
	set(cluster, "tls-server-name", c.tlsServerName)
	set(cluster, "certificate-authority-data", base64.StdEncoding.EncodeToString(c.ca))
	set(cluster, "proxy-url", c.proxyURL)
	set(user, "token", c.token)
	set(user, "username", c.username)
	set(user, "password", c.password)
	set(user, "client-certificate-data", base64.StdEncoding.EncodeToString(c.cert))
	set(user, "client-key-data", base64.StdEncoding.EncodeToString(c.key))
	return yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": minimalContext,
		"contexts": named(minimalContext, "context", object{"cluster": minimalCluster, "user": minimalUser}),
		"clusters": named(minimalCluster, "cluster", cluster),
		"users":    named(minimalUser, "user", user),
	})
}

// unwritable returns whether a YAML document may not hold a character as it is (YAML 1.1, c-printable), other than those that JSON escapes.
func unwritable(r rune) bool {
	return r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff
}

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:FingerprintLength]
}

// Rules returns the rules that the kubeconfig was checked against. The addresses that its names resolve to must pass
// them too.
func (c *Config) Rules() Rules { return c.rules }

// Server returns the URL of the API server with its port, https://host:port, followed by the path if there is one.
func (c *Config) Server() string { return c.server }

// Host returns the host of the server as the hub reaches it: a DNS name in lower case or an address, without brackets.
func (c *Config) Host() string { return c.host }

// Port returns the port of the server.
func (c *Config) Port() uint16 { return c.port }

// Cluster returns how the cluster is reached, without any credential: those of a proxy are left out too.
func (c *Config) Cluster() clientcmdv1.Cluster {
	return clientcmdv1.Cluster{Server: c.server, TLSServerName: c.tlsServerName, InsecureSkipTLSVerify: c.insecure,
		CertificateAuthorityData: slices.Clone(c.ca), ProxyURL: c.openProxy()}
}

// openProxy returns the URL of the proxy without what may be a credential, which is all but scheme, host and port.
func (c *Config) openProxy() string {
	proxy, err := url.Parse(c.proxyURL)
	if err != nil || proxy.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: proxy.Scheme, Host: proxy.Host}).String()
}

// CheckShared returns why WithToken would show a credential to the holder of the token; nil if it would not. The error is an *Error.
func (c *Config) CheckShared() error {
	proxy, err := url.Parse(c.proxyURL)
	if err != nil || proxy.User != nil {
		return &Error{Reason: ReasonProxy, Field: "proxy-url",
			Message: "holds a user name or password, which others must not have; use a proxy that needs none"}
	}
	return nil
}

// Minimal returns a kubeconfig in YAML with exactly one cluster, user and context, and only the fields that were checked.
// The bytes depend on nothing but the checked content: names, order and formatting of the input do not show, and
// Parse(Minimal()) has the same Minimal. They hold credentials and belong into a Secret. The caller may change the result.
func (c *Config) Minimal() []byte {
	minimal, _ := c.marshal() // which went well for the fingerprint
	return minimal
}

// WithToken returns the same cluster with a bearer token as its only credential. It fails if the proxy needs one.
func (c *Config) WithToken(token string) (*Config, error) {
	if err := c.CheckShared(); err != nil {
		return nil, err
	}
	return c.withToken(token, c.openProxy())
}

// WithOpenProxy returns the same kubeconfig, whose only credential is a token, without the credential of its proxy.
func (c *Config) WithOpenProxy() (*Config, error) { return c.withToken(c.token, c.openProxy()) }

func (c *Config) withToken(token, proxyURL string) (*Config, error) {
	out := *c
	out.proxyURL = proxyURL
	out.token, out.username, out.password, out.cert, out.key, out.expires = token, "", "", nil, nil, time.Time{}
	return out.finish()
}

// Fingerprint returns FingerprintLength hex digits of the SHA-256 of Minimal. It changes when anything that matters does.
func (c *Config) Fingerprint() string { return c.fingerprint }

// TargetFingerprint is like Fingerprint for server, CA and tls-server-name only: equal values mean the same endpoint,
// all who log in. Different values do not mean different clusters.
func (c *Config) TargetFingerprint() string { return c.targetFingerprint }

// AuthorityFingerprint is a digest of the CA by which the API server proves who it is. Where there is none, or it is
// not looked at, only the address tells, and it is TargetFingerprint.
func (c *Config) AuthorityFingerprint() string {
	if len(c.ca) == 0 || c.insecure {
		return c.targetFingerprint
	}
	return fingerprint(bytes.TrimSpace(c.ca))
}

// Expiration returns when the credential ceases to work: the earlier of the client certificate's NotAfter and the token's
// exp, if it is a JWT. The boolean is false if nothing says so.
func (c *Config) Expiration() (time.Time, bool) { return c.expires, !c.expires.IsZero() }

// Account returns the ServiceAccount whose token is the only credential, and when the token was issued, by the clock of the
// cluster; the zero time if it does not say. The boolean is false if the credential is another one.
func (c *Config) Account() (account types.NamespacedName, issued time.Time, ok bool) {
	if len(c.cert) > 0 || c.username != "" {
		return types.NamespacedName{}, time.Time{}, false
	}
	return accountOf(c.token)
}

// Retoken returns raw, the kubeconfig that was parsed, with another token in the place of this one. Everything else in it
// stays as it is. It returns false if that is not all that changes for its reader, if the rules refuse the token, or if the result
// is larger than MaxSize.
func (c *Config) Retoken(raw []byte, token string) ([]byte, *Config, bool) {
	if c.token == "" {
		return nil, nil, false
	}
	if len(raw)+bytes.Count(raw, []byte(c.token))*(len(token)-len(c.token)) > MaxSize {
		return nil, nil, false // before it is made: a short token may be there thousands of times
	}
	out := bytes.ReplaceAll(raw, []byte(c.token), []byte(token))
	want, err := c.withToken(token, c.proxyURL)
	if err != nil {
		return nil, nil, false
	}
	got, err := Parse(out, c.rules)
	if err != nil || got.fingerprint != want.fingerprint {
		return nil, nil, false
	}
	return out, got, true
}

// RESTConfig returns a new client configuration for the cluster. Timeouts and rate limits are left to the caller.
func (c *Config) RESTConfig() *rest.Config {
	config := &rest.Config{Host: c.server}
	if strings.HasPrefix(c.server, "https://") { // clientcmd sends no credentials in clear text either
		config.BearerToken, config.Username, config.Password = c.token, c.username, c.password
		config.TLSClientConfig = rest.TLSClientConfig{
			Insecure: c.insecure, ServerName: c.tlsServerName,
			CAData: slices.Clone(c.ca), CertData: slices.Clone(c.cert), KeyData: slices.Clone(c.key),
		}
	}
	if proxy, err := url.Parse(c.proxyURL); err == nil && c.proxyURL != "" { // parsed before, in readProxy
		config.Proxy = http.ProxyURL(proxy)
	}
	return config
}

// String returns the server and the fingerprint.
func (c Config) String() string {
	return c.server + " (" + c.fingerprint + ")"
}

// Format prints String for every verb, so that no log statement can spill the credential.
func (c Config) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(c.String())) }
