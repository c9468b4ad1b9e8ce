// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
)

// perRequest bounds one request, and maxAnswer what is read of its answer, in bytes: clusters belong to other people.
const (
	perRequest = 15 * time.Second
	maxAnswer  = 32 << 20
)

// Connect returns a client for a cluster whose kubeconfig was checked, as the user that Flux impersonates there; "" for none. First it
// probes the cluster as the hub does, so that what is wrong is told in the same words. uid is that of the cluster's namespace kube-system,
// as far as the hub knows it: another cluster is not asked.
func Connect(ctx context.Context, cfg *kubeconfig.Config, user, uid string) (client.Client, error) {
	seen := probe.Once(ctx, cfg, probe.Options{Rules: cfg.Rules(), UserAgent: "chandler"})
	if seen.Err != nil {
		return nil, seen.Err
	}
	if uid != "" && string(seen.ClusterUID) != uid {
		return nil, errors.New("another cluster answers at its address than the one that the hub knows")
	}
	config := cfg.RESTConfig()
	config.UserAgent, config.Timeout, config.QPS, config.Burst = "chandler", perRequest, 50, 100
	config.Impersonate.UserName = user
	config.Dial = guarded(cfg.Rules())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, errors.New("its kubeconfig cannot be used") // the error may quote it
	}
	// A redirect would carry the credential on.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: runtime.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("its API server does not say which kinds it has: %w", err)
	}
	return newCareful(c, config, httpClient)
}

// guarded connects only to addresses that the rules allow, whatever a name resolves to now.
func guarded(rules kubeconfig.Rules) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: probe.DefaultDial, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		actual, err := netip.ParseAddrPort(address)
		if err != nil {
			return errors.New("the server's address is not an IP address")
		}
		return rules.CheckAddrPort(actual)
	}}
	return d.DialContext
}

// bounded reads no more of an answer than a sane API server sends.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil && resp.Body != nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// dryRunless returns whether an API server says that something of it cannot try without doing.
func dryRunless(message string) bool {
	return strings.Contains(message, "does not support dry run") || strings.Contains(message, "dryRun")
}
