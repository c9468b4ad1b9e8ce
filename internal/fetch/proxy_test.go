// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-hub/chandler/internal/fetch"
)

// proxied is a variable that has TestProxied fetch from an address.
const proxied = "CHANDLER_TEST_PROXIED"

// TestProxied is what TestProxy does in a process of its own: Go reads once which proxy there is.
func TestProxied(t *testing.T) {
	url := os.Getenv(proxied)
	if url == "" {
		t.Skip("TestProxy starts it")
	}
	got, err := do(t, &fetch.Request{Kind: "HelmRepository", Spec: map[string]any{"url": url}, Chart: "web"})
	fmt.Printf("fetched %t: %v\n", got != nil, err)
}

// TestProxy: what is fetched comes by the proxy, and that is never asked to connect to the metadata service of a cloud, however its address is
// written, nor where a source leads there.
func TestProxy(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host)
		mu.Unlock()
		switch {
		case r.Host == "moved.example.org":
			http.Redirect(w, r, "http://169.254.169.254/index.yaml", http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "index.yaml"):
			_, _ = w.Write([]byte("entries: {web: [{version: 1.0.0, urls: [web.tgz]}]}"))
		case r.Method == http.MethodConnect:
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = w.Write(chartOf(t, "1.0.0"))
		}
	}))
	t.Cleanup(proxy.Close)
	for url, want := range map[string]struct {
		asked  []string
		answer string
	}{
		"http://charts.example.org":           {[]string{"GET charts.example.org", "GET charts.example.org"}, "fetched true"},
		"https://charts.example.org":          {[]string{"CONNECT charts.example.org:443"}, "Bad Gateway"},
		"http://moved.example.org":            {[]string{"GET moved.example.org"}, "it is that of a cloud's metadata service"},
		"http://169.254.169.254":              {nil, "it is that of a cloud's metadata service"},
		"https://169.254.169.254":             {nil, "it is that of a cloud's metadata service"},
		"http://[::ffff:169.254.169.254]":     {nil, "it is that of a cloud's metadata service"},
		"http://metadata.google.internal":     {nil, "it is that of a cloud's metadata service"},
		"http://METADATA.google.internal.:80": {nil, "it is that of a cloud's metadata service"},
		"http://2852039166":                   {nil, "write an IP address as four numbers"},
		"http://0xA9FEA9FE":                   {nil, "write an IP address as four numbers"},
		"http://0251.0376.0251.0376":          {nil, "write an IP address as four numbers"},
		"http://169.254.43518":                {nil, "write an IP address as four numbers"},
		"http://169.254.169.254.":             {nil, "write an IP address as four numbers"},
		"http://s3.0x.example.org":            {[]string{"GET s3.0x.example.org", "GET s3.0x.example.org"}, "fetched true"},
	} {
		t.Run(url, func(t *testing.T) {
			mu.Lock()
			asked = nil
			mu.Unlock()
			cmd := exec.Command(os.Args[0], "-test.run=^TestProxied$")
			cmd.Env = append(os.Environ(), proxied+"="+url, "HTTP_PROXY="+proxy.URL, "HTTPS_PROXY="+proxy.URL, "http_proxy=", "https_proxy=", "NO_PROXY=", "no_proxy=")
			out, err := cmd.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			if err != nil || !strings.Contains(string(out), want.answer) || !slices.Equal(asked, want.asked) {
				t.Errorf("the proxy was asked for %q, want %q, and the answer is %q, want %q", asked, want.asked, out, want.answer)
			}
		})
	}
}
