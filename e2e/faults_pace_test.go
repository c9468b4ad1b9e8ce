// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
)

// gap is how much longer a change of a healthy cluster may take while others are at fault, median to median. A worker of Flux that a dead
// cluster holds is held for 10 s and more; a compiler that ran only while others were at fault made it 1.1 s. It is no ratio: each change
// takes from 0.3 to 1.1 s on two cores that six API servers share.
const gap = 5 * time.Second

// pace times the changes of a healthy cluster, one after the other for as long as the test runs, and tells those that met a
// fault from those that met a fleet of as many clusters that are well. While clusters come, catch up or go, which costs the machine
// as much without any fault, they count for neither.
type pace struct {
	began time.Time
	// change makes the nth change; landed returns nil when it is on the cluster, by the kind of Flux object that brought it, and
	// settled when all are done with it.
	change  func(ctx context.Context, n int) error
	landed  map[string]func(ctx context.Context, n int) error
	settled func(ctx context.Context) error

	mu              sync.Mutex
	faults, busy    int // clusters at fault; clusters that come, catch up or go
	well            int // clusters that are served and have nothing
	seen            seen
	quiet, troubled []sample
	failed          error
}

// seen is what there was while one change was under way.
type seen struct{ leastFaults, mostFaults, mostBusy, leastWell int }

// sample is how long one change took, by the kind of Flux object.
type sample map[string]time.Duration

// fault notes that so many more clusters are at fault.
func (p *pace) fault(more int) { p.note(more, 0, 0) }

// calm notes that so many more clusters are well.
func (p *pace) calm(more int) { p.note(0, 0, more) }

// work notes that so many more clusters come, catch up or go.
func (p *pace) work(more int) { p.note(0, more, 0) }

func (p *pace) note(faults, busy, well int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.busy, p.well = p.faults+faults, p.busy+busy, p.well+well
	p.seen = seen{min(p.seen.leastFaults, p.faults), max(p.seen.mostFaults, p.faults), max(p.seen.mostBusy, p.busy), min(p.seen.leastWell, p.well)}
}

// run makes changes until the context ends.
func (p *pace) run(ctx context.Context) {
	p.mu.Lock()
	p.began = time.Now()
	p.mu.Unlock()
	for n := 1; ctx.Err() == nil; n++ {
		p.mu.Lock()
		p.seen = seen{p.faults, p.faults, p.busy, p.well}
		p.mu.Unlock()
		s, err := p.once(ctx, n)
		p.mu.Lock()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			p.failed = err
		case p.seen.mostBusy > 0:
		case p.seen.mostFaults == 0 && p.seen.leastWell > 0:
			p.quiet = append(p.quiet, s)
		case p.seen.leastFaults > 0:
			p.troubled = append(p.troubled, s)
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// once makes one change, when all are done with the one before: else it would wait for that.
func (p *pace) once(ctx context.Context, n int) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, expect.Patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for err := p.settled(ctx); err != nil; err = p.settled(ctx) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("before change %d of the healthy cluster: %w", n, err)
		case <-tick.C:
		}
	}
	start := time.Now()
	if err := p.change(ctx, n); err != nil {
		return nil, err
	}
	s := sample{}
	var last error
	for len(s) < len(p.landed) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("change %d of the healthy cluster did not land: %w", n, last)
		case <-tick.C:
		}
		for kind, landed := range p.landed {
			if s[kind] > 0 {
				continue
			}
			if err := landed(ctx, n); err != nil {
				last = err
				continue
			}
			s[kind] = time.Since(start)
		}
	}
	return s, nil
}

// enough returns an error until so many changes have been timed in a fleet that is well, or at least enough for a median where that
// takes minutes.
func (p *pace) enough(want int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.began) > 2*time.Minute {
		want = few
	}
	if n := len(p.quiet); n < want && p.failed == nil {
		return fmt.Errorf("%d", n)
	}
	return nil
}

// enoughTroubled returns an error until enough changes for a median have met a fault.
func (p *pace) enoughTroubled() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.troubled); n < few && p.failed == nil {
		return fmt.Errorf("%d", n)
	}
	return nil
}

// few changes are the least that make a median.
const few = 10

// report prints the medians, and holds their difference to the limit.
func (p *pace) report(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		t.Error(p.failed)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "a healthy cluster's change\tchanges\tall well\tchanges\tfaults on")
	for kind := range p.landed {
		quiet, troubled := median(p.quiet, kind), median(p.troubled, kind)
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\n", kind, len(p.quiet), quiet, len(p.troubled), troubled)
		if troubled-quiet > gap {
			t.Errorf("%s: a healthy cluster's change takes %s while others are at fault, and %s while none is", kind, troubled, quiet)
		}
	}
	_ = w.Flush()
	t.Logf("\n%s\nquiet: %v\nfaults on: %v", table.String(), p.quiet, p.troubled)
	if len(p.quiet) < few || len(p.troubled) < few {
		t.Errorf("%d and %d changes are too few for medians", len(p.quiet), len(p.troubled))
	}
}

func median(samples []sample, kind string) time.Duration {
	all := make([]time.Duration, 0, len(samples))
	for _, s := range samples {
		all = append(all, s[kind])
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]).Round(2*time.Millisecond) / 2
}

// atRest is how long nobody must have written to a Flux object before it is changed again. Flux says Ready before it has ended its
// reconcile; a change that comes in between is a conflict to it, and waits for its retry, 0.75 s later at the least.
const atRest = 500 * time.Millisecond

// still returns a function that returns nil when nobody has written to the Flux objects of a cluster for a while.
func (f *faults) still(cluster string) func(context.Context) error {
	var known string
	var since time.Time
	return func(ctx context.Context) error {
		now := ""
		for _, list := range []client.ObjectList{&helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}} {
			if err := f.Client.List(ctx, list, client.MatchingLabels{hubv1.ClusterLabel: cluster}); err != nil {
				return err
			}
			if err := meta.EachListItem(list, func(o runtime.Object) error {
				now += o.(client.Object).GetName() + " " + o.(client.Object).GetResourceVersion() + "\n"
				return nil
			}); err != nil {
				return err
			}
		}
		if now != known {
			known, since = now, time.Now()
		}
		if time.Since(since) < atRest {
			return fmt.Errorf("Flux is at work on cluster %s", cluster)
		}
		return nil
	}
}
