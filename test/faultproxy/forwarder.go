// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"io"
	"net"
	"sync"
)

// forwarder copies bytes between clients and a target. Without a target it only accepts connections.
type forwarder struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

func newForwarder(l net.Listener, target string) *forwarder {
	f := &forwarder{listener: l, target: target, conns: map[net.Conn]bool{}}
	f.running.Go(f.accept)
	return f
}

func (f *forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		if f.add(conn) && f.target != "" {
			f.running.Go(func() { f.forward(conn) })
		}
	}
}

func (f *forwarder) forward(client net.Conn) {
	defer f.drop(client)
	server, err := net.Dial("tcp4", f.target)
	if err != nil || !f.add(server) {
		return
	}
	defer f.drop(server)
	f.running.Go(func() {
		_, _ = io.Copy(server, client)
		f.drop(server)
	})
	_, _ = io.Copy(client, server)
}

// add registers a connection, so that Close ends it. It returns false if Close was called already.
func (f *forwarder) add(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = conn.Close()
		return false
	}
	f.conns[conn] = true
	return true
}

func (f *forwarder) drop(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
	_ = conn.Close()
}

// Close ends every connection, and returns when all goroutines have ended.
func (f *forwarder) Close() error {
	err := f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
	return err
}
