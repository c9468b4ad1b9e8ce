// SPDX-License-Identifier: Apache-2.0

package hubconfig

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/runbook"
)

// FlagRegistrationRules is the flag that names the file with registration rules, and the name under which the hub publishes them.
const FlagRegistrationRules = "registration-rules"

// Options are the values of all flags of the hub, not checked yet. The command line has them too: it refuses what the hub would not start
// with.
type Options struct {
	Config         Config
	MetricsAddress string
	HealthAddress  string
	ChartAddress   string
	LogLevel       string
	LogEncoding    string
	PprofAddress   string
	WithoutFence   bool
	FluxNamespace  string
	// RegistrationRules is the file with the rules of Config.Origins, which the hub reads when it starts.
	RegistrationRules string

	allowed, denied []string
}

// AddFlags adds the flags of a hub in a namespace.
func (o *Options) AddFlags(f *pflag.FlagSet, namespace string) {
	c := &o.Config
	c.AddFlags(f, namespace)
	f.StringVar(&o.RegistrationRules, FlagRegistrationRules, "",
		"file with rules by which clusters are registered without the label (sources.md#by-rule), read when the hub starts")
	f.StringVar(&o.FluxNamespace, "flux-namespace", "flux-system",
		"where Flux's controllers run; only --"+FlagFluxShards+"="+AutoShards+" asks for it")
	f.DurationVar(&c.DeselectionDelay, "deselection-delay", 5*time.Minute,
		"how long a cluster stays registered without its label, and keeps what a set does not select it for any more")
	f.DurationVar(&c.TeardownGrace, "teardown-grace", time.Hour,
		"how long to wait for a cluster that does not answer before its add-ons are orphaned")
	f.DurationVar(&c.RemovalDelay, "removal-delay", 5*time.Second,
		"how long an add-on that was dropped stays, so that another set may take it over; at least 1s")
	f.DurationVar(&c.RemovalWindow, "removal-window", guard.DefaultWindow,
		"in how long a removal guard grants what its limit says, if the set does not say another time; at least 1m")
	f.DurationVar(&c.ChartRetention, "chart-retention", 10*time.Minute, "how long a shared HelmChart or source stays after its last use")
	f.StringVar(&o.ChartAddress, "chart-bind-address", ":8082",
		"address of the registry with the chart that delivers plain manifests, 0 for none")
	f.DurationVar(&c.ProbeInterval, "probe-interval", time.Minute, "time between two probes of a cluster that answers")
	f.BoolVar(&c.ClusterProfiles, "cluster-profiles", false,
		"show each registration to other tools as a ClusterProfile (multicluster.x-k8s.io), if that CRD is installed")
	f.StringVar(&c.DocsURL, "docs-url", runbook.DefaultDocs,
		"where the page "+runbook.Page+" is, to which the messages of conditions lead; empty for no address")
	f.IntVar(&c.Concurrency, "concurrent", 16, "how many clusters each controller works on at a time")
	f.StringSliceVar(&o.allowed, kubeconfig.FlagTargetCIDRs, nil,
		"lifts the rules about loopback, link-local and denied addresses for these CIDRs")
	f.StringSliceVar(&o.denied, FlagDeniedCIDRs, nil,
		"CIDRs in which no workload cluster may be, such as the management cluster's pod network")
	f.BoolVar(&c.Rules.AllowInsecureTLS, kubeconfig.FlagInsecureTLS, false, "accept kubeconfigs with insecure-skip-tls-verify")
	f.BoolVar(&c.Rules.AllowProxy, kubeconfig.FlagProxy, false, "accept kubeconfigs with proxy-url")
	f.BoolVar(&c.Rules.AllowMissingCA, kubeconfig.FlagMissingCA, false, "accept kubeconfigs without a CA; the system's roots are used")
	f.BoolVar(&c.Rules.AllowHTTP, kubeconfig.FlagHTTP, false, "accept kubeconfigs with an http:// server")
	f.BoolVar(&c.Rules.AllowServices, kubeconfig.FlagServices, false,
		"accept kubeconfigs in Secrets whose server is a Service of the management cluster")
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of /metrics, 0 for none")
	f.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.BoolVar(&o.WithoutFence, "without-policies", false,
		"be Ready also without the admission policies of config/policies: people may then write what only the hub should")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info or error")
	f.StringVar(&o.LogEncoding, "log-encoding", "json", "json or console")
	f.StringVar(&o.PprofAddress, "pprof-bind-address", "0",
		"address of /debug/pprof, 0 for none; a process that reaches it can read the hub's memory")
}

// Complete checks the flags and returns the configuration.
func (o *Options) Complete(namespace string) (*Config, error) {
	c := o.Config
	if err := c.Complete(namespace); err != nil {
		return nil, err
	}
	if c.Concurrency < 1 || c.ProbeInterval < time.Second || c.DeselectionDelay < 0 || c.TeardownGrace < 0 || c.ChartRetention < 0 {
		return nil, fmt.Errorf("--concurrent must be at least 1, --probe-interval at least 1s, and no duration may be negative")
	}
	if u, err := url.Parse(c.DocsURL); c.DocsURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		strings.ContainsAny(c.DocsURL, "; #?") || len(c.DocsURL) > 256) {
		return nil, fmt.Errorf("--docs-url %q: write http:// or https://, a host and a path", c.DocsURL)
	}
	if c.RemovalWindow < time.Minute {
		return nil, fmt.Errorf("--removal-window must be at least 1m")
	}
	if c.RemovalDelay < time.Second {
		return nil, fmt.Errorf("--removal-delay must be at least 1s: in that time another set takes over what one has dropped")
	}
	if o.ChartAddress == "0" {
		c.Chart.URL = ""
	}
	if !slices.Contains([]string{"debug", "info", "error"}, o.LogLevel) {
		return nil, fmt.Errorf("--log-level %q: write debug, info or error", o.LogLevel)
	}
	if !slices.Contains([]string{"json", "console"}, o.LogEncoding) {
		return nil, fmt.Errorf("--log-encoding %q: write json or console", o.LogEncoding)
	}
	var err error
	if c.Rules.AllowedCIDRs, err = prefixes(kubeconfig.FlagTargetCIDRs, o.allowed); err != nil {
		return nil, err
	}
	if c.Rules.ForbiddenCIDRs, err = prefixes(FlagDeniedCIDRs, o.denied); err != nil {
		return nil, err
	}
	return &c, nil
}

func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, t := range texts {
		p, err := netip.ParsePrefix(t)
		if err != nil {
			return nil, fmt.Errorf("--%s %q: write a CIDR such as 10.0.0.0/8", flag, t)
		}
		out = append(out, p)
	}
	return out, nil
}
