// SPDX-License-Identifier: Apache-2.0

package hubconfig_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

func parsed(t *testing.T, args ...string) (*hubconfig.Shared, *pflag.FlagSet) {
	t.Helper()
	c, f := &hubconfig.Shared{}, pflag.NewFlagSet("any", pflag.ContinueOnError)
	c.AddFlags(f, hubconfig.DefaultNamespace)
	must.Do(t, f.Parse(args))
	return c, f
}

// TestEachSharedFlagIsPublished: what a hub publishes has every flag that it shares with the command line, and no other.
func TestEachSharedFlagIsPublished(t *testing.T) {
	c, f := parsed(t)
	published := c.Published()
	f.VisitAll(func(flag *pflag.Flag) {
		if _, ok := published[flag.Name]; !ok {
			t.Errorf("--%s is shared, and not published", flag.Name)
		}
		delete(published, flag.Name)
	})
	if len(published) > 0 {
		t.Errorf("published, and no flag: %v", published)
	}
}

// TestTheCommandLineTakesWhatTheHubSays: what the hub was started with comes out of the ConfigMap again.
func TestTheCommandLineTakesWhatTheHubSays(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing": nil,
		"everything": {"--hub-id=east", "--platform-namespaces=platform,addons", "--register-all=kamaji,capi", "--secret-namespaces=*",
			"--chart-url=http://charts.example.org", "--flux-shards=a,b", "--flux-tenant-shards=c"},
	} {
		t.Run(name, func(t *testing.T) {
			hub, _ := parsed(t, args...)
			must.Do(t, hub.Complete("elsewhere"))
			got, flags := parsed(t)
			must.Do(t, hubconfig.Adopt(flags, hub.Published()))
			must.Do(t, got.Complete(hubconfig.DefaultNamespace))
			if d := cmp.Diff(hub, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(hubconfig.Shared{}, "LearnShards")); d != "" {
				t.Errorf("-hub +command line:\n%s", d)
			}
		})
	}
}

// TestAdoptTakesNothingElse: a flag that somebody wrote stays, and whoever may write the ConfigMap decides over no other flag.
func TestAdoptTakesNothingElse(t *testing.T) {
	c, f := parsed(t, "--hub-id=mine")
	server := f.String("server", "https://theirs.example.org", "")
	must.Do(t, hubconfig.Adopt(f, map[string]string{"hub-id": "theirs", "server": "https://evil.example.org", "platform-namespaces": "p"}))
	if c.HubID != "mine" || *server != "https://theirs.example.org" || !cmp.Equal(c.PlatformNamespaces, []string{"p"}) {
		t.Errorf("got %q, %q, %q", c.HubID, *server, c.PlatformNamespaces)
	}
}

// TestShardsFor: a cluster that is registered outside of the platform namespaces shares no shard with those of the platform, if it has its own.
func TestShardsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		args             []string
		platform, tenant []string
		all              []string
	}{
		"None":       {nil, nil, nil, nil},
		"Shared":     {[]string{"--flux-shards=a,b"}, []string{"a", "b"}, []string{"a", "b"}, []string{"a", "b"}},
		"Apart":      {[]string{"--flux-shards=a,b", "--flux-tenant-shards=t"}, []string{"a", "b"}, []string{"t"}, []string{"a", "b", "t"}},
		"TenantOnly": {[]string{"--flux-tenant-shards=t"}, nil, []string{"t"}, []string{"", "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			hub, _ := parsed(t, tc.args...)
			must.Do(t, hub.Complete("x"))
			got := [][]string{hub.ShardsFor("flux-system"), hub.ShardsFor("tenants"), hub.Shards()}
			must.Equal(t, [][]string{tc.platform, tc.tenant, tc.all}, got, cmpopts.EquateEmpty())
		})
	}
	for _, args := range [][]string{{"--flux-shards=a,auto"}, {"--flux-tenant-shards=auto"}} {
		if hub, _ := parsed(t, args...); !errors.Is(hub.Complete("x"), hubconfig.ErrFlag) {
			t.Errorf("%v is accepted", args)
		}
	}
	if hub, _ := parsed(t, "--flux-shards="); hub.Complete("x") != nil || hub.LearnShards || len(hub.FluxShards) > 0 {
		t.Errorf("an empty value learns: %+v", hub)
	}
	hub, _ := parsed(t, "--flux-shards=a", "--flux-tenant-shards=a")
	if err := hub.Complete("x"); !errors.Is(err, hubconfig.ErrFlag) {
		t.Errorf("one shard for both: %v", err)
	}
}
