// SPDX-License-Identifier: Apache-2.0

// Package doctorreader reads from a live hub what package doctor judges.
package doctorreader

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/render"
)

// Where says where to look.
type Where struct{ HubNamespace, FluxNamespace string }

// Read gathers what `chandler doctor` judges. What the caller may not read, it notes in the facts; an error is that the API server
// does not answer, or does not let the caller in.
func Read(ctx context.Context, config *rest.Config, at Where) (*doctor.Facts, error) {
	clock := &dates{}
	config = rest.CopyConfig(config)
	config.Wrap(clock.wrap)
	c, err := live.Connect(config)
	if err != nil {
		return nil, err
	}
	e := &examiner{ctx: ctx, client: c, clock: clock, facts: &doctor.Facts{Now: time.Now(), HubNamespace: at.HubNamespace,
		FluxNamespace: at.FluxNamespace, Epoch: render.Epoch}}
	if err := e.greet(config); err != nil {
		return nil, err
	}
	for _, step := range []func() error{e.hub, e.crds, e.policies, e.rights, e.flux, e.fleet, e.sources, e.access} {
		if err := step(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look at the hub: %w", err)
		}
	}
	return e.facts, nil
}

type examiner struct {
	ctx    context.Context //nolint:containedctx // one examination is made by one command
	client client.Client
	clock  *dates
	facts  *doctor.Facts
	// namespaces are those with sets.
	namespaces map[string]bool
	// failing are the sources there that fail.
	failing []failing
}

// greet asks the API server who it is, and what time it is.
func (e *examiner) greet(config *rest.Config) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("reach the hub at %s: %w", config.Host, err)
	}
	before := time.Now()
	if _, err := d.ServerVersion(); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("reach the hub at %s: %w", config.Host, err)
	}
	trip := time.Since(before)
	if server := e.clock.last(); !server.IsZero() {
		// The server tells whole seconds: half of one is the best guess.
		e.facts.Clock = doctor.Clock{Server: server.Add(time.Second / 2), Caller: before.Add(trip / 2), Trip: trip}
		e.facts.Now = server
	} else {
		e.facts.Skip(doctor.CheckClock, "the clock of the API server: its answers have no Date", "")
	}
	e.configuration()
	return nil
}

// configuration takes the flags that the hub has published, or their defaults.
func (e *examiner) configuration() {
	at := e.facts.HubNamespace
	r := &live.Reader{Client: e.client}
	flags := pflag.NewFlagSet("hub", pflag.ContinueOnError)
	r.Hub.AddFlags(flags, at)
	if err := hubconfig.Adopt(flags, r.Published(e.ctx, at)); err != nil {
		e.facts.Skip(doctor.CheckHub, "the flags of the hub, so the defaults count: "+err.Error(), "")
	}
	e.facts.PlatformNamespaces, e.facts.Shards = r.Hub.PlatformNamespaces, r.Hub.Shards()
	e.facts.TenantShards = len(r.Hub.FluxTenantShards) > 0
}

// read returns whether something was read. If not, the facts say why; a kind that is not installed is nothing to read.
func (e *examiner) read(check doctor.Check, what string, err error) bool {
	switch {
	case err == nil:
		return true
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		e.facts.Skip(check, what+": you may not read them", "ask a user who may to run chandler doctor, or for the right")
	default:
		e.facts.Skip(check, what+": "+err.Error(), "try again")
	}
	return false
}

// pages lists a kind page by page, and calls take with each. It ends early when take returns false.
func (e *examiner) pages(empty client.ObjectList, take func(client.ObjectList) bool, opts ...client.ListOption) error {
	return live.Pages(e.ctx, e.client, func() client.ObjectList { return empty.DeepCopyObject().(client.ObjectList) }, take, opts...)
}

// dates keeps the time that an API server tells.
type dates struct {
	mu sync.Mutex
	at time.Time
}

func (d *dates) last() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *dates) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			return answer, err
		}
		if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			d.mu.Lock()
			d.at = at
			d.mu.Unlock()
		}
		return answer, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
