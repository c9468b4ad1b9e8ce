// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// server speaks HTTPS, with HTTP/2, in place of the API server.
type server struct {
	http.Server
	done chan struct{}
}

func newServer(l net.Listener, certificate tls.Certificate, handler http.HandlerFunc) *server {
	s := &server{Server: http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // failed handshakes are what it is for
	}, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = s.ServeTLS(l, "", "")
	}()
	return s
}

// Close ends every connection, and so the handlers that wait.
func (s *server) Close() error {
	err := s.Server.Close()
	<-s.done
	return err
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func unavailable(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "no backend", http.StatusServiceUnavailable)
}
