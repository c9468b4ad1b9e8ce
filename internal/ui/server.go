// SPDX-License-Identifier: Apache-2.0

// Package ui serves `chandler ui`: pages about a fleet for one person, on the loopback interface of his own machine, with his own rights.
// Package view makes what they show.
package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/live"
)

// Options say what is served.
type Options struct {
	Fleet Fleet
	// Reader reads single objects. Its client is made from a configuration that Restrict has made.
	Reader *live.Reader
	// Client is the Reader's client, which can watch too.
	Client client.WithWatch
	// Address is host:port of the listener.
	Address string
	// Hub is what the hub is called, for people.
	Hub string
	Now func() time.Time
}

// Server answers the browser of one person.
type Server struct {
	Options
	// token lets a browser in. session is what it gets instead, and form what every order has to bring along.
	token, session, form string
	hosts                []string
	cookie               string
	pages                http.Handler
	handler              http.Handler
	// clusters reads what pages about one cluster show; following is its client.
	clusters  *live.Reader
	following *followed
	recent    recent

	mu sync.Mutex
	// tickets let a browser in once, until a time.
	tickets map[string]time.Time
	// said is what the last orders have said, by set.
	said map[types.NamespacedName]said
	// may is whether the caller may patch a set.
	may map[types.NamespacedName]answer
	// registrations are those that were read last.
	registrations map[types.NamespacedName]*hubv1.ClusterRegistration
}

// New returns a server. It makes the secrets of its session anew.
func New(o Options) *Server {
	s := &Server{Options: o, token: random(), session: random(), form: random(), tickets: map[string]time.Time{},
		said: map[types.NamespacedName]said{}, may: map[types.NamespacedName]answer{},
		registrations: map[types.NamespacedName]*hubv1.ClusterRegistration{}}
	clusters := *o.Reader
	s.following = follow(o.Client)
	clusters.Client, s.clusters = s.following, &clusters
	_, port, _ := net.SplitHostPort(o.Address)
	s.hosts = []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port), net.JoinHostPort("::1", port)}
	s.cookie = "chandler-ui-" + port // cookies know no ports
	s.pages = s.views()
	s.handler = s.routes()
	return s
}

func random() string {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		panic(err) // never returns one
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// URL is the address that lets a browser in, as often as it is opened.
func (s *Server) URL() string { return "http://" + s.Address + "/?token=" + s.token }

// ticketFor is how long a browser may take to start.
const ticketFor = time.Minute

// Ticket is an address that lets a browser in once, within a minute. Other users of the machine may see the arguments of the program that
// opens a browser.
func (s *Server) Ticket() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ticket := random()
	s.tickets[ticket] = s.Now().Add(ticketFor)
	return "http://" + s.Address + "/?token=" + ticket
}

// takes returns whether a token lets a browser in.
func (s *Server) takes(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until, ok := s.tickets[token]; ok {
		delete(s.tickets, token)
		return s.Now().Before(until)
	}
	return same(token, s.token)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/", static())
	mux.HandleFunc("GET /live", s.live)
	s.orders(mux)
	mux.Handle("/", s.pages)
	return s.protect(mux)
}

// policy lets a page do nothing but load our style and script, listen to us and send us forms.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // no-referrer would make the Origin of our own forms null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// protect lets only the browser in that was given the token, and only requests that come from our own pages.
func (s *Server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		token := r.URL.Query().Get("token")
		switch {
		case !s.ourHost(r.Host): // another site's name that leads here
			s.deny(w, http.StatusMisdirectedRequest, "This is not the address that chandler ui printed.")
		case r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+r.Host:
			s.deny(w, http.StatusForbidden, "Another page may not ask for this.")
		case r.Method == http.MethodGet && r.URL.Path == "/" && token != "":
			s.enter(w, r, token)
		case r.Header.Get("Sec-Fetch-Site") == "cross-site", r.Header.Get("Sec-Fetch-Site") == "same-site":
			s.deny(w, http.StatusForbidden, "Another page may not ask for this. Open the address in a tab of its own.")
		case !s.known(r):
			s.deny(w, http.StatusUnauthorized, "Open the address that chandler ui printed: it has the token that lets a browser in.")
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !s.ordered(w, r):
			s.deny(w, http.StatusForbidden, "This order did not come from a page of chandler ui. Reload the page, and try again.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (s *Server) ourHost(host string) bool {
	for _, ours := range s.hosts {
		if host == ours {
			return true
		}
	}
	return false
}

func (s *Server) known(r *http.Request) bool {
	// Another server of this machine may have set one of the same name, for another path.
	return slices.ContainsFunc(r.CookiesNamed(s.cookie), func(c *http.Cookie) bool { return same(c.Value, s.session) })
}

// maxForm is how large a form may be.
const maxForm = 64 << 10

// ordered returns whether what changes something comes from one of our forms.
func (s *Server) ordered(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return r.Header.Get("Origin") == "http://"+r.Host && same(r.PostFormValue("form"), s.form)
}

// enter gives a browser its cookie, and leads it to the page without the token.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, token string) {
	if !s.takes(token) {
		s.deny(w, http.StatusUnauthorized, "This token is not valid. Open the address that chandler ui printed last.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	if site := r.Header.Get("Sec-Fetch-Site"); site == "" || site == "none" || site == "same-origin" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	// A browser does not send a strict cookie along a way that began at another site. So the way ends here, and another one begins.
	w.Header().Set("Refresh", "0; url=/")
	s.deny(w, http.StatusOK, "One moment.")
}

// deny answers with a short text.
func (s *Server) deny(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n"))
}

// Serve serves until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	defer s.following.close()
	go func() {
		<-ctx.Done()
		_ = server.Close() // streams never end by themselves
	}()
	err := server.Serve(listener)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a user ended it
	}
	return err
}

// isStream returns whether a request is for one fragment of a page, for the stream.
func isStream(r *http.Request) bool { return r.Context().Value(streaming{}) != nil }

type streaming struct{}
