// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// Defaults of Options.
const (
	DefaultDial  = 5 * time.Second
	DefaultTotal = 10 * time.Second
)

// maxHeader bounds a response's header, in bytes.
const maxHeader = 64 << 10

// Resolver turns a host into its addresses. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options bound a probe. Zero fields take their defaults.
type Options struct {
	// Dial bounds name lookup and connecting. Default DefaultDial.
	Dial time.Duration
	// Total bounds everything, from the lookup to the last byte of the last response. Default DefaultTotal.
	Total time.Duration
	// Rules are held against every address that the server's name resolves to.
	Rules kubeconfig.Rules
	// UserAgent is sent with each request. Default "chandler".
	UserAgent string
	// Clock dates the result. Default the system's. The deadlines always run by the system's clock.
	Clock clock.PassiveClock
	// Resolver looks up the server's name. Default net.DefaultResolver.
	Resolver Resolver
}

func (o Options) withDefaults() Options {
	if o.Dial <= 0 {
		o.Dial = DefaultDial
	}
	if o.Total <= 0 {
		o.Total = DefaultTotal
	}
	if o.UserAgent == "" {
		o.UserAgent = "chandler"
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	return o
}

// Once asks one cluster for its version, its identity and the number of its nodes. It uses one connection, which is closed
// when it returns, and returns within opts.Total whatever the server does. Errors are in the Result.
func Once(ctx context.Context, cfg *kubeconfig.Config, opts Options) Result {
	opts = opts.withDefaults()
	bounded, cancel := context.WithTimeout(ctx, opts.Total)
	defer cancel()
	a := &attempt{ctx: bounded, opts: opts, server: cfg.Server()}
	defer a.closeAll()

	var result Result
	if result.Err = a.connect(cfg); result.Err == nil {
		result.Err = a.ask(&result)
	}
	if result.Err != nil && ctx.Err() != nil {
		result.Err = &Failure{Reason: ReasonCanceled, Message: "the probe was given up"}
	}
	result.Time = opts.Clock.Now()
	return result
}

// attempt is the state of one probe.
type attempt struct {
	ctx    context.Context //nolint:containedctx // lives as long as the one probe; the transport's own contexts may not
	opts   Options
	server string
	client *http.Client
	phase  atomic.Int32 // set by goroutines of the transport
	conns  connections
}

// connect prepares a client of its own for the attempt: nothing is shared, so nothing can be left over or be poisoned.
func (a *attempt) connect(cfg *kubeconfig.Config) *Failure {
	restConfig := cfg.RESTConfig()
	restConfig.UserAgent = a.opts.UserAgent
	tlsConfig, err := rest.TLSConfigFor(restConfig)
	if err != nil { // not its text, which may quote the credential
		return &Failure{Reason: ReasonTLSFailed, Message: "the kubeconfig's certificates cannot be used"}
	}
	transport := &http.Transport{
		Proxy:                  restConfig.Proxy,
		DialContext:            func(_ context.Context, _, address string) (net.Conn, error) { return a.dial(address) },
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    a.opts.Total,
		MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost:        1,
		DisableCompression:     true, // no decompression bombs
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	wrapped, err := rest.HTTPWrappersForConfig(restConfig, transport)
	if err != nil {
		return &Failure{Reason: ReasonUnauthorized, Message: "the kubeconfig's credential cannot be used"}
	}
	a.client = &http.Client{
		Transport:     wrapped,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// trace keeps track of how far a request got, to say in which phase the time ran out. What comes later does not count: the
// end of the attempt may itself make a silent server answer.
func (a *attempt) trace(ctx context.Context) context.Context {
	reach := func(phase int32) {
		if !a.over() {
			a.phase.Store(phase)
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart:    func() { reach(phaseTLS) },
		GotConn:              func(httptrace.GotConnInfo) { reach(phaseRequest) },
		GotFirstResponseByte: func() { reach(phaseResponse) },
	})
}
