// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/netip"
	"slices"
	"strings"
)

// Rules says which rows of the Table are lifted and what else is forbidden. The zero value is the strictest that needs no
// knowledge of the hub's surroundings.
type Rules struct {
	// AllowedCIDRs (--allow-target-cidrs) lifts the loopback, link-local and denied-range rules for the addresses inside;
	// the metadata rule only for a prefix of a single address. It never lifts the rule about the hub itself.
	AllowedCIDRs []netip.Prefix
	// AllowInsecureTLS keeps insecure-skip-tls-verify.
	AllowInsecureTLS bool
	// AllowProxy keeps proxy-url. The proxy's own host is then held against the rules like a server's.
	AllowProxy bool
	// AllowMissingCA lets the system's root certificates vouch for the server.
	AllowMissingCA bool
	// AllowHTTP accepts http:// servers. client-go sends no credentials to them.
	AllowHTTP bool
	// AllowServices accepts Services of the management cluster. It is set for the kubeconfigs that Kamaji and Cluster API
	// write, and by a flag for all.
	AllowServices bool
	// Context is the context to use; "" for the current one.
	Context string

	// ForbiddenHosts are further names of the hub's API server, beyond kubernetes.default and its variants.
	ForbiddenHosts []HostPort
	// ForbiddenAddrs are the addresses of the hub's API server. Port 0 stands for any port.
	ForbiddenAddrs []netip.AddrPort
	// ForbiddenCIDRs are ranges that the operator denies, such as the management cluster's pod network.
	ForbiddenCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of the management cluster's Services, as far as they are known.
	ServiceCIDRs []netip.Prefix
}

// HostPort is a name with a port, of which 0 stands for any.
type HostPort struct {
	Host string
	Port uint16
}

// metadataAddrs are addresses of cloud metadata services outside the link-local ranges as well as in them:
// AWS, GCP, Azure, Oracle, OpenStack and others; AWS ECS and EKS Pod Identity; AWS and GCP over IPv6; Alibaba; Azure's
// WireServer; Oracle's older one.
var metadataAddrs = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("169.254.170.23"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
}

var metadataHosts = []string{
	"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
}

var loopbackHosts = []string{
	"localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6",
	"localhost6.localdomain6", "ip6-localhost", "ip6-loopback",
}

// hubHosts are the names under which every pod of the management cluster reaches its API server.
var hubHosts = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")   // RFC 1122, 3.2.1.3
	reserved    = netip.MustParsePrefix("240.0.0.0/4") // RFC 1112, 4; with the broadcast address
)

// CheckAddr returns an error if connecting to addr is not allowed on any port. It is for the addresses that a name
// resolved to, at the time of dialing, and follows the same Table as Parse. The error is an *Error without Field.
func (r Rules) CheckAddr(addr netip.Addr) error {
	return r.CheckAddrPort(netip.AddrPortFrom(addr, 0))
}

// CheckAddrPort is CheckAddr for a known port: it also finds the hub's API server where only one port is forbidden.
func (r Rules) CheckAddrPort(target netip.AddrPort) error {
	addr := target.Addr().Unmap().WithZone("")
	for _, a := range append([]netip.Addr{addr}, embeddedIPv4(addr)...) {
		if err := r.checkOne(netip.AddrPortFrom(a, target.Port()), addr); err != nil {
			return err
		}
	}
	return nil
}

// class is a kind of address that a rule forbids.
type class struct {
	rule   *Rule
	what   string // completes "ADDRESS is …"
	has    func(Rules, netip.Addr) bool
	lifted func(Rules, netip.Addr) bool // nil: never
}

// classes are tried in order; the first that has an address decides.
var classes = []class{
	{ruleUnroutable, "an unspecified, multicast or reserved address", unroutable, nil},
	{ruleMetadata, "the address of a cloud metadata service", func(_ Rules, a netip.Addr) bool { return slices.Contains(metadataAddrs, a) },
		Rules.allowsExactly},
	{ruleLoopback, "a loopback address", func(_ Rules, a netip.Addr) bool { return a.IsLoopback() }, Rules.allows},
	{ruleLinkLocal, "a link-local address", func(_ Rules, a netip.Addr) bool { return a.IsLinkLocalUnicast() }, Rules.allows},
	{ruleService, "in the range of the management cluster's Services", Rules.hasService, Rules.allows},
	{ruleDenied, "in a denied range", func(r Rules, a netip.Addr) bool { return contains(r.ForbiddenCIDRs, a) }, Rules.allows},
}

func (r Rules) hasService(a netip.Addr) bool { return !r.AllowServices && contains(r.ServiceCIDRs, a) }

func unroutable(_ Rules, a netip.Addr) bool {
	return !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || thisNetwork.Contains(a) || reserved.Contains(a)
}

// checkOne checks target against the Table; shown is the address to name in the message.
func (r Rules) checkOne(target netip.AddrPort, shown netip.Addr) error {
	if r.isHub(target) {
		if err := ruleHub.refuse(r, "", shown.String()+" is the hub's own API server"); err != nil {
			return err
		}
	}
	for _, c := range classes {
		if !c.has(r, target.Addr()) {
			continue
		}
		if c.lifted != nil && c.lifted(r, target.Addr()) {
			return nil
		}
		return c.rule.refuse(r, "", shown.String()+" is "+c.what)
	}
	return nil
}

func (r Rules) isHub(target netip.AddrPort) bool {
	return slices.ContainsFunc(r.ForbiddenAddrs, func(f netip.AddrPort) bool {
		return f.Addr().Unmap().WithZone("") == target.Addr() && (f.Port() == 0 || f.Port() == target.Port())
	})
}

// checkHost checks a host as written in a kubeconfig against the Table: an address as CheckAddrPort does, and a name
// against the names that are known to be bad. The addresses of any other name are checked when it is dialed.
func (r Rules) checkHost(host string, port uint16) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return r.CheckAddrPort(netip.AddrPortFrom(addr, port))
	}
	name := canonicalHost(host)
	switch {
	case isHubHost(name) || r.isForbiddenHost(name, port):
		return ruleHub.refuse(r, "", "the host is a name of the hub's own API server")
	case slices.Contains(metadataHosts, name):
		if !r.allowsExactly(metadataAddrs[0]) {
			return ruleMetadata.refuse(r, "", "the host is the name of a cloud metadata service")
		}
	case slices.Contains(loopbackHosts, name) || strings.HasSuffix(name, ".localhost"): // RFC 6761, 6.3
		if !r.allows(netip.AddrFrom4([4]byte{127, 0, 0, 1})) && !r.allows(netip.IPv6Loopback()) {
			return ruleLoopback.refuse(r, "", "the host is a name of the local host")
		}
	case isService(name):
		return ruleService.refuse(r, "", "the host is the name of a Service of the management cluster")
	}
	return nil
}

// IsMetadata returns whether a host is the name of a cloud's metadata service.
func IsMetadata(host string) bool { return slices.Contains(metadataHosts, canonicalHost(host)) }

// isService returns whether a canonical name resolves only inside of the management cluster: SERVICE.NAMESPACE.svc,
// also with a cluster domain. A shorter name may belong to anything (kind's do); its addresses are checked.
func isService(name string) bool {
	labels := strings.Split(name, ".")
	return len(labels) > 2 && labels[2] == "svc" || strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, ".cluster.local")
}

func (r Rules) isForbiddenHost(name string, port uint16) bool {
	return slices.ContainsFunc(r.ForbiddenHosts, func(f HostPort) bool {
		return canonicalHost(f.Host) == name && (f.Port == 0 || f.Port == port)
	})
}

// allows tells whether addr is in AllowedCIDRs.
func (r Rules) allows(addr netip.Addr) bool { return contains(r.AllowedCIDRs, addr) }

// allowsExactly tells whether a prefix of AllowedCIDRs is just addr. A wide prefix, given for other reasons, must not open
// the metadata service.
func (r Rules) allowsExactly(addr netip.Addr) bool {
	return slices.ContainsFunc(r.AllowedCIDRs, func(p netip.Prefix) bool {
		return p.IsSingleIP() && p.Addr().Unmap() == addr
	})
}

// isHubHost also covers kubernetes.default.svc under whatever cluster domain the management cluster has.
func isHubHost(name string) bool {
	return slices.Contains(hubHosts, name) || strings.HasPrefix(name, "kubernetes.default.svc.")
}

// canonicalHost is host as names are compared: lower case, without the dot that marks a fully qualified name.
func canonicalHost(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
		return p.Contains(addr) || p.Addr().Is4In6() && p.Bits() >= 96 &&
			netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Contains(addr)
	})
}

// Prefixes of IPv6 addresses that a gateway or the operating system turns into the IPv4 address inside.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215, as it is used: with the address in the last 32 bits
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291, 2.5.5.1
	siit       = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380
)

// embeddedIPv4 returns the IPv4 address inside an IPv6 one, if there is one, so that 64:ff9b::7f00:1 is checked as
// 127.0.0.1.
func embeddedIPv4(addr netip.Addr) []netip.Addr {
	b := addr.As16()
	switch {
	case !addr.Is6() || addr.IsUnspecified() || addr.IsLoopback():
		return nil
	case nat64.Contains(addr), nat64Local.Contains(addr), compatible.Contains(addr), siit.Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:16]))}
	case sixToFour.Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case teredo.Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	}
	return nil
}
