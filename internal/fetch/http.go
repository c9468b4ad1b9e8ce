// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// Credential is a user with a password.
type Credential struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// Auth are credentials by host, with its port if it has one. Those for a host without TLS have http:// before it: the author of the
// address of a source could otherwise have them sent in the clear.
type Auth map[string]Credential

const plain = "http://"

// of returns the credential for an address.
func (a Auth) of(scheme, host string) (Credential, bool) {
	if scheme == "http" {
		host = plain + host
	}
	c, ok := a[strings.ToLower(host)]
	return c, ok
}

// ParseAuth reads the auths of a config.json of Docker. It runs no credential helper. An error quotes nothing of it.
func ParseAuth(raw []byte) (Auth, error) {
	var file struct {
		Auths map[string]struct {
			Auth, Username, Password string
		}
		CredHelpers map[string]any
		CredsStore  string
	}
	if json.Unmarshal(raw, &file) != nil {
		return nil, errors.New("is no config.json of Docker")
	}
	out := Auth{}
	for name, a := range file.Auths {
		c := Credential{a.Username, a.Password}
		if a.Auth != "" {
			text, err := base64.StdEncoding.DecodeString(a.Auth)
			user, password, ok := strings.Cut(string(text), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("auths[%q].auth is not USER:PASSWORD in base64", name)
			}
			c = Credential{user, password}
		}
		if c.User+c.Password == "" {
			continue
		}
		out[hostOf(name)] = c
		if strings.HasPrefix(strings.ToLower(name), plain) {
			out[plain+hostOf(name)] = c
		}
	}
	if len(out) == 0 && (len(file.CredHelpers) > 0 || file.CredsStore != "") {
		return nil, errors.New("has its credentials in a helper, which is a program, and is not run: write them into auths")
	}
	return out, nil
}

// hostOf returns the host of a key of auths, which may be an address.
func hostOf(name string) string {
	_, rest, found := strings.Cut(name, "://")
	if !found {
		rest = name
	}
	host, _, _ := strings.Cut(strings.ToLower(rest), "/")
	if host == "index.docker.io" || host == "docker.io" {
		return "registry-1.docker.io"
	}
	return host
}

// fetching is what one request reads with.
type fetching struct {
	client *http.Client
	auth   Auth
	left   atomic.Int64
}

func newHTTP(auth Auth) *fetching {
	h := &fetching{auth: auth}
	h.left.Store(maxRead)
	dialer := &net.Dialer{Timeout: 15 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return allowed(address)
	}}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 15 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second, MaxResponseHeaderBytes: 1 << 20, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
	}
	h.client = &http.Client{Transport: &bounded{h, transport}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 10:
			return errors.New("it leads elsewhere more than ten times")
		case r.URL.Scheme == "http" && via[0].URL.Scheme == "https":
			return errors.New("it leads from https to http")
		}
		return nil
	}}
	return h
}

// allowed refuses addresses that no source has. The metadata service of a cloud gives credentials to each process that asks.
func allowed(address string) error {
	actual, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.New("the address is no IP address")
	}
	if account.Lenient().CheckAddrPort(actual) != nil || actual.Addr().Unmap().IsLinkLocalUnicast() {
		return fmt.Errorf("%s is no address of a source: it is that of a cloud's metadata service, or of no host at all", actual.Addr())
	}
	return nil
}

// number matches a host that ends in a number, which a resolver takes for an address (URL Standard, 3.5), or nothing.
var number = regexp.MustCompile(`(?i)^(.*\.)?([0-9]*|0x[0-9a-f]*)\.?$`)

// allowedHost refuses by its name, or as it is written, what allowed refuses. It refuses what only looks like a name: resolvers take
// 2852039166 and 0xA9FEA9FE for addresses.
func allowedHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return allowed(netip.AddrPortFrom(addr, 443).String())
	}
	switch {
	case kubeconfig.IsMetadata(host):
		return fmt.Errorf("%s is no address of a source: it is that of a cloud's metadata service", host)
	case number.MatchString(host):
		return fmt.Errorf("%s is no address of a source: write an IP address as four numbers", host)
	}
	return nil
}

// bounded sends credentials to their host alone, and reads no more than is allowed in all.
type bounded struct {
	*fetching
	next http.RoundTripper
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "" {
		return nil, errors.New("it is no address: write http:// or https:// before it")
	}
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not fetched from: http and https are", r.URL.Scheme)
	}
	// Where a proxy connects, this process does not see to which address.
	if err := allowedHost(r.URL.Hostname()); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "chandler")
	if c, ok := b.auth.of(r.URL.Scheme, r.URL.Host); ok && r.Header.Get("Authorization") == "" {
		r.SetBasicAuth(c.User, c.Password)
	}
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = &counted{resp.Body, &b.left}
	}
	return resp, err
}

type counted struct {
	io.ReadCloser
	left *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.left.Add(-int64(n)) < 0 {
		return n, fmt.Errorf("it is larger than %d MiB", maxRead>>20)
	}
	return n, err
}

// get reads what is at an address.
func (h *fetching) get(ctx context.Context, address string, most int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%q is no address", redacted(address))
	}
	resp, err := h.client.Do(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // names method and address, without a password
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, refused(r.URL.Redacted(), resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", r.URL.Redacted(), err)
	}
	if int64(len(raw)) > most {
		return nil, fmt.Errorf("GET %s: it is larger than %d MiB", r.URL.Redacted(), most>>20)
	}
	return raw, nil
}

// redacted returns an address as it may be shown: a user may have written a password into it, also into one that does not parse.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Redacted()
	}
	at := strings.LastIndex(address, "@")
	if at < 0 {
		return address
	}
	scheme, _, ok := strings.Cut(address[:at], "://")
	if !ok {
		return "…" + address[at:]
	}
	return scheme + "://…" + address[at:]
}

// resolve returns an address that may be relative to that of a folder.
func resolve(base, ref string) (string, error) {
	b, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil {
		return "", fmt.Errorf("%q is no address", redacted(base))
	}
	u, err := b.Parse(ref)
	if err != nil {
		return "", fmt.Errorf("%q is no address", redacted(ref))
	}
	return u.String(), nil
}
