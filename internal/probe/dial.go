// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// minPerAddress keeps one of several addresses from getting too little of the time, as net.Dialer does.
const minPerAddress = 2 * time.Second

// dial connects to address, host:port, within opts.Dial and the attempt. It looks the name up once, checks every
// address against the rules, and connects only to these addresses. So a name that answers differently the next time
// (DNS rebinding) gains nothing. A name with both a good and a bad address is refused, since Flux may pick the bad
// one. Errors are *Failure.
func (a *attempt) dial(address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.opts.Dial)
	defer cancel()
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Failure{Reason: ReasonDialFailed, Message: "the server's address is not host:port"}
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, &Failure{Reason: ReasonDialFailed, Message: "the server's port is not a number"}
	}
	addrs, err := a.opts.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, a.lookupFailure(ctx, err)
	}
	for _, addr := range addrs {
		if err := a.check(netip.AddrPortFrom(addr, uint16(port))); err != nil {
			return nil, err
		}
	}
	var first error
	for i, addr := range addrs {
		conn, err := a.dialOne(ctx, netip.AddrPortFrom(addr.Unmap(), uint16(port)), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// dialOne connects to one address, with its share of the time that is left for this and the others.
func (a *attempt) dialOne(ctx context.Context, target netip.AddrPort, left int) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	share := max(time.Until(deadline)/time.Duration(left), minPerAddress)
	dialer := net.Dialer{
		Timeout:   share,
		KeepAlive: -1,
		// The kernel's view of the address that is about to be connected to: the last word, whatever came before.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			actual, err := netip.ParseAddrPort(address)
			if err != nil {
				return &Failure{Reason: ReasonDialFailed, Message: "the server's address is not an IP address"}
			}
			return a.check(actual)
		},
	}
	conn, err := dialer.DialContext(ctx, "tcp", target.String())
	if err != nil {
		return nil, a.dialFailure(err)
	}
	if end, ok := a.ctx.Deadline(); ok {
		// A deadline on the connection itself ends every read and write, in TLS too, whatever the layers above do.
		_ = conn.SetDeadline(end)
	}
	if !a.conns.add(conn) {
		return nil, &Failure{Reason: ReasonTimedOut, Message: "the probe is over"}
	}
	return conn, nil
}

// check returns a *Failure if the rules forbid target.
func (a *attempt) check(target netip.AddrPort) error {
	err := a.opts.Rules.CheckAddrPort(target)
	if err == nil {
		return nil
	}
	var refused *kubeconfig.Error
	if !errors.As(err, &refused) {
		return &Failure{Reason: ReasonForbiddenAddress, Message: "the server's address is forbidden"}
	}
	return &Failure{Reason: ReasonForbiddenAddress, Message: refused.Message}
}

func (a *attempt) lookupFailure(ctx context.Context, err error) *Failure {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound || err == nil:
		return &Failure{Reason: ReasonNameNotFound, Message: "the server's name does not resolve"}
	case ctx.Err() != nil:
		return &Failure{Reason: ReasonDialTimeout, Message: fmt.Sprintf("the server's name was not resolved within %s", a.opts.Dial)}
	}
	return &Failure{Reason: ReasonDialFailed, Message: "the server's name could not be resolved: the DNS server failed"}
}

func (a *attempt) dialFailure(err error) *Failure {
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Failure{Reason: ReasonConnectionRefused, Message: "the server's host refuses the connection: nothing listens on the port"}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &Failure{Reason: ReasonDialFailed, Message: "no route to the server"}
	case isTimeout(err):
		return &Failure{Reason: ReasonDialTimeout, Message: fmt.Sprintf("no connection to the server within %s", a.opts.Dial)}
	}
	return &Failure{Reason: ReasonDialFailed, Message: "no connection to the server"}
}

// connections are all that an attempt opened. Closing them here, and not by way of the transport only, ends whatever still
// reads or writes.
type connections struct {
	mu     sync.Mutex
	closed bool
	open   []net.Conn
}

// add takes conn over; if the attempt is over already, it closes it and returns false.
func (c *connections) add(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return false
	}
	c.open = append(c.open, conn)
	return true
}

// closeAll ends the attempt: connections are closed, and a dial that is still running finds none of them wanted.
func (a *attempt) closeAll() {
	c := &a.conns
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.open {
		_ = conn.Close()
	}
}
