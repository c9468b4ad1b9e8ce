// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
)

// againAfter is when an event is sent once more, in seconds.
const againAfter = "3"

// keepEvents has events sent again that the API server could not store. client-go drops an event for good as soon as the server answers
// with an error (tools/events, recordEvent), be it that etcd was busy for a moment. A person who waits for what an event says, such as what
// is left on a cluster, would never hear of it. A request is sent again, up to ten times, if its answer says when (rest, withRetry).
func keepEvents(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(req)
		if err == nil && res.StatusCode >= http.StatusInternalServerError && isEvent(req) && res.Header.Get("Retry-After") == "" {
			res.Header.Set("Retry-After", againAfter)
		}
		return res, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// isEvent returns whether a request writes an event of one of the controllers.
func isEvent(req *http.Request) bool {
	return (req.Method == http.MethodPost || req.Method == http.MethodPatch) && strings.HasPrefix(req.URL.Path, "/apis/events.k8s.io/")
}
