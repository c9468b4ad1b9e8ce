// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// serviceProxy connects Kamaji with its tenants. Kamaji calls them by the names of their Services, which nothing on
// this machine resolves. A Service's port is the port of its API server on loopback.
type serviceProxy struct {
	listener net.Listener
	server   *http.Server
}

func newServiceProxy() (*serviceProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &serviceProxy{listener: l, server: &http.Server{Handler: http.HandlerFunc(connect), ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

func (p *serviceProxy) url() string { return "http://" + p.listener.Addr().String() }

// connect answers CONNECT for Services, and rejects everything else.
func connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil || !strings.HasSuffix(host, ".svc") {
		http.Error(w, "only Services can be reached", http.StatusForbidden)
		return
	}
	server, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", port), 5*time.Second)
	if err != nil {
		http.Error(w, "the Service has no endpoint that answers", http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(server, buffered); done <- struct{}{} }()
	go func() { _, _ = io.Copy(client, server); done <- struct{}{} }()
	<-done // the deferred calls end the other direction
}
