// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/netip"
	"net/url"
	"strings"
)

// Endpoint is an API server that is named without a kubeconfig.
type Endpoint struct {
	// Address is https://host[:port], and CA its CA in PEM. Either may be empty.
	Address, CA string
	// AddressField and CAField are the paths of these fields, for errors.
	AddressField, CAField string
	// PinCA is true if no cloud provider supplies the CA.
	PinCA bool
}

// Check checks an endpoint against the rules for a kubeconfig's server and CA. It returns both in their canonical
// form; the server is empty if there is no address. It always refuses http:// and a path, whatever the rules say:
// Flux refuses the former and drops the latter (fluxcd/pkg/auth, ParseClusterAddress).
func (e Endpoint) Check(rules Rules) (server string, ca []byte, err error) {
	if e.CA != "" {
		if ca, err = certificates([]byte(e.CA)); err != nil {
			return "", nil, unusable(err, ReasonInvalidCA, e.CAField,
				"holds no certificate that parses; write it as PEM, from -----BEGIN CERTIFICATE----- on")
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

// NamesHub returns whether a URL is one of the management cluster's own API server, by name or by address.
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
