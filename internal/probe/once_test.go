// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/probe"
)

// Deadlines of the tests. slack is what a busy machine may add.
const (
	dial  = 500 * time.Millisecond
	total = 1500 * time.Millisecond
	slack = 10 * time.Second
)

// secret is in everything that a misbehaving server sends.
const secret = "marker-of-the-server"

// epoch is what the fake clock says.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func once(t *testing.T, server string, opts probe.Options) probe.Result {
	t.Helper()
	if opts.Dial == 0 {
		opts.Dial = dial
	}
	if opts.Total == 0 {
		opts.Total = total
	}
	if opts.Rules.AllowedCIDRs == nil {
		opts.Rules = loopback
	}
	if opts.Clock == nil {
		opts.Clock = clocktesting.NewFakePassiveClock(epoch)
	}
	start := time.Now()
	result := probe.Once(t.Context(), config(t, server), opts)
	if took := time.Since(start); took > opts.Total+slack {
		t.Errorf("took %s, more than %s", took, opts.Total)
	}
	if !result.Time.Equal(opts.Clock.Now()) {
		t.Errorf("Time is %s, want the clock's", result.Time)
	}
	return result
}

func TestOnceAnswered(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	cases := map[string]struct {
		reason string
		nodes  http.HandlerFunc
		want   int32
		known  bool
	}{
		"Remaining":    {reason: "one node and 41 more", want: 42, known: true},
		"None":         {reason: "a cluster without nodes", nodes: text(`{"kind":"NodeList","metadata":{},"items":[]}`), known: true},
		"Full":         {reason: "a server without limits sends all", nodes: text(`{"kind":"NodeList","items":[{},{},{}]}`), want: 3, known: true},
		"Beyond":       {reason: "nonsense: it has limits, and sends more than was asked for", nodes: text(`{"kind":"NodeList","metadata":{"remainingItemCount":1},"items":[{},{}]}`)},
		"NoObject":     {reason: "that is no node", nodes: text(`{"kind":"NodeList","items":[0]}`)},
		"Forbidden":    {reason: "no right to list nodes is tolerated", nodes: status(http.StatusForbidden)},
		"Error":        {reason: "an error is tolerated", nodes: status(http.StatusInternalServerError)},
		"Hangs":        {reason: "even silence is tolerated", nodes: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"NoCount":      {reason: "there are more, but how many?", nodes: text(`{"kind":"NodeList","metadata":{"continue":"x"},"items":[{}]}`)},
		"Negative":     {reason: "nonsense", nodes: text(`{"kind":"NodeList","metadata":{"remainingItemCount":-5},"items":[{}]}`)},
		"Overflow":     {reason: "nonsense", nodes: text(`{"kind":"NodeList","metadata":{"remainingItemCount":2147483647},"items":[{}]}`)},
		"AnotherThing": {reason: "not a list of nodes", nodes: text(`{"kind":"Status"}`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := once(t, api(t, map[string]http.HandlerFunc{"/api/v1/nodes": tc.nodes}), probe.Options{Dial: slack, Total: slack})
			want := probe.Result{
				Time: epoch, Version: "v1.34.1+k3s1", ClusterUID: "11111111-2222-3333-4444-555555555555", Nodes: tc.want, NodesKnown: tc.known,
			}
			if diff := cmp.Diff(want, result); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOnceMisbehaving runs against real servers, each of which is wrong in its own way.
func TestOnceMisbehaving(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		server  func(t *testing.T) string
		want    string
		message string
	}{
		"Refused":     {reason: "nothing listens", server: closedPort, want: probe.ReasonConnectionRefused, message: "the server's host refuses the connection: nothing listens on the port"},
		"TLSHangs":    {reason: "accepts, and never says a word", server: func(t *testing.T) string { return raw(t, untilClosed) }, want: probe.ReasonTimedOut, message: "the server accepts connections, but did not finish the TLS handshake within 1.5s"},
		"TLSCloses":   {reason: "closes at once", server: func(t *testing.T) string { return raw(t, func(net.Conn) {}) }, want: probe.ReasonTLSFailed, message: "the server ended the TLS handshake"},
		"NoTLS":       {reason: "speaks HTTP", server: func(t *testing.T) string { return raw(t, plainHTTP) }, want: probe.ReasonTLSFailed, message: "the server does not speak TLS on this port"},
		"NoTLSAtAll":  {reason: "speaks something else", server: func(t *testing.T) string { return raw(t, say("SSH-2.0-"+secret+"\r\n")) }, want: probe.ReasonTLSFailed, message: "the server does not speak TLS on this port"},
		"UnknownCA":   {reason: "signed by another CA", server: certified(otherCA, nil), want: probe.ReasonTLSFailed, message: "the server's certificate was not signed by the CA in the kubeconfig"},
		"Expired":     {reason: "expired", server: certified(testCA, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), want: probe.ReasonTLSFailed, message: "the server's certificate has expired"},
		"WrongName":   {reason: "for another host", server: certified(testCA, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{secret} }), want: probe.ReasonTLSFailed, message: "the server's certificate is not valid for the host name or address in the kubeconfig"},
		"WantsCert":   {reason: "refuses us after the handshake", server: wantsClientCert, want: probe.ReasonTLSFailed, message: "the server refused the TLS connection (tls: certificate required); the client certificate may have expired"},
		"HTTPHangs":   {reason: "takes the request, never answers", server: answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), want: probe.ReasonTimedOut, message: "the server accepts connections, but sent no answer within 1.5s"},
		"HeaderHangs": {reason: "half a header", server: speaks("HTTP/1.1 200 OK\r\nX-A: " + secret), want: probe.ReasonTimedOut, message: "the server's answer was not complete within 1.5s"},
		"BodyHangs":   {reason: "slow loris", server: speaks("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":"), want: probe.ReasonTimedOut, message: "the server's answer was not complete within 1.5s"},
		"BodyDrips":   {reason: "one blank after the other", server: drips(time.Millisecond), want: probe.ReasonTimedOut, message: "the server's answer was not complete within 1.5s"},
		"BodyEndless": {reason: "blanks as fast as they go", server: floods("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat(" ", 64<<10)), want: probe.ReasonNotKubernetes, message: "the answer is too large"},
		"HeadEndless": {reason: "headers as fast as they go", server: floods("HTTP/1.1 200 OK\r\n", "X-A: "+secret+"\r\n"), want: probe.ReasonNotKubernetes, message: "the server does not answer in HTTP"},
		"Informed":    {reason: "interim answers for ever", server: floods("", "HTTP/1.1 103 Early Hints\r\n\r\n"), want: probe.ReasonNotKubernetes, message: "the server does not answer in HTTP"},
		"BodyCut": {reason: "closes in the middle", server: func(t *testing.T) string {
			return rawTLS(t, say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"+secret))
		}, want: probe.ReasonConnectionLost, message: "the server closed the connection before its answer was complete"},
		"NoHTTP": {reason: "TLS, but no HTTP", server: speaks(secret + "\r\n\r\n"), want: probe.ReasonNotKubernetes, message: "the server does not answer in HTTP"},
		"HTML":   {reason: "a web server", server: answers(writes(200, "<html>"+secret)), want: probe.ReasonNotKubernetes, message: "the answer is not JSON as Kubernetes sends it"},
		"JSON":   {reason: "another API", server: answers(writes(200, `{"version":"`+secret+`"}`)), want: probe.ReasonNotKubernetes, message: "the answer to /version holds no version of Kubernetes"},
		"Evil":   {reason: "a version that wants into a status", server: answers(writes(200, `{"gitVersion":"v1.34.0 <b>`+secret+`"}`)), want: probe.ReasonNotKubernetes, message: "the answer to /version holds no version of Kubernetes"},
		"401":    {reason: "the credential is not accepted", server: answers(writes(401, secret)), want: probe.ReasonUnauthorized, message: "the server does not accept the credential (401); it may have expired or been replaced"},
		"403":    {reason: "not even the version", server: answers(writes(403, secret)), want: probe.ReasonForbidden, message: "the credential's user may not read /version (403); grant the right in the cluster"},
		"404":    {reason: "a web server", server: answers(writes(404, secret)), want: probe.ReasonNotKubernetes, message: "the server answers HTTP 404 where Kubernetes would not"},
		"429":    {reason: "overloaded", server: answers(writes(429, secret)), want: probe.ReasonServerError, message: "the server answers HTTP 429"},
		"503":    {reason: "a gateway without a backend", server: answers(writes(503, secret)), want: probe.ReasonServerError, message: "the server answers HTTP 503"},
		"599":    {reason: "with a status line of its own", server: speaks("HTTP/1.1 599 " + secret + "\r\nContent-Length: 0\r\n\r\n"), want: probe.ReasonServerError, message: "the server answers HTTP 599"},
	}
	var hanging sync.WaitGroup // beside all others; of those with t.Parallel, as many run as there are processors
	defer hanging.Wait()
	for name, tc := range cases {
		run := func(t *testing.T) {
			opts := probe.Options{Dial: slack, Total: slack}
			if tc.want == probe.ReasonTimedOut {
				opts.Total = total
			}
			result := once(t, tc.server(t), opts)
			want := probe.Result{Time: epoch, Err: &probe.Failure{Reason: tc.want, Message: tc.message}}
			if diff := cmp.Diff(want, result); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if result.Err != nil && (strings.Contains(result.Err.Error(), secret) || strings.Contains(result.Err.Error(), "hunter2")) {
				t.Errorf("the message shows what it must not: %s", result.Err.Message)
			}
		}
		if tc.want == probe.ReasonTimedOut {
			hanging.Go(func() { t.Run(name, run) })
		} else {
			t.Run(name, run)
		}
	}
}

func TestOnceNamespace(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   string
	}{
		"Forbidden":  {reason: "Kamaji's first second", answer: writes(403, secret), want: probe.ReasonForbidden},
		"NotYet":     {reason: "a cluster's first seconds", answer: writes(404, secret), want: probe.ReasonNotReady},
		"NoUID":      {reason: "not an object", answer: writes(200, `{"metadata":{"name":"kube-system"}}`), want: probe.ReasonNotKubernetes},
		"EvilUID":    {reason: "a UID that wants into a status", answer: writes(200, `{"metadata":{"name":"kube-system","uid":"<b>"}}`), want: probe.ReasonNotKubernetes},
		"OtherName":  {reason: "another object", answer: writes(200, `{"metadata":{"name":"default","uid":"a"}}`), want: probe.ReasonNotKubernetes},
		"TypeOfName": {reason: "a JSON type that does not fit", answer: writes(200, `{"metadata":{"name":5}}`), want: probe.ReasonNotKubernetes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := once(t, api(t, map[string]http.HandlerFunc{"/api/v1/namespaces/kube-system": tc.answer}), probe.Options{Dial: slack, Total: slack})
			if result.Err == nil || result.Err.Reason != tc.want || result.Version != "v1.34.1+k3s1" || result.ClusterUID != "" {
				t.Errorf("%s: got %+v, want reason %s and the version", tc.reason, result, tc.want)
			}
		})
	}
}

func TestOnceDoesNotFollowRedirects(t *testing.T) {
	var asked atomic.Int32
	elsewhere := api(t, map[string]http.HandlerFunc{"/version": func(http.ResponseWriter, *http.Request) { asked.Add(1) }})
	server := serve(t, testCA.tls(nil), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+elsewhere+"/version", http.StatusFound)
	})
	result := once(t, server, probe.Options{Dial: slack, Total: slack})
	if result.Err == nil || result.Err.Reason != probe.ReasonNotKubernetes || asked.Load() != 0 {
		t.Errorf("got %+v, and the other server was asked %d times", result.Err, asked.Load())
	}
}

// lookup is a Resolver that answers as the test wants.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

func (l lookup) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	return l(ctx, host)
}

func TestOnceResolves(t *testing.T) {
	addrs := func(texts ...string) lookup {
		return func(context.Context, string) ([]netip.Addr, error) {
			var out []netip.Addr
			for _, text := range texts {
				out = append(out, netip.MustParseAddr(text))
			}
			return out, nil
		}
	}
	fails := func(err error) lookup {
		return func(context.Context, string) ([]netip.Addr, error) { return nil, err }
	}
	// Only the address 127.0.0.1 is allowed, so that others of 127/8 stand for the forbidden.
	narrow := kubeconfig.Rules{AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	cases := map[string]struct {
		reason string
		lookup lookup
		want   string
	}{
		"Good":       {reason: "the name leads to the server", lookup: addrs("127.0.0.1")},
		"Mapped":     {reason: "IPv4 in IPv6, as resolvers return it", lookup: addrs("::ffff:127.0.0.1")},
		"Forbidden":  {reason: "the name leads to a forbidden address", lookup: addrs("127.0.0.2"), want: probe.ReasonForbiddenAddress},
		"Metadata":   {reason: "or to the cloud's metadata", lookup: addrs("169.254.169.254"), want: probe.ReasonForbiddenAddress},
		"Mixed":      {reason: "one bad address is enough, since Flux may take that one", lookup: addrs("127.0.0.1", "169.254.169.254"), want: probe.ReasonForbiddenAddress},
		"NotFound":   {reason: "no such name", lookup: fails(&net.DNSError{IsNotFound: true, Name: secret}), want: probe.ReasonNameNotFound},
		"NoAddress":  {reason: "a name without addresses", lookup: addrs(), want: probe.ReasonNameNotFound},
		"ServFail":   {reason: "the resolver is broken", lookup: fails(&net.DNSError{IsTemporary: true, Name: secret}), want: probe.ReasonDialFailed},
		"LookupHang": {reason: "the resolver hangs", lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }, want: probe.ReasonDialTimeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := api(t, nil)
			_, port, _ := net.SplitHostPort(server)
			opts := probe.Options{Rules: narrow, Resolver: tc.lookup, Total: slack}
			result := once(t, "cluster.test:"+port, opts)
			reason := ""
			if result.Err != nil {
				reason = result.Err.Reason
			}
			if reason != tc.want {
				t.Errorf("%s: got %+v, want %q", tc.reason, result.Err, tc.want)
			}
		})
	}
}

// TestOnceResolvesOnce: a name that changes its address right after the check (DNS rebinding) is not asked again.
func TestOnceResolvesOnce(t *testing.T) {
	_, port, _ := net.SplitHostPort(api(t, nil))
	var asked atomic.Int32
	result := once(t, "cluster.test:"+port, probe.Options{Total: slack, Resolver: lookup(func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1) > 1 {
			return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	})})
	if result.Err != nil || asked.Load() != 1 {
		t.Errorf("got %+v after %d lookups, want one", result.Err, asked.Load())
	}
}

func TestOnceTriesAllAddresses(t *testing.T) {
	_, port, _ := net.SplitHostPort(api(t, nil))
	result := once(t, "cluster.test:"+port, probe.Options{Total: slack, Resolver: lookup(func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("127.0.0.1")}, nil
	})})
	if result.Err != nil {
		t.Errorf("got %+v", result.Err)
	}
}

func TestOnceCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := serve(t, testCA.tls(nil), func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	result := probe.Once(ctx, config(t, server), probe.Options{Rules: loopback})
	if result.Err == nil || result.Err.Reason != probe.ReasonCanceled {
		t.Errorf("got %+v", result.Err)
	}
}

func closedPort(t *testing.T) string {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0")).Or(t)
	_ = listener.Close()
	return listener.Addr().String()
}

func plainHTTP(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 4096))
	_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\n\r\n"+secret)
	untilClosed(conn)
}

func say(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// speaks answers a request with text and then stays silent.
func speaks(text string) func(*testing.T) string {
	return func(t *testing.T) string {
		return rawTLS(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, text)
			untilClosed(conn)
		})
	}
}

// floods answers with start and then with more until the probe has had enough.
func floods(start, more string) func(*testing.T) string {
	return func(t *testing.T) string {
		return rawTLS(t, func(conn net.Conn) {
			_, err := io.WriteString(conn, start)
			for err == nil {
				_, err = io.WriteString(conn, more)
			}
		})
	}
}

// drips sends one byte per period, so that no single read ever takes long.
func drips(period time.Duration) func(*testing.T) string {
	return func(t *testing.T) string {
		return rawTLS(t, func(conn net.Conn) {
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			tick := time.NewTicker(period)
			defer tick.Stop()
			for err == nil {
				<-tick.C
				_, err = io.WriteString(conn, " ")
			}
		})
	}
}

func writes(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Secret", secret)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func answers(handler http.HandlerFunc) func(*testing.T) string {
	return func(t *testing.T) string { return serve(t, testCA.tls(nil), handler) }
}

func certified(ca authority, change func(*x509.Certificate)) func(*testing.T) string {
	return func(t *testing.T) string { return serve(t, ca.tls(change), writes(200, "{}")) }
}

func wantsClientCert(t *testing.T) string {
	config := testCA.tls(nil)
	config.ClientAuth = tls.RequireAnyClientCert
	return serve(t, config, writes(200, "{}"))
}
