// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Events about an object are read when it has changed; again a while later, since its last event may come after that; and now and then.
const (
	afterwards = 40 * time.Second
	nowAndThen = 5 * time.Minute
	// maxRecent is of how many objects events are kept.
	maxRecent = 1000
)

// recent keeps the last events about objects. The API server has no index of them: each question reads all events of a namespace.
type recent struct {
	mu sync.Mutex
	of map[types.UID]recentEvents
}

type recentEvents struct {
	version string
	// changed is when the version was seen first, and read when the events were read last.
	changed, read time.Time
	events        []corev1.Event
}

// events returns the last events about an object. What cannot be read is noted, and asked for again by the next one.
func (r *recent) events(ctx context.Context, c client.Client, about metav1.Object, now time.Time) ([]corev1.Event, string) {
	known := r.known(about, now)
	settled := known.changed.Add(afterwards)
	if !known.read.IsZero() && (!known.read.Before(settled) || now.Before(settled)) && now.Sub(known.read) < nowAndThen {
		return known.events, ""
	}
	events, note := listEvents(ctx, c, about.GetNamespace(), about.GetName())
	if note == "" {
		known.read, known.events = now, events
		r.mu.Lock()
		defer r.mu.Unlock()
		r.of[about.GetUID()] = known
	}
	return events, note
}

// known returns what is known of an object's events.
func (r *recent) known(about metav1.Object, now time.Time) recentEvents {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRecent {
		r.of = map[types.UID]recentEvents{}
	}
	if e, ok := r.of[about.GetUID()]; ok && e.version == about.GetResourceVersion() {
		return e
	}
	return recentEvents{version: about.GetResourceVersion(), changed: now}
}

func listEvents(ctx context.Context, c client.Client, namespace, name string) ([]corev1.Event, string) {
	list := &corev1.EventList{}
	err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(200), client.MatchingFields{"involvedObject.name": name})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("you may not list the events in namespace %s, so some are missing", namespace)
	case err != nil:
		return nil, fmt.Sprintf("the events in namespace %s were not read: %s", namespace, excerpt.Cut(err.Error(), 200))
	}
	return list.Items, ""
}
