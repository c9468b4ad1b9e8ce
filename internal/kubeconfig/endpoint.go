// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/netip"
	"net/url"
	"strings"
)

// Endpoint is an API server that is named without a kubeconfig around it.
type Endpoint struct {
	// Address is https://host[:port], and CA its CA in PEM. Either may be empty.
	Address, CA string
	// AddressField and CAField are where they stand, for errors.
	AddressField, CAField string
	// PinCA is true if nobody else says which CA it is.
	PinCA bool
}

// Check holds an endpoint against the rules that a kubeconfig's server and CA are held against, and returns both as they are
// written there; the server is empty if there is no address. http:// is refused whatever the rules say, and so is a path: Flux
// refuses the one and drops the other (fluxcd/pkg/auth, ParseClusterAddress).
func (e Endpoint) Check(rules Rules) (server string, ca []byte, err error) {
	if e.CA != "" {
		if ca, err = certificates([]byte(e.CA)); err != nil {
			return "", nil, &Error{Reason: ReasonInvalidCA, Field: e.CAField,
				Message: "holds no certificate that parses; write it as PEM, from -----BEGIN CERTIFICATE----- on"}
		}
	}
	if e.Address == "" {
		return "", ca, nil
	}
	host, https := strings.CutPrefix(e.Address, "https://")
	if !https || strings.Contains(host, "/") {
		return "", nil, &Error{Reason: ReasonServerInvalid, Field: e.AddressField, Message: "must be https://host:port, without a path"}
	}
	t, err := parseServer(e.Address, e.AddressField, rules)
	if err != nil {
		return "", nil, err
	}
	if ca == nil && e.PinCA {
		if err := ruleMissingCA.refuse(rules, e.CAField, "is missing"); err != nil {
			return "", nil, err
		}
	}
	return t.url, ca, nil
}

// NamesHub returns whether a URL is one of the hub's own API server, by name or by address.
func (r Rules) NamesHub(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return false
	}
	t, err := parseHost(u, "443")
	if err != nil {
		return false
	}
	name := canonicalHost(u.Hostname())
	if addr, err := netip.ParseAddr(name); err == nil {
		return r.isHub(netip.AddrPortFrom(addr.Unmap(), t.port))
	}
	return isHubHost(name) || r.isForbiddenHost(name, t.port)
}
