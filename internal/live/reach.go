// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Reach returns how a command reaches the hub's API server. It is Within, and all that keeps the caller out is one kind of error,
// Unreached.
func Reach(ctx context.Context, config *rest.Config) (*rest.Config, error) {
	out, err := Within(ctx, config)
	if err != nil {
		return nil, err
	}
	out.Transport = &greeter{out.Transport, Address(config), prefixOf(config)}
	return out, nil
}

// Within returns a configuration for clients of one command. All of their requests end when ctx ends, also those of discovery, for which
// client-go takes no context. Timeout is how long the server may take for one request, until its answer is read; it does not cut a watch
// that has begun.
func Within(ctx context.Context, config *rest.Config) (*rest.Config, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server, %q: %w", config.Host, err)
	}
	inner := rest.CopyConfig(config)
	inner.Timeout = 0 // net/http's would cut watches
	// Within what finds a credential: a person who logs in may take longer than a server.
	inner.WrapTransport = nil
	inner.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limited{next, config.Timeout} })
	if config.WrapTransport != nil {
		inner.Wrap(config.WrapTransport)
	}
	transport, err := rest.TransportFor(inner)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	out := &rest.Config{Host: config.Host, APIPath: config.APIPath, ContentConfig: config.ContentConfig, UserAgent: config.UserAgent,
		QPS: config.QPS, Burst: config.Burst, RateLimiter: config.RateLimiter, WarningHandler: config.WarningHandler,
		WarningHandlerWithContext: config.WarningHandlerWithContext, Transport: &ending{ctx, transport, config.Timeout}}
	if !strings.Contains(out.Host, "://") {
		out.Host = base.String() // which scheme is meant depends on what the transport has by now
	}
	return out, nil
}

// Address returns the address of an API server, without what may be secret in it.
func Address(config *rest.Config) string {
	if u, err := url.Parse(config.Host); err == nil && u.User != nil {
		return u.Redacted()
	}
	return config.Host
}

// prefixOf returns what comes before /api in the paths of an API server: that of a proxy for many.
func prefixOf(config *rest.Config) string {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(base.Path, "/")
}

// limited bounds how long a server may take for a request.
type limited struct {
	next  http.RoundTripper
	limit time.Duration
}

// errSilent is why a request ends that a server has not answered in time.
type errSilent struct{ limit time.Duration }

func (e errSilent) Error() string {
	return fmt.Sprintf("it does not answer within %s (--request-timeout)", e.limit)
}
func (errSilent) Timeout() bool        { return true }
func (errSilent) Temporary() bool      { return true }
func (errSilent) Is(target error) bool { return target == context.DeadlineExceeded }

func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.next }

func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.limit <= 0 {
		return l.next.RoundTrip(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	late := time.AfterFunc(l.limit, func() { cancel(errSilent{l.limit}) })
	stop := func() { late.Stop(); cancel(nil) }
	answer, err := l.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		defer stop()
		return nil, because(ctx, err)
	}
	if isWatch(r) {
		late.Stop()
	}
	answer.Body = &body{answer.Body, ctx, stop}
	return answer, nil
}

func isWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch
}

// because returns errSilent for what has failed for that reason.
func because(ctx context.Context, err error) error {
	var silent errSilent
	if errors.As(context.Cause(ctx), &silent) {
		return silent
	}
	return err
}

// body is that of an answer. Who closes it ends its request.
type body struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // that of the request
	stop func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = because(b.ctx, err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
}

// ending ends requests when the command ends, whatever is in the way: a program that finds a credential takes no context either.
type ending struct {
	ctx   context.Context //nolint:containedctx // one command has one transport
	next  http.RoundTripper
	limit time.Duration
}

func (e *ending) WrappedRoundTripper() http.RoundTripper { return e.next }

type answered struct {
	answer *http.Response
	err    error
}

func (e *ending) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(e.ctx, cancel)
	release := func() { stop(); cancel() }
	done := make(chan answered, 1)
	go func() {
		answer, err := e.next.RoundTrip(r.WithContext(ctx))
		done <- answered{answer, err}
	}()
	select {
	case got := <-done:
		if got.err != nil {
			release()
			return nil, e.ended(got.err)
		}
		got.answer.Body = &body{got.answer.Body, ctx, release}
		return e.patient(ctx, got.answer)
	case <-ctx.Done():
		go func() {
			if got := <-done; got.err == nil {
				_ = got.answer.Body.Close()
			}
			release()
		}()
		return nil, e.ended(context.Cause(r.Context()))
	}
}

// ended returns why the command ends, if it does.
func (e *ending) ended(err error) error {
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	return err
}

// patient waits here for as long as a server asks for that is too busy: client-go would wait on, whether the command ends or not. A
// server that asks for more time than a request may take has not answered in time.
func (e *ending) patient(ctx context.Context, answer *http.Response) (*http.Response, error) {
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < http.StatusInternalServerError {
		return answer, nil
	}
	wait := time.Duration(seconds) * time.Second
	if e.limit > 0 && wait > e.limit {
		answer.Header.Del("Retry-After")
		return answer, nil
	}
	select {
	case <-time.After(wait):
		answer.Header.Set("Retry-After", "0")
		return answer, nil
	case <-ctx.Done():
		_ = answer.Body.Close()
		return nil, e.ended(context.Cause(ctx))
	}
}

// greeter finds out whether there is an API server that lets the caller in.
type greeter struct {
	next            http.RoundTripper
	address, prefix string
}

func (g *greeter) WrappedRoundTripper() http.RoundTripper { return g.next }

func (g *greeter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.next.RoundTrip(r)
	if err != nil {
		if r.Context().Err() != nil || errors.Is(err, context.Canceled) {
			return nil, err // the caller has given up, and says so
		}
		return nil, &Unreached{g.address, reason(err), err}
	}
	why := g.refusal(r, answer)
	if why == "" {
		return answer, nil
	}
	_ = answer.Body.Close()
	return nil, &Unreached{g.address, why, nil}
}

// peeked is how much of an answer is looked at, in bytes, and mostOfStatus how much of a refusal is read.
const (
	peeked       = 512
	mostOfStatus = 64 << 10
)

// refusal returns why an answer is of no use, or "".
func (g *greeter) refusal(r *http.Request, answer *http.Response) string {
	number := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if answer.StatusCode == http.StatusUnauthorized {
		return "it does not take your credential (" + number + ")"
	}
	path := strings.TrimPrefix(r.URL.Path, g.prefix)
	discovery := path == "/api" || path == "/apis"
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case kind == "application/json" || strings.HasPrefix(kind, "application/vnd.kubernetes."):
	case kind == "text/html", path == "/apis" && answer.StatusCode == http.StatusNotFound:
		return notKubernetes(answer.StatusCode, number)
	case answer.StatusCode < 300 && !isWatch(r) && !looksLikeObject(answer):
		return notKubernetes(answer.StatusCode, number)
	}
	if answer.StatusCode != http.StatusForbidden {
		return ""
	}
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, mostOfStatus)) // what cannot be read of it is said by who reads on
	answer.Body = &again{io.MultiReader(bytes.NewReader(raw), answer.Body), answer.Body}
	if discovery || bytes.Contains(raw, []byte("system:anonymous")) {
		return "it does not let you in (" + number + ")"
	}
	return ""
}

func notKubernetes(code int, number string) string {
	if code < 300 {
		return "it answers, but not as a Kubernetes API"
	}
	return "it answers, but not as a Kubernetes API (" + number + ")"
}

// looksLikeObject returns whether an answer begins as a JSON object does, or an object in the wire format of Kubernetes.
func looksLikeObject(answer *http.Response) bool {
	buffered := bufio.NewReaderSize(answer.Body, peeked)
	begin, _ := buffered.Peek(peeked) // an answer may be shorter
	answer.Body = &again{buffered, answer.Body}
	return bytes.HasPrefix(bytes.TrimSpace(begin), []byte("{")) || bytes.HasPrefix(begin, []byte("k8s\x00"))
}

// again is a body of which something has been read already.
type again struct {
	io.Reader
	io.Closer
}
