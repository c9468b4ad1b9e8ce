// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/render"
)

// read parses flags as the hub does.
func read(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	f := pflag.NewFlagSet("hub", pflag.ContinueOnError)
	o.addFlags(f)
	must.Do(t, f.Parse(args))
	return o
}

func complete(t *testing.T, hub apiServer, args ...string) *hubconfig.Config {
	t.Helper()
	return must.Get(read(t, args...).complete(hub)).Or(t)
}

var comparable = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})

func TestDefaults(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	hub := apiServer{hosts: []kubeconfig.HostPort{{Host: "api.example.org", Port: 443}}, addrs: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}}
	want := &hubconfig.Config{
		Shared: hubconfig.Shared{
			HubID:              "chandler",
			PlatformNamespaces: []string{"chandler-system", "flux-system"},
			Origins:            origin.Policy{SecretNamespaces: []string{"chandler-system", "flux-system"}},
			Chart:              render.ManifestChart{URL: "http://chandler.chandler-system.svc", Name: "chandler-manifests", Digest: manifestchart.Digest()},
			LearnShards:        true,
		},
		Rules:            kubeconfig.Rules{ForbiddenHosts: hub.hosts, ForbiddenAddrs: hub.addrs},
		DeselectionDelay: 5 * time.Minute,
		TeardownGrace:    time.Hour,
		RemovalDelay:     5 * time.Second,
		RemovalWindow:    time.Hour,
		ChartRetention:   10 * time.Minute,
		ProbeInterval:    time.Minute,
		DocsURL:          "https://github.com/chandler-hub/chandler/blob/main/docs",
		Concurrency:      16,
		WritesOfCluster:  8,
	}
	must.Equal(t, want, complete(t, hub), comparable, cmpopts.EquateEmpty())
	o := read(t)
	if o.MetricsAddress != ":8080" || o.HealthAddress != ":8081" || o.LogLevel != "info" || o.LogEncoding != "json" || o.PprofAddress != "0" || o.namespace != "chandler-system" {
		t.Errorf("got %+v", o)
	}
}

func TestFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "hub")
	c := complete(t, apiServer{}, "--hub-id=eu", "--register-all=kamaji,capi", "--allow-target-cidrs=127.0.0.0/8,::1/128", "--deny-target-cidrs=10.244.0.0/16",
		"--allow-insecure-tls", "--allow-services", "--concurrent=1", "--probe-interval=1s", "--deselection-delay=0", "--teardown-grace=0", "--removal-delay=1s",
		"--chart-retention=0", "--chart-url=http://hub.example.org:5000", "--docs-url=https://docs.example.org/hub")
	want := &hubconfig.Config{
		Shared: hubconfig.Shared{
			HubID:              "eu",
			PlatformNamespaces: []string{"hub", "flux-system"},
			Origins:            origin.Policy{RegisterAll: []string{"kamaji", "capi"}, SecretNamespaces: []string{"hub", "flux-system"}},
			Chart:              render.ManifestChart{URL: "http://hub.example.org:5000", Name: "chandler-manifests", Digest: manifestchart.Digest()},
			LearnShards:        true,
		},
		Rules: kubeconfig.Rules{
			AllowInsecureTLS: true,
			AllowServices:    true,
			AllowedCIDRs:     []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			ForbiddenCIDRs:   []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		},
		ProbeInterval:   time.Second,
		RemovalDelay:    time.Second,
		RemovalWindow:   time.Hour,
		DocsURL:         "https://docs.example.org/hub",
		Concurrency:     1,
		WritesOfCluster: 8,
	}
	must.Equal(t, want, c, comparable, cmpopts.EquateEmpty())
}

func TestSecretNamespaces(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	cases := map[string]struct {
		args []string
		want []string
	}{
		"Default":                      {nil, []string{"chandler-system", "flux-system"}},
		"DefaultOfOtherPlatform":       {[]string{"--platform-namespaces=platform"}, []string{"platform"}},
		"Named":                        {[]string{"--secret-namespaces=clusters"}, []string{"clusters"}},
		"All":                          {[]string{"--secret-namespaces=*"}, []string{"*"}},
		"NamedBesideOtherPlatform":     {[]string{"--platform-namespaces=platform", "--secret-namespaces=a,b"}, []string{"a", "b"}},
		"NamedTwiceAsTheFlagIsAllowed": {[]string{"--secret-namespaces=a", "--secret-namespaces=b"}, []string{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, tc.want, complete(t, apiServer{}, tc.args...).Origins.SecretNamespaces)
		})
	}
}

func TestRefusedFlags(t *testing.T) {
	const numbers = "--concurrent must be at least 1, --probe-interval at least 1s, and no duration may be negative"
	const label = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
		"alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
	cases := map[string]struct{ arg, want string }{
		"HubID":            {"--hub-id=a b", `--hub-id "a b" must fit a label value: ` + label},
		"RegisterAll":      {"--register-all=kamaji,gardener", `--register-all "gardener": write one or more of kamaji, capi`},
		"RegisterSecrets":  {"--register-all=secret", `--register-all "secret": write one or more of kamaji, capi`},
		"Concurrent":       {"--concurrent=0", numbers},
		"DocsURL":          {"--docs-url=docs", `--docs-url "docs": write http:// or https://, a host and a path`},
		"ProbeInterval":    {"--probe-interval=999ms", numbers},
		"DeselectionDelay": {"--deselection-delay=-1s", numbers},
		"TeardownGrace":    {"--teardown-grace=-1s", numbers},
		"ChartRetention":   {"--chart-retention=-1s", numbers},
		"LogLevel":         {"--log-level=trace", `--log-level "trace": write debug, info or error`},
		"LogEncoding":      {"--log-encoding=xml", `--log-encoding "xml": write json or console`},
		"AllowTargetCIDRs": {"--allow-target-cidrs=10.0.0.0/8,10.0.0.1", `--allow-target-cidrs "10.0.0.1": write a CIDR such as 10.0.0.0/8`},
		"DenyTargetCIDRs":  {"--deny-target-cidrs=pods", `--deny-target-cidrs "pods": write a CIDR such as 10.0.0.0/8`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := read(t, tc.arg).complete(apiServer{})
			if err == nil || c != nil {
				t.Fatalf("got %v and no error", c)
			}
			must.Equal(t, tc.want, err.Error())
		})
	}
	if _, err := read(t, "--hub-id=").complete(apiServer{}); err == nil {
		t.Error("an empty --hub-id is accepted")
	}
}

// TestRegistrationRules: the hub starts with rules that are right and publishes them, and not with others.
func TestRegistrationRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("rules: [{name: vcluster, match: {kind: Secret, namespaces: [team-a], names: vc-*}, register: {key: config}}]")
	c := complete(t, apiServer{}, "--registration-rules="+file)
	want := []origin.Rule{{Name: "vcluster", Match: origin.RuleMatch{Kind: "Secret", Namespaces: []string{"team-a"}, Names: "vc-*"}, Register: origin.RuleRegister{Key: "config"}}}
	must.Equal(t, want, c.Origins.Rules)
	asked := &hubconfig.Shared{}
	must.Do(t, asked.TakeRegistrationRules(c.Published()))
	if d := cmp.Diff(want, asked.Origins.Rules); d != "" {
		t.Errorf("what the command line reads: -want +got:\n%s", d)
	}
	if err := asked.TakeRegistrationRules(hubconfig.OnlyShared(complete(t, apiServer{}).Published())); err != nil || asked.Origins.Rules != nil {
		t.Errorf("of a hub without rules: %v, %v", asked.Origins.Rules, err)
	}
	for text, want := range map[string]string{
		"rules: [{name: vcluster, match: {kind: Secret, namespaces: [team-a], nmaes: vc-*}}]": "--registration-rules: " + file + `: rule "vcluster": match.nmaes: there is no such field`,
		"rules: [{name: vcluster, match: {kind: Secret, names: vc-*}}]":                       "--registration-rules: " + file + `: rule "vcluster": match.namespaces: write names of namespaces, or patterns such as team-*; * for all`,
	} {
		write(text)
		if _, err := read(t, "--registration-rules="+file).complete(apiServer{}); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if _, err := read(t, "--registration-rules=/nowhere/rules.yaml").complete(apiServer{}); err == nil || !strings.Contains(err.Error(), "--registration-rules: open /nowhere/rules.yaml") {
		t.Errorf("of no file: %v", err)
	}
}
