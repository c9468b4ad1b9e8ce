// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chandler-hub/chandler/internal/must"
)

// TestKeepEvents: an event that the API server could not store is sent again. Anything else is not: whoever writes it sees the error, and
// decides.
func TestKeepEvents(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: request timed out","code":500}`))
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	config.Wrap(keepEvents)
	c := must.Get(kubernetes.NewForConfig(config)).Or(t)
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}}
	if _, err := c.EventsV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{}); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	asked.Store(0)
	secret := &corev1.Secret{ObjectMeta: event.ObjectMeta}
	if _, err := c.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err == nil || asked.Load() != 1 {
		t.Errorf("a Secret: asked %d times: %v", asked.Load(), err)
	}
}
