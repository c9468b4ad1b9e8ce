// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// readCluster takes over the cluster in use.
func (c *Config) readCluster(m mapping, rules Rules) error {
	if err := checkKnown(m, clusterFields, rules); err != nil {
		return err
	}
	server, err := m.str("server")
	if err != nil {
		return err
	}
	target, err := parseServer(server, m.field("server"), rules)
	if err != nil {
		return err
	}
	c.server, c.host, c.port = target.url, target.host, target.port
	if err := c.readProxy(m, rules); err != nil {
		return err
	}
	return c.readTrust(m, rules, target.secure)
}

// readTrust takes over what decides whose certificate is the server's.
func (c *Config) readTrust(m mapping, rules Rules, secure bool) error {
	if err := c.readCA(m); err != nil {
		return err
	}
	insecure, err := m.boolean("insecure-skip-tls-verify")
	if err != nil {
		return err
	}
	switch field := m.field("insecure-skip-tls-verify"); {
	case insecure:
		if err := ruleInsecureTLS.refuse(rules, field, "the server's certificate must be verified"); err != nil {
			return err
		}
		if c.ca != nil { // client-go refuses both together
			return malformed(field, "contradicts certificate-authority-data; keep one of the two")
		}
	case c.ca == nil && secure:
		if err := ruleMissingCA.refuse(rules, m.field("certificate-authority-data"), "is missing"); err != nil {
			return err
		}
	}
	c.insecure = insecure
	return c.readServerName(m, rules)
}

func (c *Config) readCA(m mapping) error {
	ca, err := m.data("certificate-authority-data")
	if err != nil || ca == nil {
		return err
	}
	if c.ca, err = certificates(ca); err != nil {
		return unusable(err, ReasonInvalidCA, m.field("certificate-authority-data"), err.Error())
	}
	return nil
}

func (c *Config) readServerName(m mapping, rules Rules) error {
	name, err := m.str("tls-server-name")
	if err != nil || name == "" {
		return err
	}
	if c.ca == nil {
		return ruleServerName.refuse(rules, m.field("tls-server-name"), "no CA pins the server")
	}
	if _, err := hostKind(name); err != nil {
		return &Error{Reason: ReasonTLSServerName, Field: m.field("tls-server-name"),
			Message: "is neither a DNS name nor an address; correct or remove it"}
	}
	c.tlsServerName = name
	return nil
}

func (c *Config) readProxy(m mapping, rules Rules) error {
	raw, err := m.str("proxy-url")
	if err != nil || raw == "" {
		return err
	}
	if err := ruleProxy.refuse(rules, m.field("proxy-url"), "proxies are not allowed"); err != nil {
		return err
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return malformed(m.field("proxy-url"), "must be an http://, https:// or socks5:// URL")
	}
	if _, err := parseServerHost(u, m.field("proxy-url"), "1080", rules); err != nil {
		return err
	}
	c.proxyURL = raw
	return nil
}

// target is a server URL taken apart.
type target struct {
	url    string
	host   string
	port   uint16
	secure bool
}

// parseServer reads https://host[:port][/path]. A path is kept, since Rancher serves its clusters below one.
func parseServer(raw, field string, rules Rules) (target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		u = &url.URL{} // the parser's text quotes its input
	}
	if offence := unusual(u, raw); offence != "" {
		return target{}, &Error{Reason: ReasonServerInvalid, Field: field, Message: offence}
	}
	port := "443"
	if u.Scheme == "http" {
		if err := ruleHTTP.refuse(rules, field, "plain http is not allowed"); err != nil {
			return target{}, err
		}
		port = "80"
	}
	t, err := parseServerHost(u, field, port, rules)
	if err != nil {
		return target{}, err
	}
	t.secure = u.Scheme == "https"
	t.url = u.Scheme + "://" + net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) + strings.TrimRight(u.EscapedPath(), "/")
	return t, nil
}

// unusual returns what is wrong with u, parsed from raw, apart from its host; "" if nothing is.
func unusual(u *url.URL, raw string) string {
	switch {
	case raw == "":
		return "is missing; it must be https://host:port"
	case u.Host == "" || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http":
		return "must be https://host:port"
	case u.User != nil:
		return "must not hold a user name or password; put them into the user entry"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		return "must not hold a query or a fragment"
	case !plainPath.MatchString(u.EscapedPath()) || strings.Contains(u.Path, ".."):
		return "has a path with unusual characters; write https://host:port, with a plain path if there must be one"
	}
	return ""
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._~:-]*$`)

// parseServerHost parses host and port of u and checks them against the rules.
func parseServerHost(u *url.URL, field, defaultPort string, rules Rules) (target, error) {
	t, err := parseHost(u, defaultPort)
	if errors.Is(err, errSpelling) {
		return target{}, ruleSpelling.refuse(rules, field, "the host is spelt in an unusual way")
	}
	if err != nil {
		return target{}, &Error{Reason: ReasonServerInvalid, Field: field, Message: "has no valid host and port; correct them"}
	}
	if err := rules.checkHost(t.host, t.port); err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			refused.Field = field
		}
		return target{}, err
	}
	return t, nil
}

// parseHost splits the host and port of u. The host comes back in lower case, an address in canonical form.
func parseHost(u *url.URL, defaultPort string) (target, error) {
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = defaultPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return target{}, errHost
	}
	addr, err := hostKind(host)
	if err != nil {
		return target{}, err
	}
	if host = strings.ToLower(host); addr.IsValid() {
		host = addr.String()
	}
	return target{host: host, port: uint16(n)}, nil
}

var (
	errHost     = errors.New("not a host")
	errSpelling = errors.New("unusual spelling of a host")

	label   = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	numeric = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

// hostKind returns the address that host is, or an invalid one if it is a DNS name. A name whose last label is a number is
// an address to some resolvers (inet_aton; the WHATWG URL standard, section 3.5) and refused with errSpelling.
func hostKind(host string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return netip.Addr{}, errSpelling
		}
		return addr.Unmap(), nil
	}
	for _, r := range host { // before lower case, which makes an ASCII k of the Kelvin sign
		if r > 0x7f || r == '%' { // IDNA maps other digits and dots to ASCII ones
			return netip.Addr{}, errSpelling
		}
	}
	name := canonicalHost(host)
	if name == "" || len(name) > 253 {
		return netip.Addr{}, errHost
	}
	labels := strings.Split(name, ".")
	if numeric.MatchString(labels[len(labels)-1]) {
		return netip.Addr{}, errSpelling
	}
	for _, l := range labels {
		if !label.MatchString(l) {
			return netip.Addr{}, errHost
		}
	}
	return netip.Addr{}, nil
}
