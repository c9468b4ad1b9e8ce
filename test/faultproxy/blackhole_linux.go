// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// backlog is a listener whose queue of connections is full, and that nobody accepts from. Linux then drops further
// SYNs.
type backlog []int

// fillers is how many connections fill the queue of a listener with backlog 0. One is enough; the others only make
// sure.
const fillers = 4

func fillBacklog(address string) (b backlog, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Is4() {
		return nil, &net.AddrError{Err: "not an IPv4 address and a port", Addr: address}
	}
	to := &syscall.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}
	listener, err := b.socket(0)
	if err != nil {
		return b, err
	}
	// Package net sets this too: connections of the mode before may still be closing.
	if err := syscall.SetsockoptInt(listener, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return b, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(listener, to); err != nil {
		return b, os.NewSyscallError("bind", err)
	}
	if err := syscall.Listen(listener, 0); err != nil {
		return b, os.NewSyscallError("listen", err)
	}
	for range fillers {
		conn, err := b.socket(syscall.SOCK_NONBLOCK) // those that find it full would wait for minutes
		if err != nil {
			return b, err
		}
		if err := syscall.Connect(conn, to); err != nil && !errors.Is(err, syscall.EINPROGRESS) {
			return b, os.NewSyscallError("connect", err)
		}
	}
	return b, nil
}

func (b *backlog) socket(flags int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	*b = append(*b, fd)
	return fd, nil
}

// Close closes the listener and resets the connections in its queue.
func (b backlog) Close() error {
	var errs []error
	for _, fd := range b {
		errs = append(errs, os.NewSyscallError("close", syscall.Close(fd)))
	}
	return errors.Join(errs...)
}
