// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/ui/view"
)

const (
	// settle is how long a stream waits for more changes before it looks.
	settle = 200 * time.Millisecond
	// costly is how long it waits at least between two looks that ask the hub anew.
	costly = 1200 * time.Millisecond
	// tick is how often it looks though nothing has changed: times go on.
	tick = 10 * time.Second
	// aged is how old a page about a cluster may get of which nothing has changed that the watches see: events, and where it comes from.
	aged = 45 * time.Second
	// stalled is how long a fragment may take on its way.
	stalled = 30 * time.Second
)

// recorder keeps a fragment of a page.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// live sends the part of a page that changes, whenever it has changed. The address of the page is its parameter; only a page that can be
// got can be followed.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	at, err := url.ParseRequestURI(r.URL.Query().Get("at"))
	if err != nil || at.IsAbs() || at.Host != "" || strings.HasPrefix(at.Path, "//") {
		s.deny(w, http.StatusBadRequest, "There is no such page.")
		return
	}
	page := r.Clone(context.WithValue(r.Context(), streaming{}, true))
	page.URL, page.RequestURI, page.Method = at, at.RequestURI(), http.MethodGet
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	var last [sha256.Size]byte
	wait := settle
	if at.Path != "/" {
		wait = costly
	}
	about, seen := "", int64(0)
	for looked := (time.Time{}); ; {
		changed := s.Fleet.Changed()
		index := s.Fleet.Index() // from now on a change closes the channel
		flux := s.following.changes.Load()
		if concern := concernOf(index, at.Path); concern == "" || concern != about || flux != seen || time.Since(looked) > aged {
			about, seen, looked = concern, flux, time.Now()
			out := &recorder{header: http.Header{}}
			s.pages.ServeHTTP(out, page.Clone(page.Context()))
			if out.code >= http.StatusBadRequest {
				about = "" // it was not read
			}
			_ = stream.SetWriteDeadline(time.Now().Add(stalled)) // a browser that does not read any more
			if s.tell(w, out, &last) != nil || stream.Flush() != nil {
				return
			}
		}
		if !pause(r.Context(), nil, wait) || !pause(r.Context(), changed, tick) {
			return
		}
	}
}

// pause waits for a change, or for a time; it returns false if the browser has gone.
func pause(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// tell sends a fragment, unless it is the last one, and when it was read.
func (s *Server) tell(w http.ResponseWriter, out *recorder, last *[sha256.Size]byte) error {
	if sum := sha256.Sum256(out.body.Bytes()); sum != *last {
		*last = sum
		if err := send(w, "view", out.body.String()); err != nil {
			return err
		}
	}
	return send(w, "read", exact(s.Now()))
}

// concernOf returns what a page about one cluster is about, so that the hub is asked anew when that changes; "" for the other pages.
func concernOf(index *view.Index, path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) < 3 || parts[0] != "clusters" {
		return ""
	}
	return index.Concern(types.NamespacedName{Namespace: parts[1], Name: parts[2]})
}

// send sends a text as one event.
func send(w http.ResponseWriter, event, fragment string) error {
	fragment = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(fragment)
	_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, strings.ReplaceAll(fragment, "\n", "\ndata: "))
	return err
}
