// SPDX-License-Identifier: Apache-2.0

// Package faultyapi is an unreliable API server: a proxy before a real one that counts the requests, and refuses,
// delays or loses those that it is told to. It is for tests of clients that must cope with such a server.
package faultyapi

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Request is one request, as the API server understands it.
type Request struct {
	Time time.Time
	// Verb is the verb of RBAC. A server-side apply is a patch.
	Verb string
	// Resource is empty if the request is not for a resource, such as API discovery. With a subresource it is
	// resource/subresource.
	Resource, Namespace, Name string
	// URI is the path of the request, with its query.
	URI string
}

// Writes returns whether the request changes something. Events do not count: they hold no state, and their senders do
// not wait for them.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Resource != "events"
	}
	return false
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s %s/%s", r.Verb, r.Resource, r.Namespace, r.Name)
}

// Fault is what the proxy does to a request. The zero value forwards it.
type Fault struct {
	// Delay is how long the request waits first.
	Delay time.Duration
	// Landed forwards the request before the rest of the fault happens: it takes effect, and its sender does not
	// learn that.
	Landed bool
	// Status is the status code that the proxy answers in place of the API server.
	Status int
	// Reset ends the connection without an answer.
	Reset bool
	// Hang makes the proxy never answer. The proxy calls it when the request hangs.
	Hang func()
	// Cut ends an answer after this time, such as the answer to a watch.
	Cut time.Duration
}

// Plan decides the fault of each request. It is called concurrently.
type Plan func(Request) Fault

// Server is the proxy. It speaks plain HTTP to its clients, and treats each as the administrator.
type Server struct {
	listener net.Listener
	server   *http.Server
	proxy    *httputil.ReverseProxy
	infos    *request.RequestInfoFactory

	mu       sync.Mutex
	plan     Plan
	requests []Request
}

// Start starts a proxy on loopback before the API server of a client configuration.
func Start(config *rest.Config) (*Server, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	s := &Server{
		proxy: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1, // a watch is to be told at once
			ErrorLog:      log.New(io.Discard, "", 0),
		},
		infos: &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = s.server.Serve(s.listener) }()
	return s, nil
}

// Close ends the proxy and all requests that go through it.
func (s *Server) Close() error { return s.server.Close() }

// Kubeconfig returns a kubeconfig for the proxy.
func (s *Server) Kubeconfig() ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["faulty"] = &clientcmdapi.Cluster{Server: "http://" + s.listener.Addr().String()}
	config.Contexts["faulty"] = &clientcmdapi.Context{Cluster: "faulty"}
	config.CurrentContext = "faulty"
	return clientcmd.Write(*config)
}

// Follow makes the proxy follow a plan from now on; nil ends all faults.
func (s *Server) Follow(plan Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = plan
}

// Requests returns all requests since a time.
func (s *Server) Requests(since time.Time) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if !r.Time.Before(since) {
			out = append(out, r)
		}
	}
	return out
}

// ServeHTTP applies the plan to a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	r := s.read(in)
	s.mu.Lock()
	s.requests = append(s.requests, r)
	plan := s.plan
	s.mu.Unlock()
	var f Fault
	if plan != nil {
		f = plan(r)
	}
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-in.Context().Done():
			return // its sender does not wait any more
		}
	}
	if f.Landed {
		s.proxy.ServeHTTP(&unheard{}, in)
	}
	switch {
	case f.Hang != nil:
		f.Hang()
		<-in.Context().Done()
	case f.Reset:
		reset(w)
	case f.Status != 0:
		answer(w, r, f.Status)
	default:
		ctx := in.Context()
		if f.Cut > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, f.Cut)
			defer cancel()
		}
		s.proxy.ServeHTTP(w, in.WithContext(ctx))
	}
}

func (s *Server) read(in *http.Request) Request {
	r := Request{Time: time.Now(), Verb: in.Method, URI: in.URL.RequestURI()}
	info, err := s.infos.NewRequestInfo(in)
	if err != nil {
		return r
	}
	r.Verb, r.Namespace, r.Name = info.Verb, info.Namespace, info.Name
	if info.IsResourceRequest {
		r.Resource = info.Resource
		if info.Subresource != "" {
			r.Resource += "/" + info.Subresource
		}
	}
	return r
}

// reset ends a connection as a dying server does: with a TCP reset.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // ends it in the way that is left
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// unheard discards an answer that the client must not get.
type unheard struct{ header http.Header }

func (u *unheard) Header() http.Header {
	if u.header == nil {
		u.header = http.Header{}
	}
	return u.header
}

func (u *unheard) Write(b []byte) (int, error) { return len(b), nil }

func (u *unheard) WriteHeader(int) {}
