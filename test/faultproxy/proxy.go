// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Mode is how a Proxy treats its clients.
type Mode string

const (
	// Pass forwards every connection to the API server.
	Pass Mode = "Pass"
	// Refuse does not listen, so connections are refused.
	Refuse Mode = "Refuse"
	// BlackHole answers no SYN, as a firewall that drops packets.
	BlackHole Mode = "BlackHole"
	// TLSHang accepts connections, and never answers the client's hello.
	TLSHang Mode = "TLSHang"
	// HTTPHang speaks TLS with the right certificate, and answers no request. It answers HTTP/2 pings, so that no
	// client can detect the hang by these.
	HTTPHang Mode = "HTTPHang"
	// Unavailable answers every request with 503, like a load balancer without a backend.
	Unavailable Mode = "Unavailable"
	// Expired shows a certificate that has expired.
	Expired Mode = "Expired"
)

// Options configure a Proxy.
type Options struct {
	// Address is where it listens: an IPv4 address and a port. It keeps them for as long as it lives, also in mode
	// Refuse.
	Address string
	// Target is the API server's host and port.
	Target string
	// Certificate is one that clients accept. Outdated is one that has expired.
	Certificate, Outdated tls.Certificate
}

// Proxy answers at one address, in the way of its mode.
type Proxy struct {
	options Options
	mu      sync.Mutex
	current io.Closer // what answers now; nil for nothing
}

// Start returns a Proxy in mode Pass.
func Start(o Options) (*Proxy, error) {
	p := &Proxy{options: o}
	return p, p.Set(Pass)
}

// URL returns the address of the Proxy, for a kubeconfig.
func (p *Proxy) URL() string { return "https://" + p.options.Address }

// Set changes the mode and cuts every connection. For a moment between two modes, connections are refused.
func (p *Proxy) Set(m Mode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stop(); err != nil {
		return err
	}
	next, err := p.start(m)
	if err != nil {
		return fmt.Errorf("fault proxy on %s: mode %s: %w", p.options.Address, m, err)
	}
	p.current = next
	return nil
}

// Close ends the Proxy and every connection.
func (p *Proxy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop()
}

func (p *Proxy) stop() error {
	if p.current == nil {
		return nil
	}
	err := p.current.Close()
	p.current = nil
	return err
}

func (p *Proxy) start(m Mode) (io.Closer, error) {
	switch m {
	case Refuse:
		return nil, nil
	case BlackHole:
		return fillBacklog(p.options.Address)
	}
	l, err := listen(p.options.Address)
	if err != nil {
		return nil, err
	}
	switch m {
	case Pass:
		return newForwarder(l, p.options.Target), nil
	case TLSHang:
		return newForwarder(l, ""), nil
	case HTTPHang:
		return newServer(l, p.options.Certificate, hang), nil
	case Unavailable:
		return newServer(l, p.options.Certificate, unavailable), nil
	case Expired:
		return newServer(l, p.options.Outdated, unavailable), nil
	}
	return nil, errors.Join(errors.New("there is no such mode"), l.Close())
}

// forked is for how long a child that this process has just forked may still have what is closed here: until it becomes another program.
const forked = 5 * time.Second

// listen takes an address that this process listened on a moment ago.
func listen(address string) (net.Listener, error) {
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		l, err := net.Listen("tcp4", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(start) > forked {
			return l, err
		}
	}
}
