// SPDX-License-Identifier: Apache-2.0

package hubconfig_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

var comparable = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})

// TestPublishedRules: the rules come out of the ConfigMap as the hub has them.
func TestPublishedRules(t *testing.T) {
	some := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	for name, want := range map[string]kubeconfig.Rules{
		"nothing": {},
		"everything": {AllowInsecureTLS: true, AllowProxy: true, AllowMissingCA: true, AllowHTTP: true, AllowServices: true,
			AllowedCIDRs: some("127.0.0.0/8", "::1/128"), ForbiddenCIDRs: some("10.244.0.0/16"), ServiceCIDRs: some("10.96.0.0/12", "fd00::/108"),
			ForbiddenHosts: []kubeconfig.HostPort{{Host: "api.example.org", Port: 6443}},
			ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443"), netip.MustParseAddrPort("[fd00::1]:443")}},
		"one": {AllowHTTP: true},
	} {
		c := &hubconfig.Config{Rules: want}
		got, published, err := hubconfig.PublishedRules(c.Published())
		if d := cmp.Diff(want, got, comparable, cmpopts.EquateEmpty()); err != nil || !published || d != "" {
			t.Errorf("%s: %v, %v; -want +got:\n%s", name, published, err, d)
		}
		if d := cmp.Diff(c.Shared.Published(), hubconfig.OnlyShared(c.Published())); d != "" {
			t.Errorf("%s: the shared flags alone: -want +got:\n%s", name, d)
		}
	}
}

// TestRulesOfAnOlderHub: who publishes none, or not all, has the rules of a hub without flags, and what cannot be read lifts none.
func TestRulesOfAnOlderHub(t *testing.T) {
	whole := (&hubconfig.Config{Rules: kubeconfig.Rules{AllowHTTP: true}}).Published()
	with := func(name, value string) map[string]string {
		out := map[string]string{}
		for k, v := range whole {
			out[k] = v
		}
		if out[name] = value; value == "" {
			delete(out, name)
		}
		return out
	}
	for name, tc := range map[string]struct {
		data map[string]string
		bad  bool
	}{
		"NoConfigMap": {}, "Older": {data: (&hubconfig.Shared{}).Published()}, "OneIsMissing": {data: with("deny-target-cidrs", "")},
		"NoBoolean": {data: with("allow-http", "on"), bad: true}, "NoCIDR": {data: with("allow-target-cidrs", "10.0.0.1"), bad: true},
		"NoServer": {data: with("hub-api-servers", "example.org"), bad: true},
	} {
		got, published, err := hubconfig.PublishedRules(tc.data)
		if d := cmp.Diff(kubeconfig.Rules{}, got, comparable, cmpopts.EquateEmpty()); d != "" || published || (err != nil) != tc.bad {
			t.Errorf("%s: %v, %v; -want +got:\n%s", name, published, err, d)
		}
	}
}
