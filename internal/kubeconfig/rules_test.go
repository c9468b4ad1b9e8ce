// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"net/netip"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

func TestServerHosts(t *testing.T) {
	cases := map[string]struct {
		reason string
		server string
		rules  kubeconfig.Rules
		want   string
	}{
		"Name":            {reason: "a public name", server: "https://api.example.org"},
		"Private":         {reason: "clusters live in private networks", server: "https://10.0.0.1:6443"},
		"Service":         {reason: "whatever runs beside the hub", server: "https://tenant1.tenants.svc:6443", want: kubeconfig.ReasonAddress},
		"ServiceFQDN":     {reason: "the same, fully qualified", server: "https://tenant1.tenants.svc.cluster.local.:6443", want: kubeconfig.ReasonAddress},
		"ServiceDomain":   {reason: "with a cluster domain of one's own", server: "https://tenant1.tenants.SVC.corp.example:6443", want: kubeconfig.ReasonAddress},
		"ServiceShort":    {reason: "kind's --internal; it is looked at when it is dialed", server: "https://fleet-control-plane:6443"},
		"ServicePod":      {reason: "a pod of a headless Service", server: "https://db-0.db.team.svc.cluster.local", want: kubeconfig.ReasonAddress},
		"ServiceOK":       {reason: "Kamaji's admin.svc", server: "https://tenant1.tenants.svc:6443", rules: kubeconfig.Rules{AllowServices: true}},
		"ServiceCIDR":     {reason: "a Service by its address", server: "https://10.96.1.2", rules: kubeconfig.Rules{ServiceCIDRs: prefixes("10.96.0.0/16")}, want: kubeconfig.ReasonAddress},
		"ServiceCIDROK":   {reason: "Kamaji's admin.conf with a ClusterIP", server: "https://10.96.1.2", rules: kubeconfig.Rules{ServiceCIDRs: prefixes("10.96.0.0/16"), AllowServices: true}},
		"ServiceAllowed":  {reason: "one address among them", server: "https://10.96.1.2", rules: kubeconfig.Rules{ServiceCIDRs: prefixes("10.96.0.0/16"), AllowedCIDRs: prefixes("10.96.1.2/32")}},
		"ServiceDenied":   {reason: "the operator denies it for all", server: "https://10.96.1.2", rules: kubeconfig.Rules{ServiceCIDRs: prefixes("10.96.0.0/16"), ForbiddenCIDRs: prefixes("10.96.0.0/12"), AllowServices: true}, want: kubeconfig.ReasonAddress},
		"NotService":      {reason: "svc as any other label", server: "https://svc.example.org"},
		"IPv6":            {reason: "an address in brackets", server: "https://[2001:db8::1]:6443"},
		"Underscore":      {reason: "some DNS zones have them", server: "https://my_cluster.example.org"},
		"Localhost":       {reason: "the hub itself", server: "https://localhost:6443", want: kubeconfig.ReasonAddress},
		"LocalhostCase":   {reason: "names are compared without case", server: "https://LocalHost:6443", want: kubeconfig.ReasonAddress},
		"LocalhostDot":    {reason: "a trailing dot changes nothing", server: "https://localhost.:6443", want: kubeconfig.ReasonAddress},
		"LocalhostSub":    {reason: "RFC 6761", server: "https://a.localhost", want: kubeconfig.ReasonAddress},
		"LocalhostOK":     {reason: "the demo's flag", server: "https://localhost:6443", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.0/8")}},
		"IP6Localhost":    {reason: "Debian's name for it", server: "https://ip6-localhost", want: kubeconfig.ReasonAddress},
		"Loopback":        {reason: "all of 127/8", server: "https://127.9.9.9", want: kubeconfig.ReasonAddress},
		"LoopbackOK":      {reason: "the demo's flag", server: "https://127.0.0.1", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.1/32")}},
		"LoopbackOther":   {reason: "only that address", server: "https://127.0.0.2", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.1/32")}, want: kubeconfig.ReasonAddress},
		"Loopback6":       {reason: "IPv6", server: "https://[::1]:6443", want: kubeconfig.ReasonAddress},
		"Loopback6Long":   {reason: "IPv6, written out", server: "https://[0:0:0:0:0:0:0:1]:6443", want: kubeconfig.ReasonAddress},
		"Mapped":          {reason: "IPv4 in IPv6", server: "https://[::ffff:127.0.0.1]:6443", want: kubeconfig.ReasonAddress},
		"MappedHex":       {reason: "IPv4 in IPv6, in hex", server: "https://[::ffff:7f00:1]:6443", want: kubeconfig.ReasonAddress},
		"Compatible":      {reason: "the older form", server: "https://[::127.0.0.1]:6443", want: kubeconfig.ReasonAddress},
		"NAT64":           {reason: "a gateway makes it 127.0.0.1", server: "https://[64:ff9b::7f00:1]", want: kubeconfig.ReasonAddress},
		"SixToFour":       {reason: "a gateway makes it 169.254.169.254", server: "https://[2002:a9fe:a9fe::1]", want: kubeconfig.ReasonAddress},
		"Decimal":         {reason: "inet_aton takes it for 127.0.0.1", server: "https://2130706433", want: kubeconfig.ReasonServerInvalid},
		"Hex":             {reason: "inet_aton takes it for 127.0.0.1", server: "https://0x7f.1", want: kubeconfig.ReasonServerInvalid},
		"HexWhole":        {reason: "inet_aton takes it for 127.0.0.1", server: "https://0x7f000001", want: kubeconfig.ReasonServerInvalid},
		"Octal":           {reason: "8 or 10?", server: "https://0177.0.0.1", want: kubeconfig.ReasonServerInvalid},
		"Short":           {reason: "inet_aton takes it for 127.0.0.1", server: "https://127.1", want: kubeconfig.ReasonServerInvalid},
		"AddressDot":      {reason: "no address has a trailing dot", server: "https://127.0.0.1.:6443", want: kubeconfig.ReasonServerInvalid},
		"SpellingNever":   {reason: "the flag lifts addresses, not spellings", server: "https://127.1", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.0/8")}, want: kubeconfig.ReasonServerInvalid},
		"FullWidth":       {reason: "IDNA maps it to 127.0.0.1", server: "https://１２７.0.0.1", want: kubeconfig.ReasonServerInvalid},
		"IdeographicDot":  {reason: "IDNA maps it to a dot", server: "https://127。0。0。1", want: kubeconfig.ReasonServerInvalid},
		"Zone":            {reason: "zones are local to a host", server: "https://[fe80::1%25eth0]:6443", want: kubeconfig.ReasonServerInvalid},
		"LinkLocal":       {reason: "metadata services live there", server: "https://169.254.1.1", want: kubeconfig.ReasonAddress},
		"LinkLocal6":      {reason: "IPv6", server: "https://[fe80::1]", want: kubeconfig.ReasonAddress},
		"LinkLocalOK":     {reason: "the flag", server: "https://169.254.1.1", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("169.254.0.0/16")}},
		"Metadata":        {reason: "hands out credentials", server: "https://169.254.169.254", want: kubeconfig.ReasonAddress},
		"MetadataWide":    {reason: "a wide prefix does not open it", server: "https://169.254.169.254", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("0.0.0.0/0")}, want: kubeconfig.ReasonAddress},
		"MetadataExact":   {reason: "the very address does", server: "https://169.254.169.254", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("169.254.169.254/32")}},
		"Metadata6":       {reason: "AWS over IPv6", server: "https://[fd00:ec2::254]", want: kubeconfig.ReasonAddress},
		"MetadataAlibaba": {reason: "outside link-local", server: "https://100.100.100.200", want: kubeconfig.ReasonAddress},
		"MetadataName":    {reason: "Google's name", server: "https://metadata.google.internal.", want: kubeconfig.ReasonAddress},
		"Unspecified":     {reason: "Linux takes it for the local host", server: "https://0.0.0.0:6443", want: kubeconfig.ReasonAddress},
		"ThisNetwork":     {reason: "RFC 1122", server: "https://0.1.2.3", want: kubeconfig.ReasonAddress},
		"Unspecified6":    {reason: "Linux takes it for the local host", server: "https://[::]:6443", want: kubeconfig.ReasonAddress},
		"Multicast":       {reason: "no cluster", server: "https://224.0.0.1", want: kubeconfig.ReasonAddress},
		"Multicast6":      {reason: "no cluster", server: "https://[ff02::1]", want: kubeconfig.ReasonAddress},
		"Broadcast":       {reason: "no cluster, and no flag lifts it", server: "https://255.255.255.255", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("0.0.0.0/0")}, want: kubeconfig.ReasonAddress},
		"Hub":             {reason: "the hub", server: "https://kubernetes.default.svc", want: kubeconfig.ReasonHub},
		"HubShort":        {reason: "the hub", server: "https://kubernetes", want: kubeconfig.ReasonHub},
		"HubDefault":      {reason: "the hub", server: "https://kubernetes.default", want: kubeconfig.ReasonHub},
		"HubFQDN":         {reason: "the hub, whatever the domain", server: "https://KUBERNETES.default.svc.corp.example.:443", want: kubeconfig.ReasonHub},
		"HubNotCIDR":      {reason: "the CIDR flag does not lift it", server: "https://10.96.0.1", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("10.96.0.0/12"), ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:0")}}, want: kubeconfig.ReasonHub},
		"HubName":         {reason: "a name that the caller knows", server: "https://Hub.example.org.", rules: kubeconfig.Rules{ForbiddenHosts: []kubeconfig.HostPort{{Host: "hub.example.ORG"}}}, want: kubeconfig.ReasonHub},
		"HubNamePort":     {reason: "the hub of a demo", server: "https://localhost:6443", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.0/8"), ForbiddenHosts: []kubeconfig.HostPort{{Host: "localhost", Port: 6443}}}, want: kubeconfig.ReasonHub},
		"HubNameOther":    {reason: "another port of that name is not the hub", server: "https://localhost:6444", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.0/8"), ForbiddenHosts: []kubeconfig.HostPort{{Host: "localhost", Port: 6443}}}},
		"HubPort":         {reason: "one port on the local host is the hub", server: "https://127.0.0.1:1", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.0/8"), ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}}, want: kubeconfig.ReasonHub},
		"HubOtherPort":    {reason: "another one is not", server: "https://127.0.0.1:2", rules: kubeconfig.Rules{AllowedCIDRs: prefixes("127.0.0.0/8"), ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}}},
		"Denied":          {reason: "the operator's range", server: "https://10.1.2.3", rules: kubeconfig.Rules{ForbiddenCIDRs: prefixes("10.0.0.0/8")}, want: kubeconfig.ReasonAddress},
		"DeniedOK":        {reason: "with a hole", server: "https://10.1.2.3", rules: kubeconfig.Rules{ForbiddenCIDRs: prefixes("10.0.0.0/8"), AllowedCIDRs: prefixes("10.1.0.0/16")}},
		"NoScheme":        {reason: "client-go would guess", server: "api.example.org:6443", want: kubeconfig.ReasonServerInvalid},
		"OtherScheme":     {reason: "not http at all", server: "unix:///run/x.sock", want: kubeconfig.ReasonServerInvalid},
		"UserInfo":        {reason: "credentials belong elsewhere, and it hides the host", server: "https://good.example.org@127.0.0.1", want: kubeconfig.ReasonServerInvalid},
		"Query":           {reason: "no API server has one", server: "https://a.b/?x=y", want: kubeconfig.ReasonServerInvalid},
		"Fragment":        {reason: "no API server has one", server: "https://a.b/#x", want: kubeconfig.ReasonServerInvalid},
		"EmptyFragment":   {reason: "nor an empty one", server: "https://a.b/#", want: kubeconfig.ReasonServerInvalid},
		"DotDot":          {reason: "paths are plain", server: "https://a.b/x/../y", want: kubeconfig.ReasonServerInvalid},
		"Escapes":         {reason: "paths are plain", server: "https://a.b/%2e%2e/y", want: kubeconfig.ReasonServerInvalid},
		"Backslash":       {reason: "browsers and Go disagree", server: `https://a.b\\@c.d`, want: kubeconfig.ReasonServerInvalid},
		"Blank":           {reason: "no host has one", server: "https://a b", want: kubeconfig.ReasonServerInvalid},
		"PortZero":        {reason: "no port", server: "https://a.b:0", want: kubeconfig.ReasonServerInvalid},
		"PortHigh":        {reason: "no port", server: "https://a.b:65536", want: kubeconfig.ReasonServerInvalid},
		"NoHost":          {reason: "no host", server: "https://:6443", want: kubeconfig.ReasonServerInvalid},
		"DotOnly":         {reason: "no host", server: "https://.:6443", want: kubeconfig.ReasonServerInvalid},
		"LongLabel":       {reason: "RFC 1035", server: "https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b", want: kubeconfig.ReasonServerInvalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := document(`server: "`+tc.server+`", certificate-authority-data: "{{.CA}}"`, goodUser)
			c, err := kubeconfig.Parse(fill(t, text), tc.rules)
			if diff := cmp.Diff(tc.want, got(t, err).Reason); diff != "" {
				t.Errorf("%s: %s: -want, +got:\n%s", tc.server, tc.reason, diff)
			}
			if err == nil {
				checkIdempotent(t, c, tc.rules)
			}
		})
	}
}

func TestCheckAddr(t *testing.T) {
	cases := map[string]struct {
		reason string
		addr   netip.Addr
		rules  kubeconfig.Rules
		want   string
	}{
		"Public":       {reason: "anything else is allowed", addr: netip.MustParseAddr("192.0.2.1")},
		"Loopback":     {reason: "a name may resolve to it", addr: netip.MustParseAddr("127.0.0.1"), want: kubeconfig.ReasonAddress},
		"Mapped":       {reason: "resolvers return this form", addr: netip.MustParseAddr("::ffff:127.0.0.1"), want: kubeconfig.ReasonAddress},
		"MappedPrefix": {reason: "a prefix may be written in this form too", addr: netip.MustParseAddr("127.0.0.1"), rules: kubeconfig.Rules{AllowedCIDRs: prefixes("::ffff:127.0.0.0/104")}},
		"Zone":         {reason: "the zone does not hide the address", addr: netip.MustParseAddr("fe80::1%eth0"), want: kubeconfig.ReasonAddress},
		"Teredo":       {reason: "holds 127.0.0.1, inverted", addr: netip.MustParseAddr("2001::80ff:fffe"), want: kubeconfig.ReasonAddress},
		"Invalid":      {reason: "the zero address", want: kubeconfig.ReasonAddress},
		"HubAnyPort":   {reason: "port 0 stands for any", addr: netip.MustParseAddr("10.96.0.1"), rules: kubeconfig.Rules{ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("[::ffff:10.96.0.1]:0")}}, want: kubeconfig.ReasonHub},
		"HubOnePort":   {reason: "without a port nothing can be said about one", addr: netip.MustParseAddr("10.96.0.1"), rules: kubeconfig.Rules{ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, got(t, tc.rules.CheckAddr(tc.addr)).Reason); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTable keeps the table fit for documentation.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, row := range kubeconfig.Table() {
		if row.Name == "" || row.Reason == "" || row.Input == "" || row.Why == "" || row.Remedy == "" || names[row.Name] {
			t.Errorf("row %q is incomplete or there twice", row.Name)
		}
		names[row.Name] = true
		if row.Flag != "" && !regexp.MustCompile(`^allow-[a-z-]+$`).MatchString(row.Flag) {
			t.Errorf("row %q has the flag %q", row.Name, row.Flag)
		}
	}
	for _, name := range []string{"exec", "file-reference", "hub", "loopback"} {
		if !names[name] {
			t.Errorf("row %q is missing", name)
		}
	}
}
