// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/probe"
)

// TestOnceBlackHole dials a listener whose queue is full: Linux drops further SYNs, as a firewall does.
func TestOnceBlackHole(t *testing.T) {
	listener := must.Get(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)).Or(t)
	t.Cleanup(func() { _ = syscall.Close(listener) })
	must.Do(t, syscall.Bind(listener, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must.Do(t, syscall.Listen(listener, 0))
	name := must.Get(syscall.Getsockname(listener)).Or(t)
	address := name.(*syscall.SockaddrInet4)
	for range 4 { // two are enough; non-blocking, since the later ones hang
		conn := must.Get(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)).Or(t)
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
