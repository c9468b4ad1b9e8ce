// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/chandler-hub/chandler/internal/probe"
)

// TestOnceBlackHole dials a listener whose queue is full: Linux drops further SYNs, as a firewall does.
func TestOnceBlackHole(t *testing.T) {
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(listener) })
	if err := syscall.Bind(listener, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(listener, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	address := name.(*syscall.SockaddrInet4)
	for range 4 { // two are enough; non-blocking, since the later ones hang
		conn, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(conn) })
		if err := syscall.Connect(conn, address); err != nil && err != syscall.EINPROGRESS {
			t.Fatal(err)
		}
	}
	server := netip.AddrPortFrom(netip.AddrFrom4(address.Addr), uint16(address.Port)).String()
	result := once(t, server, probe.Options{})
	if result.Err == nil || result.Err.Reason != probe.ReasonDialTimeout || result.Err.Message != "no connection to the server within 500ms" {
		t.Errorf("got %+v", result.Err)
	}
}
