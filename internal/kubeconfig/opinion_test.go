// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// checkMinimal is a second opinion on what was accepted: it reads Minimal with clientcmd, as Flux does, and holds it against
// every rule without the code under test.
func checkMinimal(tb testing.TB, c *kubeconfig.Config, rules kubeconfig.Rules) {
	tb.Helper()
	checkIdempotent(tb, c, rules)
	loaded, err := clientcmd.Load(c.Minimal())
	if err != nil {
		tb.Fatalf("clientcmd does not load Minimal: %v", err)
	}
	if len(loaded.Clusters) != 1 || len(loaded.AuthInfos) != 1 || len(loaded.Contexts) != 1 {
		tb.Fatalf("Minimal has %d clusters, %d users, %d contexts", len(loaded.Clusters), len(loaded.AuthInfos), len(loaded.Contexts))
	}
	context := loaded.Contexts[loaded.CurrentContext]
	if context == nil || loaded.Clusters[context.Cluster] == nil || loaded.AuthInfos[context.AuthInfo] == nil {
		tb.Fatal("the current context leads nowhere")
	}
	if len(loaded.Extensions)+len(context.Extensions)+len(loaded.Clusters[context.Cluster].Extensions) > 0 || context.Namespace != "" {
		tb.Error("Minimal has extensions or a namespace")
	}
	checkCluster(tb, loaded.Clusters[context.Cluster], rules)
	checkUser(tb, loaded.AuthInfos[context.AuthInfo])
	restConfig, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		tb.Fatalf("clientcmd refuses Minimal: %v", err)
	}
	if _, err := rest.TLSConfigFor(restConfig); err != nil {
		tb.Errorf("client-go refuses the TLS settings: %v", err)
	}
	if diff := cmp.Diff(summary(restConfig), summary(c.RESTConfig())); diff != "" {
		tb.Errorf("RESTConfig differs from clientcmd's: -clientcmd, +RESTConfig:\n%s", diff)
	}
}

func checkCluster(tb testing.TB, cluster *api.Cluster, rules kubeconfig.Rules) {
	tb.Helper()
	secure := strings.HasPrefix(cluster.Server, "https://")
	noCA := len(cluster.CertificateAuthorityData) == 0
	switch {
	case cluster.CertificateAuthority != "":
		tb.Error("the CA is a file")
	case !secure && !rules.AllowHTTP:
		tb.Errorf("server %q is not https", cluster.Server)
	case cluster.InsecureSkipTLSVerify && !(rules.AllowInsecureTLS && noCA):
		tb.Error("the server's certificate is not verified")
	case secure && noCA && !cluster.InsecureSkipTLSVerify && !rules.AllowMissingCA:
		tb.Error("there is no CA")
	case noCA && cluster.TLSServerName != "":
		tb.Error("tls-server-name comes without a CA")
	case !ascii.MatchString(cluster.TLSServerName):
		tb.Errorf("tls-server-name %q is not plain", cluster.TLSServerName)
	case cluster.ProxyURL != "" && !rules.AllowProxy:
		tb.Error("there is a proxy")
	}
	checkServer(tb, cluster.Server, rules)
	if cluster.ProxyURL != "" {
		u, err := url.Parse(cluster.ProxyURL)
		if err != nil {
			tb.Fatalf("the proxy %q does not parse", cluster.ProxyURL)
		}
		checkHost(tb, u.Hostname(), u.Port(), rules)
	}
}

func checkUser(tb testing.TB, user *api.AuthInfo) {
	tb.Helper()
	if user.Exec != nil || user.AuthProvider != nil {
		tb.Error("the user has a plugin")
	}
	if user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" {
		tb.Error("the user has a file")
	}
	if user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0 {
		tb.Error("the user has an impersonation")
	}
	if user.Token == "" && user.Username == "" && (len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0) {
		tb.Error("the user has no credential")
	}
	if strings.ContainsAny(user.Token+user.Username+user.Password, "\r\n\x00") || len(user.Extensions) > 0 {
		tb.Error("the user's credential holds a line break, or there are extensions")
	}
}

// summary is what both ways to a rest.Config must agree on.
func summary(c *rest.Config) []string {
	return []string{
		c.Host, c.BearerToken, c.Username, c.Password, c.ServerName, string(c.CAData), string(c.CertData), string(c.KeyData),
		fmt.Sprint(c.Insecure, c.Proxy != nil, c.ExecProvider, c.AuthProvider, c.Impersonate, c.BearerTokenFile, c.CAFile, c.CertFile, c.KeyFile),
	}
}

func checkServer(tb testing.TB, server string, rules kubeconfig.Rules) {
	tb.Helper()
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Port() == "" || strings.Contains(u.Path, "..") {
		tb.Fatalf("server %q is not plain https://host:port[/path]", server)
	}
	checkHost(tb, u.Hostname(), u.Port(), rules)
}

var (
	ascii        = regexp.MustCompile(`^[0-9A-Za-z._:-]*$`)
	metadataName = regexp.MustCompile(`^metadata\.(goog|google\.internal)\.?$`)
	hubName      = regexp.MustCompile(`^kubernetes(\.default(\.svc(\..*)?)?)?\.?$`)
	localName    = regexp.MustCompile(`^(.*\.)?localhost\.?$`)
	serviceName  = regexp.MustCompile(`^([^.]*\.[^.]*\.svc(\..*)?|.*\.svc|.*\.cluster\.local)\.?$`)
	numericLast  = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)\.?$`)
	never        = prefixes("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "ff00::/8")
	metadata     = prefixes("169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128")
	local        = prefixes("127.0.0.0/8", "::1/128", "169.254.0.0/16", "fe80::/10")
)

// checkHost holds the host of a server or of a proxy against the rules.
func checkHost(tb testing.TB, host, port string, rules kubeconfig.Rules) {
	tb.Helper()
	in := func(a netip.Addr, list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		name := strings.ToLower(host)
		if !ascii.MatchString(name) || numericLast.MatchString(name) {
			tb.Errorf("host %q is an address in disguise, or not ASCII", host)
		}
		if hubName.MatchString(name) || slices.ContainsFunc(rules.ForbiddenHosts, func(f kubeconfig.HostPort) bool { return f.Host == strings.TrimSuffix(name, ".") }) {
			tb.Errorf("host %q is the hub", host)
		}
		if serviceName.MatchString(name) && !localName.MatchString(name) && !rules.AllowServices {
			tb.Errorf("host %q is a Service", host)
		}
		if localName.MatchString(name) && !in(netip.MustParseAddr("127.0.0.1"), rules.AllowedCIDRs) && !in(netip.IPv6Loopback(), rules.AllowedCIDRs) {
			tb.Errorf("host %q is the local host", host)
		}
		if metadataName.MatchString(name) && !slices.Contains(rules.AllowedCIDRs, metadata[0]) {
			tb.Errorf("host %q is the metadata service", host)
		}
		return
	}
	if addr.Zone() != "" {
		tb.Errorf("host %q has a zone", host)
	}
	for _, a := range faces(addr) {
		for _, hub := range rules.ForbiddenAddrs {
			if hub.Addr() == a && (hub.Port() == 0 || fmt.Sprint(hub.Port()) == port) {
				tb.Errorf("host %q is the hub", host)
			}
		}
		switch {
		case in(a, never):
			tb.Errorf("host %q is never a cluster", host)
		case in(a, metadata):
			if !slices.Contains(rules.AllowedCIDRs, netip.PrefixFrom(a, a.BitLen())) {
				tb.Errorf("host %q is the metadata service", host)
			}
		case in(a, rules.ServiceCIDRs) && !rules.AllowServices && !in(a, rules.AllowedCIDRs):
			tb.Errorf("host %q is a Service", host)
		case (in(a, local) || in(a, rules.ForbiddenCIDRs)) && !in(a, rules.AllowedCIDRs):
			tb.Errorf("host %q is local or denied", host)
		}
	}
}

// faces returns addr, and what it stands for.
func faces(addr netip.Addr) []netip.Addr {
	out := []netip.Addr{addr.Unmap()}
	b := addr.As16()
	for prefix, at := range map[string]int{"64:ff9b::/96": 12, "64:ff9b:1::/48": 12, "::/96": 12, "::ffff:0:0:0/96": 12, "2002::/16": 2} {
		if p := netip.MustParsePrefix(prefix); p.Contains(addr) && addr != netip.IPv6Loopback() && !addr.IsUnspecified() {
			out = append(out, netip.AddrFrom4([4]byte(b[at:at+4])))
		}
	}
	return out
}

func checkIdempotent(tb testing.TB, c *kubeconfig.Config, rules kubeconfig.Rules) {
	tb.Helper()
	again, err := kubeconfig.Parse(c.Minimal(), rules)
	if err != nil {
		tb.Fatalf("Minimal is refused: %v", err)
	}
	if !bytes.Equal(c.Minimal(), again.Minimal()) || c.Fingerprint() != again.Fingerprint() || c.TargetFingerprint() != again.TargetFingerprint() {
		tb.Errorf("Minimal of Minimal differs: -first, +second:\n%s", cmp.Diff(string(c.Minimal()), string(again.Minimal())))
	}
}
