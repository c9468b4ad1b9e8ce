// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
)

const anonymous = `{"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "code": 403, "message": "forbidden: User \"system:anonymous\" cannot get path \"/api\""}`

// TestUnreached: all that keeps a caller from a hub is said in one line, with the address, the reason and what to look at.
func TestUnreached(t *testing.T) {
	says := func(code int, kind, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		})
	}
	page := "<html>Log in</html>"
	for name, tc := range map[string]struct {
		server http.Handler
		want   string
	}{
		"a login page":                {says(200, "text/html; charset=utf-8", page), "it answers, but not as a Kubernetes API"},
		"a login page without a type": {says(200, "", page), "it answers, but not as a Kubernetes API"},
		"nothing":                     {says(200, "text/plain", ""), "it answers, but not as a Kubernetes API"},
		"a web server":                {says(404, "text/html", page), "it answers, but not as a Kubernetes API (404 Not Found)"},
		"a load balancer":             {says(502, "text/html", page), "it answers, but not as a Kubernetes API (502 Bad Gateway)"},
		"a refused credential":        {says(401, "application/json", `{"kind":"Status","apiVersion":"v1","code":401,"reason":"Unauthorized"}`), "it does not take your credential (401 Unauthorized)"},
		"nobody":                      {says(403, "application/json", anonymous), "it does not let you in (403 Forbidden)"},
		"a proxy that lets nobody in": {says(403, "text/html", page), "it answers, but not as a Kubernetes API (403 Forbidden)"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			defer server.Close()
			unreached(t, &rest.Config{Host: server.URL}, tc.want)
		})
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	unreached(t, &rest.Config{Host: secure.URL}, "its certificate is not trusted: x509: certificate signed by unknown authority")
	unreached(t, &rest.Config{Host: "https://" + strings.TrimPrefix(httptestServer(t), "http://")}, "it answers, but not as a Kubernetes API")
	unreached(t, &rest.Config{Host: "http://hub.invalid", Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Name: "hub.invalid", Err: "no such host", IsNotFound: true}
	}}, "there is no address for the name hub.invalid")
	closed := httptest.NewServer(nil)
	closed.Close()
	unreached(t, &rest.Config{Host: closed.URL}, "it refuses the connection")
}

func httptestServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}

func unreached(t *testing.T, config *rest.Config, why string) {
	t.Helper()
	within := must.Get(Reach(t.Context(), config)).Or(t)
	c, err := Connect(within)
	if err != nil {
		t.Fatal(err)
	}
	err = c.List(t.Context(), &hubv1.AddonSetList{})
	var got *Unreached
	want := fmt.Sprintf("no hub at %s: %s; is the kubeconfig right?", config.Host, why)
	if !errors.As(err, &got) || got.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestWithin: the time for one request covers what is read of its answer, and no watch that has begun; a server that is busy is waited for
// as long as the command goes on.
func TestWithin(t *testing.T) {
	const limit = 300 * time.Millisecond
	mux := http.NewServeMux()
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/watched", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		time.Sleep(3 * limit)
		_, _ = io.WriteString(w, "an event")
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, end := context.WithCancel(t.Context())
	get := func(config *rest.Config, path string) (string, *http.Response, error) {
		within := must.Get(Within(ctx, config)).Or(t)
		c := must.Get(rest.HTTPClientFor(within)).Or(t)
		answer, err := c.Get(server.URL + path) //nolint:noctx // as discovery asks
		if err != nil {
			return "", nil, err
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		return string(raw), answer, err
	}
	bounded := &rest.Config{Host: server.URL, Timeout: limit}
	if _, _, err := get(bounded, "/slow"); err == nil || !strings.Contains(err.Error(), "within 300ms (--request-timeout)") {
		t.Errorf("an answer that never ends: %v", err)
	}
	if got, _, err := get(bounded, "/watched?watch=true"); got != "an event" || err != nil {
		t.Errorf("a watch: %q, %v", got, err)
	}
	if _, answer, err := get(bounded, "/busy"); err != nil || answer.Header.Get("Retry-After") != "" {
		t.Errorf("a server that wants more time than there is: %v", err)
	}
	time.AfterFunc(limit, end)
	if _, _, err := get(&rest.Config{Host: server.URL}, "/busy"); !errors.Is(err, context.Canceled) {
		t.Errorf("a server that is busy, and somebody ends the command: %v", err)
	}
}

func TestAddress(t *testing.T) {
	if got := Address(&rest.Config{Host: "https://jane:hunter2@192.0.2.7:6443"}); strings.Contains(got, "hunter2") {
		t.Errorf("it says %s", got)
	}
}

// TestForbiddenKind: a caller who may not read a kind has reached a hub, and hears from it what the right is called.
func TestForbiddenKind(t *testing.T) {
	text := strings.ReplaceAll(anonymous, "system:anonymous", "jane")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	within := must.Get(Reach(t.Context(), &rest.Config{Host: server.URL})).Or(t)
	c := must.Get(rest.HTTPClientFor(within)).Or(t)
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/apis/chandler.dev/v1alpha1/addonsets", nil)).Or(t)
	answer := must.Get(c.Do(req)).Or(t)
	defer answer.Body.Close()
	if raw, err := io.ReadAll(answer.Body); err != nil || string(raw) != text {
		t.Errorf("%s, %v", raw, err)
	}
}
