// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// limits say when a publisher is given up. Building all that the demo needs takes twenty minutes, so nothing is waited for that long.
type limits struct {
	// connect bounds the way to a server, with its TLS handshake; answer, the time until it begins to answer.
	connect, answer time.Duration
	// A body that brings less than floor bytes a second during a window is given up.
	floor  int64
	window time.Duration
	// most is how many bytes a download may have, and the program in it. Who sends more sends something else than is
	// pinned, and would fill the disk before its digest says so.
	most int64
}

// defaultLimits: four downloads at 128 KiB/s bring the 250 MB of the demo in eight minutes, less than half of what building takes.
var defaultLimits = limits{connect: 3 * time.Second, answer: 10 * time.Second, floor: 128 << 10, window: 10 * time.Second, most: 1 << 30}

var (
	errSlow  = errors.New("too slow")
	errLarge = fmt.Errorf("%w: it is larger than anything that is", errWrong)
)

// unavailable is why a program cannot be had from its publisher. It is then built.
type unavailable string

func (u unavailable) Error() string { return string(u) }

// newTransport returns a transport with these limits. It goes through the proxy that the environment names.
func newTransport(l limits) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext = (&net.Dialer{Timeout: l.connect}).DialContext
	base.TLSHandshakeTimeout = l.connect
	base.ResponseHeaderTimeout = l.answer
	return &paced{next: base, limits: l}
}

// paced gives up responses that come too slowly.
type paced struct {
	next   http.RoundTripper
	limits limits
}

// RoundTrip is http.RoundTripper's. The body of the response fails with errSlow when it is given up, and with errLarge
// where it is larger than any that is pinned.
func (p *paced) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := p.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	body := &pacedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, left: p.limits.most}
	go body.watch(p.limits)
	resp.Body = body
	return resp, nil
}

type pacedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	read   atomic.Int64
	// left is how many bytes may come yet.
	left int64
}

func (b *pacedBody) watch(l limits) {
	ticker := time.NewTicker(l.window)
	defer ticker.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-ticker.C:
			if float64(b.read.Swap(0)) < float64(l.floor)*l.window.Seconds() {
				b.cancel(errSlow)
			}
		}
	}
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	if b.left -= int64(n); b.left < 0 {
		return 0, errLarge
	}
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errSlow) {
		err = errSlow
	}
	return n, err
}

func (b *pacedBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// explain turns the error of a download from a host into unavailable where building is the answer to it. What is left as it is stops
// the run.
func explain(ctx context.Context, host string, err error) error {
	var why unavailable
	var answer *transport.Error
	var network *net.OpError
	var name *net.DNSError
	var timeout net.Error
	var local *fs.PathError
	switch {
	case ctx.Err() != nil, errors.Is(err, errWrong), errors.As(err, &why), errors.As(err, &local):
		return err
	case errors.Is(err, errSlow):
		return unavailable(host + " sends too slowly")
	case errors.As(err, &answer):
		return unavailable(fmt.Sprintf("%s answers %d", host, answer.StatusCode))
	case errors.Is(err, errCutOff):
		return unavailable(host + " cuts the download off")
	case errors.As(err, &name):
		return unavailable(host + " cannot be reached: its name is not known")
	// A registry is asked by https and then by http, where that is allowed; the error about both loses the types of the two.
	case errors.As(err, &timeout) && timeout.Timeout(), strings.Contains(err.Error(), "timeout awaiting response headers"):
		return unavailable(host + " cannot be reached: it does not answer in time")
	case errors.As(err, &network):
		return unavailable(fmt.Sprintf("%s cannot be reached: %v", host, network.Err))
	}
	return unavailable(fmt.Sprintf("%s: %v", host, err))
}
