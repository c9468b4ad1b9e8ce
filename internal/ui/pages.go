// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/clusterreader"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

//go:embed templates static
var files embed.FS

// names are the views, each with a file of templates: "form" is what stays while "live" is swapped.
var names = []string{"fleet", "cluster", "clusteraddon", "addon", "sets", "rollout", "order", "removals", "held", "heldapprove", "error"}

var templates = parse()

func parse() map[string]*template.Template {
	functions := template.FuncMap{
		"ago":   func(t *view.Time) string { return page.Since(&t.At, t.Now) },
		"exact": func(t *view.Time) string { return exact(t.At) },
		"dash":  page.Dash,
		"num":   number,
		"until": func(t *view.Time) string { return max(0, t.At.Sub(t.Now)).Truncate(time.Second).String() },
	}
	out := map[string]*template.Template{}
	for _, name := range names {
		out[name] = template.Must(template.New(name).Funcs(functions).ParseFS(files, "templates/layout.html", "templates/"+name+".html"))
	}
	return out
}

func static() http.Handler {
	sub, err := fs.Sub(files, ".")
	if err != nil {
		panic(err)
	}
	return http.FileServerFS(sub)
}

// content is a page before it is written.
type content struct {
	View  string
	Title string
	// Nav is which entry of the navigation it belongs to.
	Nav   string
	Trail []crumb
	Code  int
	Data  any

	// These are filled in for every page.
	Hub string
	// Held is how many sets hold removals.
	Held int
	Form string
	Now  *view.Time
}

type crumb struct{ Text, URL string }

func (s *Server) views() http.Handler {
	mux := http.NewServeMux()
	show := func(pattern string, page func(*http.Request) (*content, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			for _, part := range []string{"namespace", "name", "addon"} {
				if v := r.PathValue(part); v != "" && len(validation.IsDNS1123Subdomain(v)) > 0 {
					s.write(w, r, s.trouble(http.StatusNotFound, "There is nothing of this name."))
					return
				}
			}
			c, err := page(r)
			if err != nil {
				c = s.failed(err)
			}
			s.write(w, r, c)
		})
	}
	show("/{$}", s.fleet)
	show("/clusters/{namespace}/{name}", s.cluster)
	show("/clusters/{namespace}/{name}/addons/{addon}", s.clusterAddon)
	show("/addons/{addon}", s.addon)
	show("/sets", s.sets)
	show("/sets/{namespace}/{name}", s.rollout)
	show("/sets/{namespace}/{name}/order/{verb}", s.confirm)
	show("/removals", s.removals)
	show("/sets/{namespace}/{name}/removals", s.held)
	show("/sets/{namespace}/{name}/removals/approve", s.confirmRemovals)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s.write(w, r, s.trouble(http.StatusNotFound, "There is no such page."))
	})
	return mux
}

// trouble is a page that says what is wrong.
func (s *Server) trouble(code int, text string) *content {
	return &content{View: "error", Title: http.StatusText(code), Code: code, Data: excerpt.Line(text)}
}

// failed says why something could not be read. What the caller may not see is no fault of the program.
func (s *Server) failed(err error) *content {
	switch {
	case apierrors.IsForbidden(err):
		return s.trouble(http.StatusForbidden, "You may not see this: "+err.Error())
	case apierrors.IsNotFound(err), errors.Is(err, errNotThere):
		return s.trouble(http.StatusNotFound, "This does not exist (any more): "+err.Error())
	case apierrors.IsUnauthorized(err):
		return s.trouble(http.StatusUnauthorized, "The hub does not know you any more. Log in again, and reload the page: "+err.Error())
	}
	return s.trouble(http.StatusBadGateway, "The hub was not read: "+err.Error())
}

var errNotThere = errors.New("not found")

func (s *Server) write(w http.ResponseWriter, r *http.Request, c *content) {
	c.Hub, c.Form, c.Now = s.Hub, s.form, &view.Time{At: s.Now(), Now: s.Now()}
	c.Held = s.Fleet.Index().Holding()
	part := "page"
	if isStream(r) {
		part = "live"
	}
	var out bytes.Buffer
	if err := templates[c.View].ExecuteTemplate(&out, part, c); err != nil {
		http.Error(w, "chandler ui has a fault: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if c.Code != 0 {
		w.WriteHeader(c.Code)
	}
	// Texts of other people may turn lines round, or move a cursor where a user pastes them.
	_, _ = io.WriteString(w, excerpt.VisibleLines(out.String()))
}

func (s *Server) fleet(r *http.Request) (*content, error) {
	q := view.ParseQuery("/", r.URL.Query())
	return &content{View: "fleet", Title: "Fleet", Nav: "fleet", Data: s.Fleet.Index().Board(q, s.Now())}, nil
}

// number writes 41900 as 41,900.
func number(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return excerpt.Thousands(n), nil
	case int32:
		return excerpt.Thousands(int(n)), nil
	}
	return "", fmt.Errorf("%T is no number of a page", n)
}

// exact writes a time as machines read it.
func exact(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// explained reads everything about a cluster.
func (s *Server) explained(r *http.Request) (*explain.Input, error) {
	reg, err := s.registration(r.Context(), types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")})
	if err != nil {
		return nil, err
	}
	in, err := clusterreader.Read(r.Context(), s.clusters, reg, "", s.Now())
	if err != nil {
		return nil, err
	}
	if ref := reg.Spec.OriginRef; ref != nil && ref.Kind == origin.Secret.Kind && in.Origin == nil {
		in.NoOrigin = "" // it is a Secret, and this page reads none
	}
	return in, nil
}

// registration reads a cluster's registration, unless the one that was read last is what the fleet has now.
func (s *Server) registration(ctx context.Context, key types.NamespacedName) (*hubv1.ClusterRegistration, error) {
	version := s.Fleet.Index().Version(key)
	s.mu.Lock()
	last := s.registrations[key]
	s.mu.Unlock()
	if last != nil && version != "" && last.ResourceVersion == version {
		return last.DeepCopy(), nil
	}
	reg := &hubv1.ClusterRegistration{}
	if err := s.Reader.Client.Get(ctx, key, reg); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.registrations) >= maxKept {
		clear(s.registrations)
	}
	s.registrations[key] = reg.DeepCopy()
	return reg, nil
}

// maxKept is how many registrations are kept.
const maxKept = 100

func (s *Server) cluster(r *http.Request) (*content, error) {
	in, err := s.explained(r)
	if err != nil {
		return nil, err
	}
	reg := in.Registration
	events, note := s.recent.events(r.Context(), s.Reader.Client, reg, s.Now())
	for i := range in.Deliveries[:min(len(in.Deliveries), maxEventful)] {
		more, alsoNote := s.recent.events(r.Context(), s.Reader.Client, &in.Deliveries[i], s.Now())
		events = append(events, more...)
		if note == "" {
			note = alsoNote
		}
	}
	if note != "" {
		in.Notes = append(in.Notes, note)
	}
	data := view.NewStory(in, events)
	data.Stand = s.Fleet.Index().Stand(types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}, s.Now())
	return &content{View: "cluster", Title: reg.Namespace + "/" + reg.Name, Nav: "fleet", Trail: []crumb{{"Fleet", "/"}}, Data: data}, nil
}

// maxEventful is of how many deliveries a story has events.
const maxEventful = 12

func (s *Server) clusterAddon(r *http.Request) (*content, error) {
	in, err := s.explained(r)
	if err != nil {
		return nil, err
	}
	data, err := view.NewClusterAddon(in, r.PathValue("addon"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotThere, err)
	}
	reg := in.Registration
	return &content{View: "clusteraddon", Title: data.Addon + " on " + reg.Name, Nav: "fleet", Data: data,
		Trail: []crumb{{"Fleet", "/"}, {reg.Namespace + "/" + reg.Name, data.URL}}}, nil
}

func (s *Server) addon(r *http.Request) (*content, error) {
	name := r.PathValue("addon")
	story := s.Fleet.Index().Addon(name, view.ParseQuery(r.URL.Path, r.URL.Query()))
	if story == nil {
		return nil, fmt.Errorf("%w: no set has an add-on %s, and it is on no cluster", errNotThere, name)
	}
	return &content{View: "addon", Title: "Add-on " + name, Nav: "fleet", Trail: []crumb{{"Fleet", "/"}}, Data: story}, nil
}
