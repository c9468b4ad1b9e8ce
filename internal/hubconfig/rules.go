// SPDX-License-Identifier: Apache-2.0

package hubconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
)

// FlagDeniedCIDRs is the flag with the ranges in which no workload cluster may be.
const FlagDeniedCIDRs = "deny-target-cidrs"

// Names under which the hub publishes what it has found out about its surroundings, which no flag says.
const (
	serviceCIDRs = "service-cidrs"
	ownServers   = "hub-api-servers"
)

// Published returns all that the hub publishes: the shared flags, and its rules for kubeconfigs, by which the command line reaches clusters
// as the hub does. None of it is secret: they are addresses and switches.
func (c *Config) Published() map[string]string {
	out := c.Shared.Published()
	rules := c.Rules
	for name, lifted := range switches(&rules) {
		out[name] = strconv.FormatBool(*lifted)
	}
	for name, prefixes := range ranges(&rules) {
		out[name] = joined(*prefixes)
	}
	servers := []string{}
	for _, h := range rules.ForbiddenHosts {
		servers = append(servers, net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port))))
	}
	for _, a := range rules.ForbiddenAddrs {
		servers = append(servers, a.String())
	}
	maps.Copy(out, publishedRegistrationRules(c.Origins.Rules))
	slices.Sort(servers) // a resolver gives addresses in any order, and a restart writes nothing
	out[ownServers] = strings.Join(slices.Compact(servers), ",")
	return out
}

// OnlyShared returns the shared flags among what a hub has published.
func OnlyShared(data map[string]string) map[string]string {
	shared, out := (&Shared{}).Published(), maps.Clone(data)
	maps.DeleteFunc(out, func(name, _ string) bool { _, ok := shared[name]; return !ok && name != FlagRegistrationRules })
	return out
}

// publishedRegistrationRules returns the rules as the hub publishes them. A hub without any publishes none: their name would be missing
// from what another version has published.
func publishedRegistrationRules(rules []origin.Rule) map[string]string {
	if len(rules) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		panic(err) // strings, and maps and lists of them
	}
	return map[string]string{FlagRegistrationRules: string(text)}
}

// TakeRegistrationRules takes the rules that a hub has published. The command line reads no file of them, since only the hub registers.
func (s *Shared) TakeRegistrationRules(data map[string]string) (err error) {
	s.Origins.Rules = nil
	if text := data[FlagRegistrationRules]; text != "" {
		s.Origins.Rules, err = origin.ParseRules("the hub's "+FlagRegistrationRules, []byte(text))
	}
	return err
}

// PublishedRules returns the rules for kubeconfigs that a hub has published. published is false if it has not published all of them, as an
// older hub: then the rules are those of a hub without flags.
func PublishedRules(data map[string]string) (rules kubeconfig.Rules, published bool, err error) {
	for name := range (&Config{}).Published() {
		if _, ok := data[name]; !ok {
			return kubeconfig.Rules{}, false, nil
		}
	}
	for name, lifted := range switches(&rules) {
		if *lifted, err = strconv.ParseBool(data[name]); err != nil {
			return kubeconfig.Rules{}, false, fmt.Errorf("%s is %q, and must be true or false", name, data[name])
		}
	}
	for name, prefixes := range ranges(&rules) {
		for _, text := range split(data[name]) {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return kubeconfig.Rules{}, false, fmt.Errorf("%s has %q, which is no CIDR such as 10.0.0.0/8", name, text)
			}
			*prefixes = append(*prefixes, p)
		}
	}
	for _, text := range split(data[ownServers]) {
		if addr, err := netip.ParseAddrPort(text); err == nil {
			rules.ForbiddenAddrs = append(rules.ForbiddenAddrs, addr)
			continue
		}
		host, port, err := net.SplitHostPort(text)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || bad != nil {
			return kubeconfig.Rules{}, false, fmt.Errorf("%s has %q, which is no host and port", ownServers, text)
		}
		rules.ForbiddenHosts = append(rules.ForbiddenHosts, kubeconfig.HostPort{Host: host, Port: uint16(n)})
	}
	return rules, true, nil
}

// switches are the rules that a flag lifts as a whole.
func switches(r *kubeconfig.Rules) map[string]*bool {
	return map[string]*bool{
		kubeconfig.FlagInsecureTLS: &r.AllowInsecureTLS, kubeconfig.FlagProxy: &r.AllowProxy, kubeconfig.FlagMissingCA: &r.AllowMissingCA,
		kubeconfig.FlagHTTP: &r.AllowHTTP, kubeconfig.FlagServices: &r.AllowServices,
	}
}

// ranges are the rules about addresses.
func ranges(r *kubeconfig.Rules) map[string]*[]netip.Prefix {
	return map[string]*[]netip.Prefix{
		kubeconfig.FlagTargetCIDRs: &r.AllowedCIDRs, FlagDeniedCIDRs: &r.ForbiddenCIDRs, serviceCIDRs: &r.ServiceCIDRs,
	}
}

func joined(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

func split(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}
