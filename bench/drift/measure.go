// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// state is the processor time and the number of requests so far.
type state struct {
	cpu      map[string]time.Duration // by part
	requests map[string]float64       // by cluster and verb
	looks    map[string]int           // by controller
}

// finished matches what the controllers log at the end of a check.
var finished = map[string]*regexp.Regexp{
	parts.HelmController:      regexp.MustCompile(`release in-sync with desired state`),
	parts.KustomizeController: regexp.MustCompile(`Reconciliation finished`),
}

func (b *bed) measureAll(ctx context.Context) error {
	idle, err := b.during(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d objects each, every %s, for %s\nidle: %s\n", b.objects, b.interval, b.measure, idle.cost(nil, 1))
	for _, k := range []struct{ apiVersion, kind, part string }{{helmAPI, "HelmRelease", parts.HelmController},
		{kustomizeAPI, "Kustomization", parts.KustomizeController}} {
		if err := b.every(ctx, k.apiVersion, k.kind, b.interval); err != nil {
			return err
		}
		if err := wait(ctx, b.interval+10*time.Second); err != nil { // past what the change itself brings
			return err
		}
		busy, err := b.during(ctx)
		if err != nil {
			return err
		}
		looks := busy.looks[k.part]
		if looks == 0 {
			return fmt.Errorf("%s did nothing", k.part)
		}
		fmt.Printf("%s: %d looks, each %s\n", k.kind, looks, busy.cost(idle, looks))
		if err := b.every(ctx, k.apiVersion, k.kind, 2*time.Hour); err != nil {
			return err
		}
		if err := wait(ctx, 10*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// during returns what was spent while it waited.
func (b *bed) during(ctx context.Context) (*state, error) {
	before, err := b.state(ctx)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, b.measure); err != nil {
		return nil, err
	}
	after, err := b.state(ctx)
	if err != nil {
		return nil, err
	}
	for name := range after.cpu {
		after.cpu[name] -= before.cpu[name]
	}
	for name := range after.requests {
		after.requests[name] -= before.requests[name]
	}
	for name := range after.looks {
		after.looks[name] -= before.looks[name]
	}
	return after, nil
}

// cost returns what one of n checks cost, after subtracting what an idle fleet costs.
func (s *state) cost(idle *state, n int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.cpu)) {
		spent := s.cpu[name]
		if idle != nil {
			spent -= idle.cpu[name]
		}
		out = append(out, fmt.Sprintf("%s %.1f ms", name, float64(spent.Microseconds())/1000/float64(n)))
	}
	for _, name := range slices.Sorted(maps.Keys(s.requests)) {
		asked := s.requests[name]
		if idle != nil {
			asked -= idle.requests[name]
		}
		if asked /= float64(n); asked >= 0.1 {
			out = append(out, fmt.Sprintf("%s %.1f", name, asked))
		}
	}
	return strings.Join(out, ", ")
}

func (b *bed) state(ctx context.Context) (*state, error) {
	s := &state{cpu: map[string]time.Duration{}, requests: map[string]float64{}, looks: map[string]int{}}
	for _, c := range []*localfleet.Cluster{b.management, b.workload} {
		for _, p := range c.Processes() {
			spent, err := p.CPU()
			if err != nil {
				return nil, err
			}
			name := p.Name
			if pattern := finished[name]; pattern != nil {
				raw, err := os.ReadFile(p.Log)
				if err != nil {
					return nil, err
				}
				s.looks[name] = len(pattern.FindAllIndex(raw, -1))
			}
			if name == parts.Etcd || name == parts.KubeAPIServer {
				name = c.Name + " " + name
			}
			s.cpu[name] = spent
		}
		if err := s.count(ctx, c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

var counter = regexp.MustCompile(`^apiserver_request_total\{.*verb="([A-Z]+)".*\} (\S+)$`)

// count reads how many requests an API server has had.
func (s *state) count(ctx context.Context, c *localfleet.Cluster) error {
	config := rest.CopyConfig(c.Config)
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	resp, err := http.Get(c.Server() + "/metrics")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := counter.FindStringSubmatch(lines.Text()); m != nil && ctx.Err() == nil {
			n, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return err
			}
			s.requests[c.Name+" "+m[1]] += n
		}
	}
	return lines.Err()
}
