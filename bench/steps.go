// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// steps are when the parts of what a cluster gets were seen first, by cluster: what a slow one has waited for.
type steps struct {
	mu   sync.Mutex
	seen map[string]map[string]time.Time
}

// The steps, as a hub takes them.
const (
	registered = "registered"
	delivered  = "delivery"
	reachable  = "reachable"
	copied     = "copy of the kubeconfig"
	begun      = "first Flux object"
)

// follow watches what comes from now on, until the context ends.
func (r *run) follow(ctx context.Context) (*steps, error) {
	s := &steps{seen: map[string]map[string]time.Time{}}
	of := func(step string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { s.see(u.GetLabels()[hubv1.ClusterLabel], step) }
	}
	for kind, see := range map[schema.GroupVersionResource]func(*unstructured.Unstructured){
		registrations: s.seeRegistration, deliveries: of(delivered), secrets: of(copied), kinds[0]: of(begun), kinds[1]: of(begun),
	} {
		one, err := r.raw.client.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, err
		}
		w, err := r.raw.client.Resource(kind).Watch(ctx, metav1.ListOptions{ResourceVersion: one.GetResourceVersion()})
		if err != nil {
			return nil, err
		}
		go func() {
			for e := range w.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Deleted {
					see(u)
				}
			}
		}()
	}
	return s, nil
}

func (s *steps) seeRegistration(u *unstructured.Unstructured) {
	s.see(u.GetName(), registered)
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == hubv1.ReachableCondition && c["status"] == string(metav1.ConditionTrue) {
			s.see(u.GetName(), reachable)
		}
	}
}

// see keeps when a step was seen first.
func (s *steps) see(cluster, step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[cluster] == nil {
		s.seen[cluster] = map[string]time.Time{}
	}
	if _, ok := s.seen[cluster][step]; !ok {
		s.seen[cluster][step] = time.Now()
	}
}

// describe says how long after a time each step of a cluster was seen, in their order.
func (s *steps) describe(cluster string, since time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, step := range []string{registered, delivered, reachable, copied, begun} {
		if at, ok := s.seen[cluster][step]; ok {
			out = append(out, fmt.Sprintf("%s %d", step, at.Sub(since).Milliseconds()))
		}
	}
	return strings.Join(out, ", ")
}

// tellSlowest prints what the clusters have waited for that took longest, of names with how long each took in milliseconds.
func (r *run) tellSlowest(s *steps, names []string, took []float64) {
	order := slices.Clone(names)
	at := func(name string) float64 { return took[slices.Index(names, name)] }
	slices.SortFunc(order, func(a, b string) int { return int(at(b) - at(a)) })
	for _, name := range order[:min(3, len(order))] {
		last, _ := r.observer.complete(name, r.p.Addons)
		since := last.Add(-time.Duration(at(name) * float64(time.Millisecond)))
		_, _ = fmt.Fprintf(r.out, "  %s, ms after its label: %s, last Flux object %.0f\n", name, s.describe(name, since), at(name))
	}
}
