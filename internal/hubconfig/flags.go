// SPDX-License-Identifier: Apache-2.0

package hubconfig

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/origin"
)

const (
	// DefaultNamespace is the hub's namespace, unless its pod says otherwise.
	DefaultNamespace = "chandler-system"
	// DefaultHubID is the hub's ID, unless a flag sets another one.
	DefaultHubID = "chandler"
	// ConfigMapName is the name of the ConfigMap, in the hub's namespace, in which the hub publishes its shared flags
	// for the command line.
	ConfigMapName = "chandler-hub"
)

// AddFlags adds the flags that decide what is rendered for a fleet. The hub and the command line share them, so that
// both have the same help and the same defaults. namespace is the hub's.
func (s *Shared) AddFlags(f *pflag.FlagSet, namespace string) {
	s.AddIdentityFlags(f, namespace)
	f.StringSliceVar(&s.Origins.RegisterAll, "register-all", nil, "kinds of clusters to register without the label: "+
		strings.Join(origin.Flags(), ", "))
	f.StringSliceVar(&s.Origins.SecretNamespaces, "secret-namespaces", nil,
		"namespaces in which a labelled Secret registers a cluster, beside those with label chandler.dev/register-secrets; * for all (default: "+
			"the platform namespaces)")
	f.StringVar(&s.Chart.URL, "chart-url", "", "where Flux reaches the registry with the chart that delivers plain manifests, "+
		"as http://host:port (default: Service chandler in the hub's own namespace)")
	f.StringSliceVar(&s.FluxShards, FlagFluxShards, []string{AutoShards},
		"values of label sharding.fluxcd.io/key that Flux's controllers select by, one for each cluster; "+AutoShards+
			": those that the hub finds")
	f.StringSliceVar(&s.FluxTenantShards, "flux-tenant-shards", nil,
		"such values for clusters that are registered outside of the platform namespaces, in place of those of --flux-shards")
}

// AddIdentityFlags adds the shared flags that decide which objects are the hub's.
func (s *Shared) AddIdentityFlags(f *pflag.FlagSet, namespace string) {
	f.StringVar(&s.HubID, "hub-id", DefaultHubID, "tells this hub's objects on workload clusters from those of hubs on other management "+
		"clusters (there is one hub on each); never change it while add-ons are delivered")
	f.StringSliceVar(&s.PlatformNamespaces, "platform-namespaces", []string{namespace, "flux-system"},
		"namespaces whose AddonSets may select clusters everywhere")
}

// Complete checks the shared flags, and fills in defaults that depend on other flags. namespace is the hub's.
func (s *Shared) Complete(namespace string) error {
	if s.LearnShards = slices.Equal(s.FluxShards, []string{AutoShards}); s.LearnShards {
		s.FluxShards = nil
	}
	if err := s.check(); err != nil {
		return flagError{err}
	}
	if len(s.Origins.SecretNamespaces) == 0 {
		s.Origins.SecretNamespaces = s.PlatformNamespaces
	}
	s.Chart.Name, s.Chart.Digest = manifestchart.Name, manifestchart.Digest()
	if s.Chart.URL == "" {
		s.Chart.URL = fmt.Sprintf("http://chandler.%s.svc", namespace)
	}
	return nil
}

// AutoShards is the value of --flux-shards by which the hub learns the shards from Flux's controllers.
const AutoShards = "auto"

// FlagFluxShards is the name of the flag with the shards, and of the key by which they are published.
const FlagFluxShards = "flux-shards"

// ErrFlag: a flag has a value that it cannot have.
var ErrFlag = errors.New("a flag is wrong")

type flagError struct{ error }

func (flagError) Is(target error) bool { return target == ErrFlag }
func (e flagError) Unwrap() error      { return e.error }

func (s *Shared) check() error {
	if s.HubID == "" {
		return fmt.Errorf("--hub-id must not be empty")
	}
	if errs := validation.IsValidLabelValue(s.HubID); len(errs) > 0 {
		return fmt.Errorf("--hub-id %q must fit a label value: %s", s.HubID, strings.Join(errs, ", "))
	}
	for name, shards := range map[string][]string{FlagFluxShards: s.FluxShards, "flux-tenant-shards": s.FluxTenantShards} {
		for _, shard := range shards {
			if shard == AutoShards {
				return fmt.Errorf("--%s: write %s alone, for --%s", name, AutoShards, FlagFluxShards)
			}
			if errs := validation.IsValidLabelValue(shard); len(errs) > 0 || shard == "" {
				return fmt.Errorf("--%s %q must be a label value: %s", name, shard, strings.Join(errs, ", "))
			}
		}
	}
	for _, shard := range s.FluxTenantShards {
		if slices.Contains(s.FluxShards, shard) {
			return fmt.Errorf("--flux-tenant-shards %q is in --flux-shards too: name shards that serve no cluster of the platform", shard)
		}
	}
	if u, err := url.Parse(s.Chart.URL); s.Chart.URL != "" && (err != nil || u.Host == "" || strings.TrimSuffix(u.Path, "/") != "" ||
		u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--chart-url %q: write http:// or https://, a host, a port if it is not the usual one, and no path", s.Chart.URL)
	}
	for _, kind := range s.Origins.RegisterAll {
		if !slices.Contains(origin.Flags(), kind) {
			return fmt.Errorf("--register-all %q: write one or more of %s", kind, strings.Join(origin.Flags(), ", "))
		}
	}
	return nil
}

// Published returns the values of the shared flags by their names: the data of the ConfigMap.
func (s *Shared) Published() map[string]string {
	return map[string]string{
		"hub-id":              s.HubID,
		"platform-namespaces": strings.Join(s.PlatformNamespaces, ","),
		"register-all":        strings.Join(s.Origins.RegisterAll, ","),
		"secret-namespaces":   strings.Join(s.Origins.SecretNamespaces, ","),
		"chart-url":           s.Chart.URL,
		FlagFluxShards:        strings.Join(s.FluxShards, ","),
		"flux-tenant-shards":  strings.Join(s.FluxTenantShards, ","),
	}
}

// Adopt sets the shared flags in f that the user has not set to the values that a hub has published. It takes no
// other flag from data: otherwise a user who can write data could have the command line talk to another server. It
// returns an error if a flag does not accept its value.
func Adopt(f *pflag.FlagSet, data map[string]string) error {
	for name := range (&Shared{}).Published() {
		value, published := data[name]
		flag := f.Lookup(name)
		if flag == nil || flag.Changed || !published {
			continue
		}
		var err error
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			err = list.Replace(slices.DeleteFunc(strings.Split(value, ","), func(s string) bool { return s == "" }))
		} else {
			err = flag.Value.Set(value)
		}
		if err != nil {
			return fmt.Errorf("the hub's published value of --%s: %w", name, err)
		}
	}
	return nil
}
