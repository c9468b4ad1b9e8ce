// SPDX-License-Identifier: Apache-2.0

package faultproxy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/test/faultproxy"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// fixture is a proxy before a server, and a client that trusts what issued their certificates.
type fixture struct {
	*faultproxy.Proxy
	address   string
	transport *http.Transport
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{}
	certificate, outdated := issue(t, time.Now().Add(time.Hour)), issue(t, time.Now().Add(-time.Hour))
	pool := x509.NewCertPool()
	pool.AddCert(certificate.Leaf)
	pool.AddCert(outdated.Leaf)
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "it is me") }))
	target.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	target.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are broken off
	target.StartTLS()
	t.Cleanup(target.Close)
	port, err := localfleet.FreePort() // not one that an outgoing connection may get while nothing listens
	if err != nil {
		t.Fatal(err)
	}
	f.address = fmt.Sprintf("127.0.0.1:%d", port)
	f.Proxy, err = faultproxy.Start(faultproxy.Options{
		Address: f.address, Target: target.Listener.Addr().String(), Certificate: certificate, Outdated: outdated,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	f.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}, ForceAttemptHTTP2: true}
	t.Cleanup(func() { f.transport.CloseIdleConnections() })
	return f
}

// issue returns a certificate that signed itself, for loopback.
func issue(t *testing.T, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-24 * time.Hour), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// get asks for the server's page within a limit.
func (f *fixture) get(t *testing.T, limit time.Duration) (int, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func (f *fixture) wantPass(t *testing.T) {
	t.Helper()
	if code, body, err := f.get(t, 10*time.Second); code != http.StatusOK || body != "it is me" || err != nil {
		t.Fatalf("got %d %q (%v), want the server's page", code, body, err)
	}
}

// TestModes goes through every mode, each after one that passes, with a connection that is left open: what a client sees is
// the mode's, at once, and then the server's again.
func TestModes(t *testing.T) {
	const short = 300 * time.Millisecond // for what never comes
	for mode, want := range map[faultproxy.Mode]func(*fixture) error{
		faultproxy.Refuse: func(f *fixture) error {
			_, _, err := f.get(t, 10*time.Second)
			return wantError(err, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) })
		},
		faultproxy.BlackHole: func(f *fixture) error {
			_, err := net.DialTimeout("tcp", f.address, short)
			return wantError(err, isTimeout)
		},
		faultproxy.TLSHang: func(f *fixture) error {
			conn, err := net.DialTimeout("tcp", f.address, 10*time.Second)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(short))
			return wantError(tls.Client(conn, f.transport.TLSClientConfig).Handshake(), isTimeout)
		},
		faultproxy.HTTPHang: func(f *fixture) error {
			conn, err := tls.Dial("tcp", f.address, f.transport.TLSClientConfig)
			if err != nil {
				return fmt.Errorf("the handshake: %w", err)
			}
			_ = conn.Close()
			_, _, err = f.get(t, short)
			return wantError(err, isTimeout)
		},
		faultproxy.Unavailable: func(f *fixture) error {
			code, _, err := f.get(t, 10*time.Second)
			if err == nil && code != http.StatusServiceUnavailable {
				err = fmt.Errorf("got %d", code)
			}
			return err
		},
		faultproxy.Expired: func(f *fixture) error {
			_, _, err := f.get(t, 10*time.Second)
			return wantError(err, func(err error) bool { return strings.Contains(err.Error(), "certificate has expired") })
		},
	} {
		t.Run(string(mode), func(t *testing.T) {
			if mode == faultproxy.BlackHole && runtime.GOOS != "linux" {
				t.Skip("only Linux drops the SYNs that a full queue has no place for")
			}
			f := start(t)
			f.wantPass(t) // its connection stays open, for the next request
			if err := f.Set(mode); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a black hole stays one
				if err := want(f); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Set(faultproxy.Pass); err != nil {
				t.Fatal(err)
			}
			f.transport = f.transport.Clone() // what was cut may not be noticed before it is used
			f.wantPass(t)
		})
	}
}

// TestSetCutsConnections: who waits for an answer of the old mode learns that there will be none.
func TestSetCutsConnections(t *testing.T) {
	for _, mode := range []faultproxy.Mode{faultproxy.Pass, faultproxy.TLSHang, faultproxy.HTTPHang} {
		t.Run(string(mode), func(t *testing.T) {
			f := start(t)
			if err := f.Set(mode); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", f.address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if mode == faultproxy.HTTPHang {
				secure := tls.Client(conn, f.transport.TLSClientConfig)
				if _, err := fmt.Fprint(secure, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Set(faultproxy.Refuse); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
				t.Error("the connection was not cut")
			}
		})
	}
}

func TestUnknownMode(t *testing.T) {
	f := start(t)
	if err := f.Set("Strange"); err == nil || !strings.Contains(err.Error(), f.address) || !strings.Contains(err.Error(), "mode Strange") {
		t.Errorf("got %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func wantError(err error, good func(error) bool) error {
	if err == nil {
		return errors.New("there is no error")
	}
	if !good(err) {
		return fmt.Errorf("it is another error: %w", err)
	}
	return nil
}
