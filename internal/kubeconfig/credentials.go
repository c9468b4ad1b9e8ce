// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// readUser takes over the credential in use: a token, a client certificate with its key, a user name with its password.
// A certificate may come beside one of the others; token and password exclude each other, as in clientcmd.
func (c *Config) readUser(m mapping, rules Rules) error {
	if err := checkKnown(m, userFields, rules); err != nil {
		return err
	}
	for _, key := range []string{"as", "as-uid", "as-groups", "as-user-extra"} {
		if m.has(key) {
			return ruleImpersonation.refuse(rules, m.field(key), "impersonation is not allowed")
		}
	}
	if err := c.readSecrets(m); err != nil {
		return err
	}
	if err := c.readClientCertificate(m); err != nil {
		return err
	}
	if c.token == "" && c.username == "" && c.cert == nil {
		return &Error{
			Reason: ReasonCredentialMissing, Field: m.path,
			Message: "has no credential; give token, or client-certificate-data and client-key-data",
		}
	}
	return nil
}

// readSecrets reads token, user name and password. Blanks around a token are dropped: a trailing line break is a common
// slip, and no token has any.
func (c *Config) readSecrets(m mapping) (err error) {
	if c.token, err = m.str("token"); err != nil {
		return err
	}
	if c.username, err = m.str("username"); err != nil {
		return err
	}
	if c.password, err = m.str("password"); err != nil {
		return err
	}
	c.token = strings.TrimSpace(c.token)
	invalid := func(key, message string) error {
		return &Error{Reason: ReasonCredentialInvalid, Field: m.field(key), Message: message}
	}
	switch {
	case strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return invalid("token", "holds characters that no token has, such as blanks or line breaks; remove them")
	case !printable(c.username) || strings.Contains(c.username, ":"): // RFC 7617, 2
		return invalid("username", "holds control characters or a colon; remove them")
	case !printable(c.password):
		return invalid("password", "holds control characters; remove them")
	case (c.username == "") != (c.password == ""):
		return invalid("username", "user name and password must come together")
	case c.token != "" && c.username != "":
		return invalid("token", "comes beside a user name; keep one of the two")
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}

func (c *Config) readClientCertificate(m mapping) error {
	cert, err := m.data("client-certificate-data")
	if err != nil {
		return err
	}
	key, err := m.data("client-key-data")
	if err != nil {
		return err
	}
	invalid := func(key, message string) error {
		return &Error{Reason: ReasonCredentialInvalid, Field: m.field(key), Message: message}
	}
	switch {
	case cert == nil && key == nil:
		return nil
	case cert == nil:
		return invalid("client-certificate-data", "is missing, but client-key-data is there; give both or neither")
	case key == nil:
		return invalid("client-key-data", "is missing, but client-certificate-data is there; give both or neither")
	}
	if c.cert, err = certificates(cert); err != nil {
		return unusable(err, ReasonCredentialInvalid, m.field("client-certificate-data"), err.Error())
	}
	if c.key, err = privateKey(key); err != nil {
		return unusable(err, ReasonCredentialInvalid, m.field("client-key-data"), err.Error())
	}
	// The parser's text is dropped: of what it may quote nothing is known.
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return invalid("client-key-data", "does not parse, or does not belong to client-certificate-data; give the key of that certificate")
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return invalid("client-certificate-data", "does not parse; replace it")
	}
	c.expires = leaf.NotAfter
	return nil
}

// A handshake takes time with the third power of a key's size, and crypto/tls cannot be stopped in it. It has this limit itself for what a
// server shows, and neither for a CA nor for the client's own certificate. An RSA key of so many bits takes less than 5 KiB.
const (
	maxRSABits  = 8192
	maxKeyBytes = 8 << 10
)

// certificates returns the certificates of raw, a PEM text, re-encoded without headers and without whatever stands between
// them. All of them must parse, and have keys of a size that can be used. The errors hold nothing of raw.
func certificates(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	count := 0
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in it does not parse; replace or remove it", count)
		}
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
			return nil, ruleKeySize.refuse(Rules{}, "", fmt.Sprintf("certificate %d in it has an RSA key of %d bits", count, key.N.BitLen()))
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}); err != nil {
			return nil, errors.New("cannot be encoded again")
		}
	}
	if count == 0 {
		return nil, errors.New("holds no PEM certificate; encode the text from -----BEGIN CERTIFICATE----- on as base64")
	}
	return bytes.Clone(out.Bytes()), nil // without the room to grow, which is as much again
}

// privateKey returns the first private key of raw, a PEM text, re-encoded, if it has a size that can be used. The errors hold nothing of
// raw.
func privateKey(raw []byte) ([]byte, error) {
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, errors.New("is encrypted with a passphrase; give it in the clear")
		case block.Type == "PRIVATE KEY" || block.Type == "RSA PRIVATE KEY" || block.Type == "EC PRIVATE KEY":
			if len(block.Bytes) > maxKeyBytes {
				return nil, ruleKeySize.refuse(Rules{}, "", fmt.Sprintf("the key in it has %d KiB", (len(block.Bytes)+1023)>>10))
			}
			return bytes.Clone(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})), nil
		}
	}
	return nil, errors.New("holds no PEM private key; encode the text from -----BEGIN PRIVATE KEY----- on as base64")
}

// latestExpiry is the last moment that Kubernetes can write in a status (RFC 3339 has four digits for the year).
var latestExpiry = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// claims are what the hub reads of a token. Its signature is not verified: only the cluster knows whether it is good.
type claims struct {
	Expiry  *float64 `json:"exp"`
	Issued  *float64 `json:"iat"`
	Subject string   `json:"sub"`
}

// claimsOf reads a JWT (RFC 7519). It returns false if the token is none.
func claimsOf(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	return c, err == nil && json.Unmarshal(payload, &c) == nil
}

// moment returns a time of a claim.
func moment(seconds *float64) (time.Time, bool) {
	if seconds == nil || *seconds <= 0 || *seconds > float64(latestExpiry.Unix()) {
		return time.Time{}, false
	}
	return time.Unix(int64(*seconds), 0).UTC(), true
}

// tokenExpiry returns exp of a JWT (RFC 7519, 4.1.4).
func tokenExpiry(token string) (time.Time, bool) {
	c, ok := claimsOf(token)
	if !ok {
		return time.Time{}, false
	}
	return moment(c.Expiry)
}

// accountPrefix is what the user name of a ServiceAccount begins with.
const accountPrefix = "system:serviceaccount:"

// accountOf returns the ServiceAccount that a token says to be of, and when it was issued by the clock of the cluster, the
// zero time if it does not say.
func accountOf(token string) (account types.NamespacedName, issued time.Time, ok bool) {
	c, ok := claimsOf(token)
	rest, is := strings.CutPrefix(c.Subject, accountPrefix)
	account.Namespace, account.Name, _ = strings.Cut(rest, ":")
	if !ok || !is || len(validation.IsDNS1123Label(account.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(account.Name)) > 0 {
		return types.NamespacedName{}, time.Time{}, false
	}
	issued, _ = moment(c.Issued)
	return account, issued, true
}
