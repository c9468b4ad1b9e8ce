// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/ui"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// known is a fleet that changes when the test says so.
type known struct {
	mu      sync.Mutex
	index   *view.Index
	changed chan struct{}
}

func (k *known) Index() *view.Index {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.index
}

func (k *known) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

func (k *known) set(f *view.Fleet) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.index = view.NewIndex(f)
	close(k.changed)
	k.changed = make(chan struct{})
}

// served is a page that is served, and a browser that was let in.
type served struct {
	*http.Client
	t      *testing.T
	server *ui.Server
	fleet  *known
	// asked are the requests to the hub, but for orders: a verb and a kind each.
	asked *requests
	base  string
	hub   client.Client
	// forbid has the hub refuse orders.
	forbid *atomic.Bool
}

// requests are what an API server was asked.
type requests struct {
	mu      sync.Mutex
	all     []string
	watches []watch.Interface
}

func (r *requests) began(w watch.Interface) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, w)
}

// cut ends all watches.
func (r *requests) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.watches {
		w.Stop()
	}
	r.watches = nil
}

func (r *requests) add(verb string, kind any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := fmt.Sprintf("%T", kind)
	r.all = append(r.all, verb+" "+strings.TrimSuffix(name[strings.LastIndex(name, ".")+1:], "List"))
}

// take returns what was asked since it was called last, in the order of the alphabet.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	slices.Sort(all)
	return all
}

func serve(t *testing.T, f *view.Fleet, objects ...client.Object) *served {
	t.Helper()
	var handler http.Handler
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	address := h.Listener.Addr().String()
	forbid := &atomic.Bool{}
	s := &served{t: t, fleet: &known{changed: make(chan struct{})}, base: "http://" + address, forbid: forbid, asked: &requests{}}
	rights := interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			s.asked.add("list", list)
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			s.asked.add("get", o)
			return c.Get(ctx, key, o, opts...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			s.asked.add("watch", list)
			w, err := c.Watch(ctx, list, opts...)
			if err == nil {
				s.asked.began(w)
			}
			return w, err
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			o.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = !forbid.Load()
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if forbid.Load() {
				return apierrors.NewForbidden(hubv1.GroupVersion.WithResource("addonsets").GroupResource(), o.GetName(), errors.New("refused here"))
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}
	c := fake.NewClientBuilder().WithInterceptorFuncs(rights).WithScheme(hubscheme.New()).WithObjects(objects...).WithStatusSubresource(&hubv1.AddonSet{}).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).Build()
	s.hub = c
	s.fleet.set(f)
	reader := &live.Reader{Client: c, Hub: hubconfig.Shared{HubID: "chandler", PlatformNamespaces: []string{"flux-system"}}}
	s.server = ui.New(ui.Options{Fleet: s.fleet, Reader: reader, Client: c, Address: address, Hub: "https://hub.example", Now: func() time.Time { return uitest.Now }})
	handler = s.server
	h.Start()
	t.Cleanup(h.Close)
	jar := must.Get(cookiejar.New(nil)).Or(t)
	s.Client = &http.Client{Jar: jar, Timeout: 20 * time.Second} // also of a stream
	if code, _, _ := s.get(strings.TrimPrefix(s.server.URL(), s.base)); code != http.StatusOK {
		t.Fatalf("the token is not valid: %d", code)
	}
	return s
}

func (s *served) get(path string) (code int, body string, r *http.Response) {
	s.t.Helper()
	return s.do(http.MethodGet, path, nil, nil)
}

func (s *served) do(method, path string, header map[string]string, form url.Values) (code int, body string, r *http.Response) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	r, err = s.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, string(raw), r
}

// TestWhoIsLetIn: only who has the token, by the address that was printed, and from no other page.
func TestWhoIsLetIn(t *testing.T) {
	s := serve(t, uitest.Fleet(3, 2))
	stranger := &served{Client: &http.Client{}, t: t, base: s.base}
	port := s.base[strings.LastIndex(s.base, ":"):]
	for name, tc := range map[string]struct {
		who    *served
		method string
		path   string
		header map[string]string
		want   int
	}{
		"NoToken":             {stranger, "GET", "/", nil, 401},
		"NoTokenForTheStream": {stranger, "GET", "/live?at=/", nil, 401},
		"NoTokenForTheStyle":  {stranger, "GET", "/static/style.css", nil, 401},
		"WrongToken":          {stranger, "GET", "/?token=x", nil, 401},
		"EmptyToken":          {stranger, "GET", "/?token=", nil, 401},
		"TokenElsewhere":      {stranger, "GET", "/sets" + strings.TrimPrefix(s.server.URL(), s.base+"/"), nil, 401},
		"WrongCookie":         {stranger, "GET", "/", map[string]string{"Cookie": "chandler-ui-" + port[1:] + "=x"}, 401},
		"Rebound":             {s, "GET", "/", map[string]string{"Host": "evil.example" + port}, 421},
		"ReboundWithoutPort":  {s, "GET", "/", map[string]string{"Host": "127.0.0.1"}, 421},
		"OtherPort":           {s, "GET", "/", map[string]string{"Host": "127.0.0.1:1"}, 421},
		"OtherOrigin":         {s, "GET", "/", map[string]string{"Origin": "https://evil.example"}, 403},
		"NullOrigin":          {s, "GET", "/", map[string]string{"Origin": "null"}, 403},
		"OriginOfAnotherPort": {s, "GET", "/live?at=/", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"CrossSite":           {s, "GET", "/", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"AnotherLocalPort":    {s, "GET", "/", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"SameOrigin":          {s, "GET", "/", map[string]string{"Origin": s.base, "Sec-Fetch-Site": "same-origin"}, 200},
		"Post":                {s, "POST", "/", map[string]string{"Origin": s.base}, 403},
		"Delete":              {s, "DELETE", "/", map[string]string{"Origin": s.base}, 403},
		"Put":                 {s, "PUT", "/clusters/a/b", map[string]string{"Origin": s.base}, 403},
		"Trace":               {s, "OPTIONS", "/", nil, 403},
		"Head":                {s, "HEAD", "/", nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			tc.who.t = t
			if code, body, _ := tc.who.do(tc.method, tc.path, tc.header, nil); code != tc.want {
				t.Errorf("%d, want %d: %.200s", code, tc.want, body)
			}
		})
	}
}

// TestTheTokenDoesNotStay: it becomes a cookie that scripts and other sites do not get, and leaves the address.
func TestTheTokenDoesNotStay(t *testing.T) {
	s := serve(t, uitest.Fleet(1, 1))
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	fresh := &served{Client: c, t: t, base: s.base}
	code, _, r := fresh.get(strings.TrimPrefix(s.server.URL(), s.base))
	if code != http.StatusSeeOther || r.Header.Get("Location") != "/" {
		t.Errorf("%d to %s", code, r.Header.Get("Location"))
	}
	if got := r.Cookies(); len(got) != 1 || !got[0].HttpOnly || got[0].SameSite != http.SameSiteStrictMode || strings.Contains(s.server.URL(), got[0].Value) {
		t.Errorf("the cookie is %v", got)
	}
	ticket := strings.TrimPrefix(s.server.Ticket(), s.base)
	if code, _, _ := fresh.get(ticket); code != http.StatusSeeOther {
		t.Errorf("a ticket: %d", code)
	}
	if code, _, _ := fresh.get(ticket); code != http.StatusUnauthorized {
		t.Errorf("a ticket, for the second time: %d", code)
	}
	// From a link on another page: the browser would not send the cookie along a redirect.
	code, _, r = fresh.do("GET", strings.TrimPrefix(s.server.URL(), s.base), map[string]string{"Sec-Fetch-Site": "cross-site"}, nil)
	if code != http.StatusOK || r.Header.Get("Refresh") == "" || len(r.Cookies()) != 1 {
		t.Errorf("%d %v", code, r.Header)
	}
}

// TestHeaders: a page may load nothing but our own, run no script but ours, and be in no frame.
func TestHeaders(t *testing.T) {
	s := serve(t, uitest.Fleet(1, 1))
	for _, path := range []string{"/", "/static/live.js", "/clusters/x/y", "/nothing"} {
		_, body, r := s.get(path)
		csp := r.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, r.Header)
		}
		for _, inline := range []string{" style=", " onclick=", " onload=", "javascript:", "<script>", "<style", "https://", "//cdn"} {
			if strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && strings.Contains(strings.ReplaceAll(body, "https://hub.example", ""), inline) {
				t.Errorf("%s has %s", path, inline)
			}
		}
	}
}

// TestPathsLeadNowhere: neither out of the folder of files, nor to other objects.
func TestPathsLeadNowhere(t *testing.T) {
	s := serve(t, uitest.Fleet(1, 1))
	for _, path := range []string{"/static/../server.go", "/static/%2e%2e/server.go", "/static/..%2fserver.go", "/templates/layout.html",
		"/static/../../../../etc/passwd", "/clusters/a%2Fb/c", "/clusters/../secrets", "/clusters/a/..%2F..%2Fsecrets", "/clusters/a/b/addons/%00",
		"/live?at=" + url.QueryEscape("http://evil.example/"), "/live?at=//evil.example/", "/live?at=x", "/live", "/clusters/a/b%0d%0aX:y"} {
		if code, body, _ := s.get(path); code < 400 || strings.Contains(body, "package ui") || strings.Contains(body, "root:") {
			t.Errorf("%s: %d %.100s", path, code, body)
		}
	}
}

// hostile is what the owner of a workload cluster may have his add-ons report.
const hostile = `<script>alert(1)</script><img src=x onerror=alert(2)>"'><svg onload=alert(3)> {{.}} ` + "\u202e\x1b[31mred\r\ndata: x\n\nevent: view"

func hostileFleet() *view.Fleet {
	f := uitest.Fleet(12, 2)
	for _, d := range f.Deliveries {
		a := &d.Status.Addons[0]
		a.State, a.Message, a.Version = hubv1.AddonFailed, hostile, hostile
	}
	for _, r := range f.Registrations {
		r.Status.KubernetesVersion, r.Labels["x"] = hostile, hostile
	}
	for _, s := range f.Sets {
		s.Status.Rollout.WaitingFor = hostile
		s.Status.Rollout.Failed = []string{hostile}
		s.Spec.Pause = &hubv1.RolloutPause{Reason: hostile}
	}
	f.Notes = []string{hostile}
	return f
}

// TestHostileTexts: what comes from tenants' clusters is text, on pages and on the stream.
func TestHostileTexts(t *testing.T) {
	f := hostileFleet()
	objects := []client.Object{f.Registrations[0], f.Sets[0], f.Deliveries[0]}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants-0", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: hostile, Name: "cluster-0000"}, Reason: hostile, Message: hostile}
	s := serve(t, f, append(objects, event)...)
	q := url.QueryEscape(hostile)
	for _, path := range []string{"/", "/?group=x", "/?q=" + q, "/?labels=" + q, "/?group=" + q, "/?addon=" + q + "&set=" + q + "&version=" + q,
		"/clusters/tenants-0/cluster-0000", "/clusters/tenants-0/cluster-0000/addons/cert-manager", "/clusters/tenants-0/none",
		"/addons/cert-manager", "/sets", "/sets/flux-system/cert-manager", "/sets/flux-system/cert-manager/order/pause?reason=" + q + "&until=" + q,
		"/sets/flux-system/cert-manager/order/undo?to=" + q} {
		code, body, _ := s.get(path)
		for _, bad := range []string{"<script>alert", "<img", "<svg onload", "\u202e", "\x1b", "ZgotmplZ"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s (%d) has %q", path, code, bad)
			}
		}
		if code >= 500 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, line := range s.stream("/")(1) {
		if !strings.HasPrefix(line, "event: view") && !strings.HasPrefix(line, "data: ") {
			t.Errorf("the stream has the line %q", line)
		}
	}
}

// stream follows a page. It returns a function that waits for so many fragments, and returns the lines of the last one.
func (s *served) stream(path string) func(n int) []string {
	s.t.Helper()
	next := s.events(path)
	return func(n int) (out []string) {
		for range n {
			out = next("view")
		}
		return out
	}
}

// events follows a page. It returns a function that waits for an event of a kind, and returns its lines.
func (s *served) events(path string) func(kind string) []string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/live?at="+url.QueryEscape(path), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.Do(req)
	if err != nil || r.StatusCode != http.StatusOK {
		s.t.Fatal(r, err)
	}
	s.t.Cleanup(func() { r.Body.Close() })
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 16<<20)
	return func(kind string) (out []string) {
		for lines.Scan() {
			if lines.Text() != "" {
				out = append(out, lines.Text())
				continue
			}
			if len(out) > 0 && out[0] == "event: "+kind {
				return out
			}
			out = nil
		}
		s.t.Fatalf("the stream ended: %v", lines.Err())
		return nil
	}
}

// TestAChangeIsSent: the fragment alone, and only if it is another one.
func TestAChangeIsSent(t *testing.T) {
	f := uitest.Fleet(12, 2)
	s := serve(t, f)
	next := s.stream("/?state=failed")
	first := strings.Join(next(1), "\n")
	if strings.Contains(first, "<html") || strings.Contains(first, "<form") || !strings.Contains(first, "cluster-0011") || strings.Contains(first, "cluster-0001") {
		t.Errorf("%s", first)
	}
	began := time.Now()
	s.fleet.set(uitest.Fleet(12, 2)) // nothing has changed
	more := uitest.Fleet(12, 2)
	more.Deliveries[2].Status.Addons[0].State = hubv1.AddonFailed // of cluster-0001
	s.fleet.set(more)
	if second := strings.Join(next(1), "\n"); !strings.Contains(second, "cluster-0001") {
		t.Errorf("%s", second)
	}
	t.Logf("the change was seen after %s", time.Since(began))
}

// TestLargeFleet: a page of 5,000 clusters with 10 add-ons each has the size of a page.
func TestLargeFleet(t *testing.T) {
	s := serve(t, uitest.Fleet(5000, 10))
	for _, path := range []string{"/", "/?group=env", "/?group=chandler.dev/name", "/?state=ready&page=40", "/?q=cluster-1"} {
		code, body, _ := s.get(path)
		if code != 200 || len(body) > 300<<10 {
			t.Errorf("%s: %d, %d bytes", path, code, len(body))
		}
		t.Logf("%s: %d KiB", path, len(body)>>10)
	}
}

// TestRestricted: whatever is asked of the clients, no request for a Secret leaves, and no write but an order.
func TestRestricted(t *testing.T) {
	var got []string
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1"}`)
	}))
	t.Cleanup(hub.Close)
	httpClient := must.Get(rest.HTTPClientFor(ui.Restrict(&rest.Config{Host: hub.URL}))).Or(t)
	const ours = "/apis/chandler.dev/v1alpha1/namespaces/a/addonsets/b"
	for request, allowed := range map[string]bool{
		"GET /api/v1/secrets": false, "GET /api/v1/namespaces/a/secrets": false, "GET /api/v1/namespaces/a/secrets/b": false,
		"GET /k8s/clusters/c-1/api/v1/namespaces/a/secrets/b": false, "GET /api/v1/namespaces/a/secrets/": false, "GET /api/v1/watch/secrets": false,
		"GET /api/v1/watch/namespaces/a/secrets/b": false, "GET /api//v1/secrets": false, "GET /api/v1/x/../secrets": false,
		"GET /api/v1/namespaces/a/services/x/proxy/secrets": false, "GET /api/v1/namespaces/a/pods/x/exec": false, "GET /api/v1/namespaces/a/pods": false,
		"GET /api": true, "GET /api/v1": true, "GET /apis": true, "GET /apis/chandler.dev/v1alpha1": true, "GET /version": true, "GET /metrics": false,
		"GET /apis/chandler.dev/v1alpha1/teams": true, "GET /apis/apps/v1/namespaces/a/controllerrevisions/b": true, "GET /apis/apps/v1/deployments": false,
		"GET /apis/helm.toolkit.fluxcd.io/v2/helmreleases": true, "GET /apis/kustomize.toolkit.fluxcd.io/v1/namespaces/a/kustomizations": true,
		"GET /apis/kamaji.clastix.io/v1alpha1/namespaces/a/tenantcontrolplanes/b": true, "GET /api/v1/namespaces/a/configmaps/b": true,
		"PATCH /api/v1/namespaces/addonsets/x": false, "PATCH /apis/other.dev/v1/namespaces/a/addonsets/b": false, "POST /api": false, "DELETE /apis/chandler.dev/v1alpha1": false,
		"GET /api/v1/namespaces/secrets": false, "GET /api/v1/namespaces/secrets/events": true, "GET /apis/chandler.dev/v1alpha1/addonsets": true,
		"PATCH " + ours: true, "PATCH " + ours + "/status": false, "PUT " + ours: false, "DELETE " + ours: false, "POST " + ours: false,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": true, "PATCH /apis/chandler.dev/v1alpha1/namespaces/a/clusterregistrations/b": false,
	} {
		got = nil
		method, path, _ := strings.Cut(request, " ")
		req := must.Get(http.NewRequestWithContext(t.Context(), method, hub.URL+path, nil)).Or(t)
		r := must.Get(httpClient.Do(req)).Or(t)
		r.Body.Close()
		if left := len(got) > 0; left != allowed {
			t.Errorf("%s: left %v, allowed %v", request, left, allowed)
		}
	}
}

// TestRestrictedBehindAPrefix: an API server may be at a path of a proxy, and what is beside it is not asked.
func TestRestrictedBehindAPrefix(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hub.Close)
	c := must.Get(rest.HTTPClientFor(ui.Restrict(&rest.Config{Host: hub.URL + "/k8s/clusters/c-1"}))).Or(t)
	for path, want := range map[string]int{"/k8s/clusters/c-1/apis/chandler.dev/v1alpha1/addonsets": 200, "/k8s/clusters/c-1/api/v1/secrets": 403,
		"/apis/chandler.dev/v1alpha1/addonsets": 403, "/k8s/clusters/c-2/api": 403} {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+path, nil)).Or(t)
		r := must.Get(c.Do(req)).Or(t)
		if r.Body.Close(); r.StatusCode != want {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}

// TestACookieOfAnother: a server on another port may set a cookie of our name for a longer path, which the browser sends first.
func TestACookieOfAnother(t *testing.T) {
	s := serve(t, uitest.Fleet(1, 1))
	at := must.Get(url.Parse(s.base + "/sets")).Or(t)
	s.Jar.SetCookies(at, []*http.Cookie{{Name: s.Jar.Cookies(at)[0].Name, Value: "x", Path: "/sets"}})
	if n := len(s.Jar.Cookies(at)); n != 2 {
		t.Fatalf("%d cookies", n)
	}
	if code, _, _ := s.get("/sets"); code != http.StatusOK {
		t.Errorf("%d", code)
	}
}
